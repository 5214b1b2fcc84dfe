//! The recorded cases: 2,000 small states and pods with what upstream's allocator answers in two releases.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

mod availability;
mod stand_in;

use std::collections::BTreeMap;
use std::io::Read as _;
use tollgate_allocator::condition::{
    PostFilterResult, prefilter_rejection_message, scheduler_error_message, unschedulable_message,
};
use tollgate_allocator::{
    Allocation, AllocationNodes, AllocationOutcome, Allocator, AllocatorSemantics, ClaimsToAllocate, Classes,
    DEFAULT_MAX_STEPS, DeviceUsage, Inventory, Node, UnallocatedClaim,
};
use tollgate_api::profile::Version;
use tollgate_api::view::{Claim, Class, NodeRequirement, Slice, TaintRule, View as _};
use tollgate_document::doc::{Value, parse};

const CASES: &[u8] = include_bytes!("cases.jsonl.gz");

/// The recorded cases, one JSON object on each line.
fn case_lines() -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(CASES).read_to_string(&mut text).expect("gzip");
    text
}

/// Number of recorded cases, and in how many of them each part of the result agrees.
#[derive(Default, Clone, Copy)]
struct Agreement {
    cases: u32,
    scheduled: u32,
    devices: u32,
    capacity: u32,
    message: u32,
}

#[test]
fn recorded_cases() {
    let text = case_lines();
    let mut topics: BTreeMap<String, Agreement> = BTreeMap::new();
    let mut differences = Vec::new();
    for line in text.lines() {
        let doc = parse(line).expect("JSON");
        let case = doc.root();
        let topic = topics.entry(case.get("topic").text().to_owned()).or_default();
        for (release, semantics) in
            [("1.36", AllocatorSemantics::V1_36), ("1.37", AllocatorSemantics::V1_37_0)]
        {
            let expected = case.get("result").get(release);
            let expected = if expected.text() == "same" { case.get("result").get("1.36") } else { expected };
            let actual = allocate_case(case, semantics);
            topic.cases += 1;
            let before = *topic;
            compare(expected, &actual, topic);
            let agrees = |is: u32, was: u32| is > was;
            if !agrees(topic.scheduled, before.scheduled)
                || !agrees(topic.devices, before.devices)
                || !agrees(topic.capacity, before.capacity)
                || !agrees(topic.message, before.message)
            {
                let expected = expected.to_json();
                differences.push(format!("{} {release}: {actual:?}\n    {expected}", case.get("id").text()));
            }
        }
    }
    let mut all = Agreement::default();
    let mut table = format!("{:24} cases scheduled devices capacity message\n", "topic");
    let row = |name: &str, a: Agreement| {
        format!(
            "{name:24} {:5} {:9} {:7} {:8} {:7}\n",
            a.cases, a.scheduled, a.devices, a.capacity, a.message
        )
    };
    for (topic, a) in &topics {
        table += &row(topic, *a);
        all.cases += a.cases;
        all.scheduled += a.scheduled;
        all.devices += a.devices;
        all.capacity += a.capacity;
        all.message += a.message;
    }
    table += &row("all", all);
    let shown = differences.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert_eq!(all.cases, 4000);
    assert!(differences.is_empty(), "{table}\n{} differ:\n{shown}", differences.len());
    print!("{table}");
}

/// A result in the format of the recorded results.
#[derive(Debug)]
enum Answer {
    /// For each allocated claim: its devices with requests and consumed capacity, and the node selector.
    Scheduled(Vec<(Vec<Device>, String)>),
    Not {
        reason: &'static str,
        message: String,
    },
}

#[derive(Debug, PartialEq)]
struct Device {
    name: String,
    consumed: BTreeMap<String, String>,
}

fn allocate_case(case: Value<'_>, semantics: AllocatorSemantics) -> Answer {
    let items = |kind: &'static str| {
        let before = case.get("before").get("items").items();
        before.chain(case.get("create").items()).filter(move |item| item.get("kind").text() == kind)
    };
    let slices = items("ResourceSlice").map(|slice| (Version::V1, Slice(slice)));
    let inventory = Inventory::new(semantics, slices, items("DeviceTaintRule").map(TaintRule));
    let claims: Vec<Claim<'_>> = items("ResourceClaim").map(Claim).collect();
    let results = claims.iter().filter_map(|claim| claim.status().allocation());
    let results = results.flat_map(|allocation| allocation.devices().results().iter().collect::<Vec<_>>());
    let usage = DeviceUsage::from_results(&inventory, results);
    let name = |object: Value<'_>| object.get("metadata").get("name").text().to_owned();
    let names: Vec<String> = items("DeviceClass").map(name).collect();
    let classes: Classes<'_> =
        names.iter().map(String::as_str).zip(items("DeviceClass").map(Class)).collect();

    let pod = items("Pod").next().expect("a pod");
    let (mut unallocated, mut allocated) = (Vec::new(), Vec::new());
    for reference in pod.get("spec").get("resourceClaims").items() {
        let wanted = reference.get("resourceClaimName").text();
        let claim = *claims.iter().find(|claim| claim.metadata().name() == wanted).expect("a claim");
        match claim.status().allocation() {
            Some(allocation) => allocated.push(AllocationNodes::from_status(allocation)),
            None => unallocated.push(UnallocatedClaim {
                namespace: claim.metadata().namespace(),
                name: claim.metadata().name(),
                version: Version::V1,
                spec: claim.spec(),
            }),
        }
    }
    let nodes = items("Node").count();
    let claims = match ClaimsToAllocate::new(unallocated, allocated, &classes, &semantics) {
        Ok(claims) => claims,
        Err(reason) => {
            return unschedulable(prefilter_rejection_message(&semantics, nodes, &reason.to_string()));
        }
    };
    let allocator = Allocator {
        inventory: &inventory,
        usage: &usage,
        selectors: &stand_in::matches,
        max_steps: DEFAULT_MAX_STEPS,
    };
    let mut reasons = BTreeMap::new();
    for node in items("Node") {
        if node.get("spec").get("unschedulable").bool() == Some(true) {
            *reasons.entry("node(s) were unschedulable".to_owned()).or_default() += 1;
            continue;
        }
        match allocator.allocate(&inventory.pools_for(Node::from_object(node)), &claims) {
            AllocationOutcome::Allocated(allocations) => {
                return Answer::Scheduled(allocations.iter().map(describe).collect());
            }
            AllocationOutcome::Unschedulable(reason) => *reasons.entry(reason.to_string()).or_default() += 1,
            AllocationOutcome::Failed(error) => {
                return Answer::Not { reason: "SchedulerError", message: scheduler_error_message(&error) };
            }
            AllocationOutcome::Unsupported(what) => panic!("{what}"),
            AllocationOutcome::GaveUp { steps } => panic!("gave up after {steps} steps"),
        }
    }
    unschedulable(unschedulable_message(&semantics, nodes, &reasons, PostFilterResult::NothingChanged))
}

fn unschedulable(message: String) -> Answer {
    Answer::Not { reason: "Unschedulable", message }
}

fn describe(allocation: &Allocation<'_>) -> (Vec<Device>, String) {
    let devices = allocation.devices.iter().map(|device| {
        let admin = if device.admin_access { " admin" } else { "" };
        let consumed = device.consumed_capacity.iter();
        Device {
            name: format!(
                "{} {}/{}/{}{admin}",
                device.request_name_with_alternative(),
                device.driver,
                device.pool,
                device.device
            ),
            consumed: consumed
                .map(|(name, amount)| ((*name).to_owned(), amount.text().into_owned()))
                .collect(),
        }
    });
    let requirement = |requirement: &NodeRequirement<'_>| requirement.json().to_json();
    let join = |list: &[NodeRequirement<'_>]| list.iter().map(requirement).collect::<Vec<_>>().join(",");
    let nodes = match &allocation.nodes {
        AllocationNodes::AllNodes => String::new(),
        AllocationNodes::Node(name) => {
            format!(r#"fields {{"key":"metadata.name","operator":"In","values":["{name}"]}} labels "#)
        }
        AllocationNodes::Selector(_) => panic!("only stored allocations have selectors"),
        AllocationNodes::Matching { fields, labels } => {
            format!("fields {} labels {}", join(fields), join(labels))
        }
    };
    (devices.collect(), nodes)
}

/// Converts a recorded result to the same format.
fn recorded_allocations(result: Value<'_>) -> Vec<(Vec<Device>, String)> {
    let claims =
        result.get("claims").items().filter(|claim| claim.get("allocatedBefore").bool() != Some(true));
    let device = |device: Value<'_>| {
        let admin = if device.get("adminAccess").bool() == Some(true) { " admin" } else { "" };
        let consumed = device.get("consumedCapacity").members();
        let text = |field: &str| device.get(field).text();
        Device {
            name: format!(
                "{} {}/{}/{}{admin}",
                text("request"),
                text("driver"),
                text("pool"),
                text("device")
            ),
            consumed: consumed
                .map(|(name, value)| (name.text().to_owned(), value.text().to_owned()))
                .collect(),
        }
    };
    let describe = |claim: Value<'_>| {
        let term = claim.get("nodeSelector").get("nodeSelectorTerms").item(0);
        let join = |list: Value<'_>| list.items().map(Value::to_json).collect::<Vec<_>>().join(",");
        let nodes =
            format!("fields {} labels {}", join(term.get("matchFields")), join(term.get("matchExpressions")));
        let nodes = if claim.get("nodeSelector").exists() { nodes } else { String::new() };
        (claim.get("devices").items().map(device).collect(), nodes)
    };
    claims.map(describe).collect()
}

fn compare(expected: Value<'_>, actual: &Answer, agreement: &mut Agreement) {
    let scheduled = expected.get("scheduled").bool() == Some(true);
    let (mut devices, mut capacity, mut message) = (true, true, true);
    match actual {
        Answer::Scheduled(claims) if scheduled => {
            agreement.scheduled += 1;
            let recorded = recorded_allocations(expected);
            let names = |claims: &[(Vec<Device>, String)]| -> Vec<String> {
                let names = |(devices, nodes): &(Vec<Device>, String)| {
                    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
                    format!("{} on {nodes}", names.join(","))
                };
                claims.iter().map(names).collect()
            };
            devices = names(claims) == names(&recorded);
            let amounts = |claims: &[(Vec<Device>, String)]| -> Vec<BTreeMap<String, String>> {
                claims.iter().flat_map(|(devices, _)| devices).map(|device| device.consumed.clone()).collect()
            };
            capacity = amounts(claims) == amounts(&recorded);
        }
        Answer::Not { reason, message: text } if !scheduled && expected.get("reason").text() == *reason => {
            agreement.scheduled += 1;
            let recorded = expected.get("message").text();
            message = recorded.split(" preemption:").next() == Some(text.as_str());
        }
        Answer::Scheduled(_) | Answer::Not { .. } => {
            (devices, capacity, message) = (false, false, false);
        }
    }
    agreement.devices += u32::from(devices);
    agreement.capacity += u32::from(capacity);
    agreement.message += u32::from(message);
}
