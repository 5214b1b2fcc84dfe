//! Ids, digests, the order of cards, and what happens to maps that are too large.

use super::{
    DevicesReport, NaturallyOrderedName, devices_map_within_bytes, node_and_pool_card_drafts,
    summarize_devices_by_main_state,
};

fn report(devices: &str) -> DevicesReport {
    serde_json::from_str(&format!("{{\"devices\":[{devices}]}}")).expect("a report")
}

fn device(node: &str, name: &str, state: &str) -> String {
    format!(r#"{{"driver":"d","pool":"{node}","device":"{name}","node":"{node}","states":["{state}"]}}"#)
}

#[test]
fn a_card_changes_its_digest_and_keeps_its_id() {
    let before = report(&[device("a", "0", "free"), device("b", "0", "free")].join(","));
    let after = report(&[device("a", "0", "free"), device("b", "0", "allocated")].join(","));
    let (before, after) = (node_and_pool_card_drafts(&before), node_and_pool_card_drafts(&after));
    let ids = |cards: &[super::NodeOrPoolCardDraft<'_>]| {
        cards.iter().map(|card| card.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&before), ids(&after));
    let changed: Vec<bool> = before.iter().zip(&after).map(|(one, two)| one.digest != two.digest).collect();
    assert_eq!(changed, [false, true]);
}

#[test]
fn devices_are_counted_once() {
    for (states, expected) in [
        ("", ""),
        ("free allocated", "1 allocated, 1 free"),
        ("free allocated+tainted allocated", "2 allocated (1 of them tainted), 1 free"),
        (
            "allocated+tainted tainted tainted+blocked blocked",
            "1 allocated (also tainted), 2 tainted, 1 blocked",
        ),
        ("shared shared+allocated unpublished", "1 allocated, 1 shared, 1 unpublished"),
    ] {
        let device = |states: &str| device("a", "0", &states.replace('+', "\",\""));
        let devices: Vec<String> = states.split_whitespace().map(device).collect();
        assert_eq!(
            summarize_devices_by_main_state(report(&devices.join(",")).devices.iter()),
            expected,
            "{states}"
        );
    }
}

#[test]
fn nodes_are_in_the_order_of_people() {
    let mut names = ["node-10", "node-2", "node-2a", "node", "a9", "node-02", "node-99999999999999999999"];
    names.sort_by_key(|name| NaturallyOrderedName(name));
    assert_eq!(names, ["a9", "node", "node-99999999999999999999", "node-02", "node-2", "node-2a", "node-10"]);
}

#[test]
fn what_does_not_fit_is_counted_and_the_page_says_so() {
    let devices: Vec<String> = (0..400)
        .map(|index| {
            device(
                &format!("n{}", index / 4),
                &index.to_string(),
                if index == 399 { "tainted" } else { "free" },
            )
        })
        .collect();
    let report = report(&devices.join(","));
    let all = devices_map_within_bytes(&report, 1_000_000).0;
    assert!(!all.contains("10 MB") && all.matches("<li class=\"f\"").count() == 399, "{all}");
    let some = devices_map_within_bytes(&report, 30_000).0;
    assert!(some.len() < 40_000, "{}", some.len());
    assert!(some.contains("10 MB") && some.contains("class=\"node sum\""), "{some}");
    assert!(some.contains("<li class=\"t\""), "what is unusual is shown first");
}
