//! Single behaviours that the recorded cases do not have: limits of the search, feature gates, numbers beyond 64 bits.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::fmt::Write as _;
use tollgate_allocator::{
    AllocatedDevice, AllocationOutcome, Allocator, AllocatorSemantics, Candidate, ClaimsToAllocate, Classes,
    DeviceHolding, DeviceUsage, Inventory, Node, NodePools, SelectorError, SelectorEvaluator,
    UnallocatedClaim,
};
use tollgate_api::profile::Version;
use tollgate_api::view::{ClaimSpec, Class, NodeSelector, Slice, TaintRule, View as _};
use tollgate_document::doc::{Value, parse};

const MAX_STEPS: u64 = 100_000;

/// A ResourceSlice of pool `p` on node `n1`; `rest` is appended to its spec.
fn slice(rest: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"s"}},"spec":{{"driver":"d.example.com","nodeName":"n1",
        "pool":{{"name":"p","generation":1,"resourceSliceCount":1}},{rest}}}}}"#
    )
}

fn exactly(rest: &str) -> String {
    format!(r#"{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"c"{rest}}}}}]}}}}"#)
}

/// An evaluator for which every selector matches every device.
struct AnyDevice;

impl SelectorEvaluator for AnyDevice {
    fn matches(&self, _: &str, _: Candidate<'_>) -> Result<bool, SelectorError> {
        Ok(true)
    }
}

/// Allocates claims with these specs. Returns the devices with their consumed capacity, or the error text.
fn allocate(
    semantics: AllocatorSemantics,
    version: Version,
    slices: &[String],
    rules: &[String],
    specs: &[String],
) -> String {
    let docs = |texts: &'static [String]| texts.iter().map(|text| parse(text).unwrap()).collect::<Vec<_>>();
    let keep = |texts: &[String]| -> &'static [String] { Box::leak(texts.to_vec().into_boxed_slice()) };
    let (slices, rules, specs) = (docs(keep(slices)), docs(keep(rules)), docs(keep(specs)));
    let slices = slices.iter().map(|slice| (version, Slice(slice.root())));
    let inventory = Inventory::new(semantics, slices, rules.iter().map(|rule| TaintRule(rule.root())));
    let class = parse("{}").unwrap();
    let classes: Classes<'_> = [("c", Class(class.root()))].into_iter().collect();
    let claims = specs.iter().map(|spec| UnallocatedClaim {
        namespace: "app",
        name: "c1",
        version,
        spec: ClaimSpec(spec.root()),
    });
    let claims = match ClaimsToAllocate::new(claims, [], &classes, &semantics) {
        Ok(claims) => claims,
        Err(reason) => return reason.to_string(),
    };
    let usage = DeviceUsage::default();
    let allocator =
        Allocator { inventory: &inventory, usage: &usage, selectors: &AnyDevice, max_steps: MAX_STEPS };
    let node = Node { name: "n1", labels: Value::absent() };
    match allocator.allocate(&inventory.pools_for(node), &claims) {
        AllocationOutcome::Allocated(allocations) => {
            let mut text = String::new();
            for device in allocations.iter().flat_map(|allocation| &allocation.devices) {
                let _ = write!(text, "{}={} ", device.request_name_with_alternative(), device.device);
                for (name, amount) in &device.consumed_capacity {
                    let _ = write!(text, "{name}:{} ", amount.text());
                }
            }
            text.trim_end().to_owned()
        }
        AllocationOutcome::Unschedulable(reason) => reason.to_string(),
        AllocationOutcome::Failed(error) => error.to_string(),
        AllocationOutcome::Unsupported(what) => format!("not supported: {what}"),
        AllocationOutcome::GaveUp { steps } => format!("gave up after {steps} steps"),
    }
}

fn in_1_37(slices: &[String], specs: &[String]) -> String {
    allocate(AllocatorSemantics::V1_37, Version::V1, slices, &[], specs)
}

#[test]
fn a_hostile_constraint_ends_the_search() {
    // 31 of 128 devices share a value; 32 are needed.
    let devices = (0..128).map(|n| format!(r#"{{"name":"d{n}","attributes":{{"g":{{"int":{}}}}}}}"#, n % 5));
    let slice = slice(&format!(r#""devices":[{}]"#, devices.collect::<Vec<_>>().join(",")));
    let spec = r#"{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","count":32}}],
        "constraints":[{"matchAttribute":"d.example.com/g"}]}}"#;
    assert_eq!(in_1_37(&[slice], &[spec.to_owned()]), format!("gave up after {MAX_STEPS} steps"));
}

#[test]
fn many_claims_need_no_deep_stack() {
    let specs = vec![exactly(""); 20_000];
    let shareable = slice(r#""devices":[{"name":"d0","allowMultipleAllocations":true}]"#);
    assert!(in_1_37(&[shareable], &specs).starts_with("r=d0 r=d0 "));
}

#[test]
fn a_request_beyond_64_bits() {
    let slice = slice(
        r#""devices":[{"name":"d0","allowMultipleAllocations":true,"capacity":{"mem":{"value":"20E",
        "requestPolicy":{"default":"1","validRange":{"min":"0","step":"1"}}}}}]"#,
    );
    let spec = exactly(r#","capacity":{"requests":{"mem":"10E"}}"#);
    let answer = |semantics| {
        allocate(semantics, Version::V1, std::slice::from_ref(&slice), &[], std::slice::from_ref(&spec))
    };
    let error = "claim app/c1, request r: checking capacity for device d.example.com/p/d0: capacity \"mem\": capacity \
                 request cannot be represented in the device's range arithmetic: request 10E";
    assert_eq!(answer(AllocatorSemantics::V1_36), "r=d0 mem:0");
    assert_eq!(answer(AllocatorSemantics::V1_37), format!("{error} is not a representable milli value"));
    let whole_numbers = AllocatorSemantics { fractional_ranges: false, ..AllocatorSemantics::V1_37 };
    assert_eq!(answer(whole_numbers), format!("{error} exceeds MaxInt64"));
}

#[test]
fn feature_gates() {
    let with = |change: fn(&mut AllocatorSemantics), slice: &String, spec: &String| {
        let mut semantics = AllocatorSemantics::V1_37;
        change(&mut semantics);
        allocate(semantics, Version::V1, std::slice::from_ref(slice), &[], std::slice::from_ref(spec))
    };
    let none = "cannot allocate all claims";

    let tainted = slice(r#""devices":[{"name":"d0","taints":[{"key":"k","effect":"NoExecute"}]}]"#);
    assert_eq!(with(|_| {}, &tainted, &exactly("")), none);
    assert_eq!(with(|s| s.features.device_taints = false, &tainted, &exactly("")), "r=d0");

    let counted = slice(
        r#""devices":[{"name":"d0","consumesCounters":[{"counterSet":"s","counters":{"x":{"value":"1"}}}]}]"#,
    );
    assert_eq!(with(|_| {}, &counted, &exactly("")), "invalid resource pools were encountered");
    assert_eq!(with(|s| s.features.partitionable_devices = false, &counted, &exactly("")), none);

    let waiting = slice(r#""devices":[{"name":"d0","bindingConditions":["x"]}]"#);
    assert_eq!(with(|_| {}, &waiting, &exactly("")), "r=d0");
    assert_eq!(with(|s| s.features.binding_conditions = false, &waiting, &exactly("")), none);

    let free = slice(r#""devices":[{"name":"d0"}]"#);
    let admin = exactly(r#","adminAccess":true"#);
    assert_eq!(
        with(|s| s.features.admin_access = false, &free, &admin),
        "claim app/c1, request r: admin access is requested, but the feature is disabled"
    );
    let first =
        r#"{"devices":{"requests":[{"name":"r","firstAvailable":[{"name":"x","deviceClassName":"c"}]}]}}"#;
    assert_eq!(with(|_| {}, &free, &first.to_owned()), "r/x=d0");
    assert_eq!(
        with(|s| s.features.prioritized_list = false, &free, &first.to_owned()),
        "resource claim app/c1, request r: has subrequests, but the DRAPrioritizedList feature is disabled"
    );

    let shareable =
        slice(r#""devices":[{"name":"d0","allowMultipleAllocations":true,"capacity":{"m":{"value":"4"}}}]"#);
    assert_eq!(with(|_| {}, &shareable, &exactly("")), "r=d0 m:4");
    assert_eq!(with(|s| s.features.consumable_capacity = false, &shareable, &exactly("")), "r=d0");
}

#[test]
fn a_slice_with_compatibility_groups_is_ignored() {
    let grouped = slice(
        r#""devices":[{"name":"d0"},{"name":"d1","consumesCounters":[{"counterSet":"s","compatibilityGroups":["g"]}]}]"#,
    );
    assert_eq!(in_1_37(&[grouped], &[exactly("")]), "cannot allocate all claims");
}

#[test]
fn a_rule_without_selector() {
    let free = slice(r#""devices":[{"name":"d0"}]"#);
    let rule = r#"{"spec":{"taint":{"key":"k","effect":"NoSchedule"}}}"#.to_owned();
    let answer = |semantics| {
        let (slices, rules) = (std::slice::from_ref(&free), std::slice::from_ref(&rule));
        allocate(semantics, Version::V1, slices, rules, &[exactly("")])
    };
    assert_eq!(answer(AllocatorSemantics::V1_37_0), "cannot allocate all claims");
    assert_eq!(answer(AllocatorSemantics::V1_37), "r=d0");
}

#[test]
fn counters_beside_devices() {
    let slice_named = |name: &str, amount: u32| {
        let device = |n| {
            format!(
                r#"{{"name":"{name}{n}","consumesCounters":[{{"counterSet":"k","counters":{{"m":{{"value":"{amount}"}}}}}}]}}"#
            )
        };
        let counters = r#""sharedCounters":[{"name":"k","counters":{"m":{"value":"4"}}}]"#;
        let whole = slice(&format!(r#"{counters},"devices":[{},{}]"#, device(0), device(1)));
        let whole = whole.replace(r#""name":"s""#, &format!(r#""name":"{name}""#));
        whole.replace(r#""resourceSliceCount":1"#, r#""resourceSliceCount":2"#)
    };
    let slices = [slice_named("a", 3), slice_named("b", 2)];
    let specs = vec![exactly(""); 3];
    let answer = |semantics, slices: &[String]| allocate(semantics, Version::V1, slices, &[], &specs);
    assert_eq!(
        answer(AllocatorSemantics::V1_34, &slices),
        "r=a0 r=b0 r=b1",
        "each slice has counters of its own"
    );
    let twice = "invalid resource pools were encountered";
    assert_eq!(answer(AllocatorSemantics::V1_35, &slices), twice, "the set is there twice");
    let [here, there] = slices;
    let elsewhere = [here, there.replace(r#""nodeName":"n1""#, r#""nodeName":"n2""#)];
    assert_eq!(
        answer(AllocatorSemantics::V1_34, &elsewhere),
        "cannot allocate all claims",
        "a slice does not reach the node"
    );
}

#[test]
fn the_flat_version() {
    let basic = slice(r#""devices":[{"name":"d0","basic":{"capacity":{"m":{"value":"4"}}}}]"#);
    let spec =
        r#"{"devices":{"requests":[{"name":"r","deviceClassName":"c","capacity":{"requests":{"m":"5"}}}]}}"#;
    let answer = |spec: String| {
        allocate(AllocatorSemantics::V1_37, Version::V1beta1, std::slice::from_ref(&basic), &[], &[spec])
    };
    assert_eq!(answer(spec.to_owned()), "cannot allocate all claims");
    assert_eq!(answer(spec.replace('5', "4")), "r=d0");
}

fn first_device<'d>(
    inventory: &Inventory<'d>,
    usage: &DeviceUsage<'d>,
    pools: &NodePools<'d>,
    claims: &ClaimsToAllocate<'d>,
) -> Option<AllocatedDevice<'d>> {
    let allocator = Allocator { inventory, usage, selectors: &AnyDevice, max_steps: MAX_STEPS };
    match allocator.allocate(pools, claims) {
        AllocationOutcome::Allocated(allocations) => {
            allocations.into_iter().next()?.devices.into_iter().next()
        }
        _ => None,
    }
}

/// The usage that an allocated device adds.
fn holding<'d>(inventory: &Inventory<'d>, device: &AllocatedDevice<'d>) -> DeviceHolding<'d> {
    let key = inventory.device_key(device.driver, device.pool, device.device).unwrap();
    let consumed = device.consumed_capacity.iter().map(|(name, amount)| (*name, amount.nano_value()));
    DeviceHolding { device: key, is_share: device.is_share, consumed: consumed.collect() }
}

#[test]
fn held_devices_are_given_back() {
    let text = slice(r#""devices":[{"name":"d0"},{"name":"d1"}]"#);
    let (slices, spec, class) = (parse(&text).unwrap(), exactly(""), parse("{}").unwrap());
    let spec = parse(&spec).unwrap();
    let semantics = AllocatorSemantics::V1_37;
    let inventory = Inventory::new(semantics, [(Version::V1, Slice(slices.root()))], []);
    let classes: Classes<'_> = [("c", Class(class.root()))].into_iter().collect();
    let claim =
        UnallocatedClaim { namespace: "app", name: "c1", version: Version::V1, spec: ClaimSpec(spec.root()) };
    let claims = ClaimsToAllocate::new([claim], [], &classes, &semantics).unwrap();
    let pools = inventory.pools_for(Node { name: "n1", labels: Value::absent() });
    let mut usage = DeviceUsage::default();
    let mut given = Vec::new();
    while let Some(device) = first_device(&inventory, &usage, &pools, &claims) {
        usage.add_holding(&holding(&inventory, &device));
        given.push(device);
    }
    assert_eq!(given.iter().map(|device| device.device).collect::<Vec<_>>(), ["d0", "d1"]);
    usage.remove_holding(&holding(&inventory, given.first().unwrap()));
    assert_eq!(first_device(&inventory, &usage, &pools, &claims).unwrap().device, "d0");
}

#[test]
fn node_selectors() {
    let node = parse(r#"{"metadata":{"name":"n1","labels":{"zone":"a","rank":"5","word":"x"}}}"#).unwrap();
    let node = Node::from_object(node.root());
    let matches = |term: &str| {
        let text = format!(r#"{{"nodeSelectorTerms":[{term}]}}"#);
        let selector = parse(&text).unwrap();
        node.matches(NodeSelector::of(selector.root()))
    };
    for (requirement, expected) in [
        (r#"{"key":"zone","operator":"In","values":["b","a"]}"#, true),
        (r#"{"key":"zone","operator":"In","values":["b"]}"#, false),
        (r#"{"key":"none","operator":"In","values":["b"]}"#, false),
        (r#"{"key":"zone","operator":"NotIn","values":["b"]}"#, true),
        (r#"{"key":"none","operator":"NotIn","values":["b"]}"#, true),
        (r#"{"key":"zone","operator":"Exists"}"#, true),
        (r#"{"key":"zone","operator":"DoesNotExist"}"#, false),
        (r#"{"key":"rank","operator":"Gt","values":["4"]}"#, true),
        (r#"{"key":"rank","operator":"Lt","values":["5"]}"#, false),
        (r#"{"key":"word","operator":"Gt","values":["4"]}"#, false),
        (r#"{"key":"zone","operator":"Near","values":["a"]}"#, false),
    ] {
        assert_eq!(matches(&format!(r#"{{"matchExpressions":[{requirement}]}}"#)), expected, "{requirement}");
    }
    assert!(matches(r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}"#));
    assert!(!matches(r#"{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}"#));
    assert!(!matches(r#"{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1","n2"]}]}"#));
    assert!(!matches("{}"));
    assert!(matches(r#"{},{"matchExpressions":[{"key":"zone","operator":"Exists"}]}"#));
    assert!(!matches(""));
}
