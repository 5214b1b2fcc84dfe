//! Finds driver parameters in objects: opaque configurations, and the parameters of classic DRA.

use super::{visit_claim_or_template_spec, visit_pod_claim_templates};
use crate::admission::{DecodedAttributes, ResourceClasses};
use tollgate_api::view::{ClaimConfig, ClassicClaimSpec, ObjectBody, View as _};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;

/// Opaque parameters in an object, and the driver that they are for.
#[derive(Clone, Copy, Debug)]
pub struct DriverParameters<'d> {
    /// The driver that they are for; `None` if it is not known, because a classic claim names only its class.
    pub driver: Option<&'d str>,
    /// The parameters, any JSON.
    pub value: Value<'d>,
}

/// Calls `visit` for all opaque parameters in an object. `classes` maps the classes of classic DRA claims to
/// their drivers.
pub fn visit_parameters<'d>(
    admission: &DecodedAttributes<'d>,
    classes: Option<&'d ResourceClasses>,
    visit: &mut dyn FnMut(&Path<'_>, DriverParameters<'d>),
) {
    let object = admission.object;
    let driver_of = |spec: ClassicClaimSpec<'_>| classes?.driver(spec.resource_class_name());
    let spec_at = Path::ROOT.field("spec");
    match object.body {
        ObjectBody::Claim(_) | ObjectBody::Template(_) => visit_claim_or_template_spec(object, |at, spec| {
            visit_configs(spec.devices().config().value(), &at.field("devices"), visit);
        }),
        ObjectBody::Class(class) => visit_configs(class.spec().config().value(), &spec_at, visit),
        ObjectBody::ClassicClass(class) => {
            visit_classic_parameters(Some(class.driver_name()), class.parameters(), &Path::ROOT, visit)
        }
        ObjectBody::ClassicClaim(claim) => {
            visit_classic_parameters(driver_of(claim.spec()), claim.spec().parameters(), &spec_at, visit);
        }
        ObjectBody::Pods(_) => visit_pod_claim_templates(object, &mut |at, template| {
            let spec = template.nested_or_inlined_spec();
            visit_classic_parameters(
                driver_of(spec),
                spec.parameters(),
                &template.nested_or_inlined_spec_path(at),
                visit,
            );
        }),
        _ => {}
    }
}

/// Calls `visit` for the opaque parameters in a list of configurations.
fn visit_configs<'d>(list: Value<'d>, at: &Path<'_>, visit: &mut dyn FnMut(&Path<'_>, DriverParameters<'d>)) {
    let list_at = at.field("config");
    for (index, config) in list.items().enumerate() {
        let Some(opaque) = ClaimConfig::of(config).opaque() else { continue };
        let parameters = DriverParameters { driver: Some(opaque.driver()), value: opaque.parameters() };
        visit(&list_at.index(index).field("opaque").field("parameters"), parameters);
    }
}

/// Calls `visit` for the parameters of a classic object, unless they are null; `at` is the object that contains them.
fn visit_classic_parameters<'d>(
    driver: Option<&'d str>,
    value: Value<'d>,
    at: &Path<'_>,
    visit: &mut dyn FnMut(&Path<'_>, DriverParameters<'d>),
) {
    if !value.is_null_or_absent() {
        visit(&at.field("parameters"), DriverParameters { driver, value });
    }
}
