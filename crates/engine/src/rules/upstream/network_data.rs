//! NetworkDeviceData: what a driver reports about the network interface of an allocated device.

use super::lists;
use crate::rules::RuleContext;
use crate::rules::table::NETWORK_DATA;
use tollgate_api::view::NetworkData;
use tollgate_document::field::Path;
use tollgate_formats::names;
use tollgate_formats::netaddr::{InvalidCidr, canonical_cidr_if_different};

const MAX_INTERFACE_NAME_BYTES: usize = 256;
const MAX_HARDWARE_ADDRESS_BYTES: usize = 128;
const MAX_IP_ADDRESSES: usize = 16;

// upstream v1.36 validateNetworkDeviceData
pub fn check_network_data(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, data: NetworkData<'_>) {
    for (field, text, limit) in [
        ("interfaceName", data.interface_name(), MAX_INTERFACE_NAME_BYTES),
        ("hardwareAddress", data.hardware_address(), MAX_HARDWARE_ADDRESS_BYTES),
    ] {
        if text.len() > limit {
            cx.report(NETWORK_DATA, &at.field(field)).covered_by_declarative().too_long(limit);
        }
    }
    let (at, addresses) = (at.field("ips"), data.ips());
    if !lists::report_too_many_and_should_continue(cx, NETWORK_DATA, &at, addresses.len(), MAX_IP_ADDRESSES) {
        return;
    }
    for (index, address) in addresses.iter().enumerate() {
        check_canonical_cidr(cx, &at.index(index), address);
    }
    lists::for_each_duplicate(addresses.iter(), |index, address| {
        cx.report(NETWORK_DATA, &at.index(index)).covered_by_declarative().duplicate(address, "");
    });
}

// upstream v1.36 IsValidInterfaceAddress
fn check_canonical_cidr(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, address: &str) {
    match canonical_cidr_if_different(address) {
        Ok(None) => {}
        Ok(Some(canonical)) => {
            cx.report(NETWORK_DATA, at)
                .invalid(address, format_args!("must be in canonical form (\"{canonical}\")"));
        }
        Err(InvalidCidr) => {
            cx.report(NETWORK_DATA, at).invalid(address, names::INVALID_CIDR);
        }
    }
}
