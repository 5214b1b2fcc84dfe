//! Explains why a rule selects no devices: the first name in its selector that no device has, and the most similar
//! existing name.
//!
//! A typo in a pool name has no visible effect: the impact is empty, the limits are respected, and the broken device
//! stays in use.

use super::record::RuleSelector;
use super::snapshot::{Pool, Snapshot};
use tollgate_api::conform::suggest::nearest_if_unambiguous;

/// Returns a sentence about the first name in the selector that no ResourceSlice contains, with a similar
/// existing name; `None` if all names exist.
pub(super) fn explain_missing_name(selector: &RuleSelector, snapshot: &Snapshot) -> Option<String> {
    let drivers = &snapshot.drivers;
    let in_driver = |name: &str| selector.driver.as_deref().is_none_or(|wanted| wanted == name);
    if let Some(driver) = selector.driver.as_deref()
        && !drivers.contains_key(driver)
    {
        return Some(missing_name_sentence("driver", driver, "", drivers.keys().map(|name| &**name)));
    }
    let pools = drivers.iter().filter(|(name, _)| in_driver(name)).flat_map(|(_, pools)| pools);
    if let Some(pool) = selector.pool.as_deref()
        && !pools.clone().any(|(name, _)| **name == *pool)
    {
        let of =
            selector.driver.as_deref().map(|driver| format!(" of driver `{driver}`")).unwrap_or_default();
        return Some(missing_name_sentence("pool", pool, &of, pools.map(|(name, _)| &**name)));
    }
    let device = selector.device.as_deref()?;
    let pools = pools.filter(|(name, _)| selector.pool.as_deref().is_none_or(|wanted| wanted == &***name));
    let slices =
        pools.filter_map(|(_, slot)| snapshot.pools.get_even_if_free(*slot)).flat_map(Pool::current_slices);
    let mut names: Vec<&str> =
        slices.flat_map(|slice| slice.devices.iter()).map(|device| &*device.name).collect();
    names.sort_unstable();
    names.dedup();
    let of = selector.pool.as_deref().map(|pool| format!(" in pool `{pool}`")).unwrap_or_default();
    names
        .binary_search(&device)
        .is_err()
        .then(|| missing_name_sentence("device", device, &of, names.iter().copied()))
}

/// Returns ``no ResourceSlice has WHAT `NAME` OF``, with the nearest of the known names as a suggestion.
fn missing_name_sentence<'n>(
    what: &str,
    name: &str,
    of: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> String {
    let unpadded_name = without_zero_padding_in_numbers(name);
    let same_numbers = known.clone().find(|known| without_zero_padding_in_numbers(known) == unpadded_name);
    let meant = same_numbers
        .or_else(|| nearest_if_unambiguous(name, known))
        .map(|meant| format!(" (did you mean `{meant}`?)"))
        .unwrap_or_default();
    format!("no ResourceSlice has {what} `{name}`{of}{meant}")
}

/// Returns the name without zeros in front of its numbers: pools are often called after numbered nodes.
fn without_zero_padding_in_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut letters = name.chars().peekable();
    let mut is_in_number = false;
    while let Some(letter) = letters.next() {
        let is_padding = letter == '0' && !is_in_number && letters.peek().is_some_and(char::is_ascii_digit);
        if !is_padding {
            out.push(letter);
            is_in_number = letter.is_ascii_digit();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::explain_missing_name;
    use crate::impact::Snapshot;
    use crate::impact::record::RuleSelector;
    use tollgate_document::doc;

    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::new();
        for pool in ["node-01", "node-12"] {
            let slice = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"{pool}"}},
                "spec":{{"driver":"gpu.example.com","pool":{{"name":"{pool}","generation":1,"resourceSliceCount":1}},
                "nodeName":"{pool}","devices":[{{"name":"gpu-0"}},{{"name":"gpu-1"}}]}}}}"#
            );
            let slice = doc::parse(&slice).expect("JSON");
            snapshot.apply(slice.root()).expect("a slice");
        }
        snapshot
    }

    #[test]
    fn the_first_name_that_nothing_has_is_named_with_the_nearest_one() {
        let snapshot = snapshot();
        for (driver, pool, device, expected) in [
            (
                Some("gpu.exmaple.com"),
                Some("node-01"),
                None,
                Some("has driver `gpu.exmaple.com` (did you mean `gpu.example.com`?)"),
            ),
            (
                Some("gpu.example.com"),
                Some("node-1"),
                None,
                Some("has pool `node-1` of driver `gpu.example.com` (did you mean `node-01`?)"),
            ),
            (None, Some("elsewhere"), None, Some("has pool `elsewhere`")),
            (
                None,
                Some("node-12"),
                Some("gpu0"),
                Some("has device `gpu0` in pool `node-12` (did you mean `gpu-0`?)"),
            ),
            (None, None, Some("nic-7"), Some("has device `nic-7`")),
            (Some("gpu.example.com"), Some("node-01"), Some("gpu-0"), None),
        ] {
            let arc = |name: Option<&str>| name.map(Into::into);
            let selector = RuleSelector {
                driver: arc(driver),
                pool: arc(pool),
                device: arc(device),
                ..RuleSelector::default()
            };
            let expected = expected.map(|end| format!("no ResourceSlice {end}"));
            assert_eq!(explain_missing_name(&selector, &snapshot), expected);
        }
    }
}
