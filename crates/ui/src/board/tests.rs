//! What the store hands to live pages: parts that changed, and devices by the ids of their cells.

use super::{DeviceName, LivePageStore};
use crate::frame::PageFacts;

fn device_json(node: &str, name: &str, state: &str) -> String {
    format!(
        r#"{{"driver":"gpu.example.com","pool":"{node}","device":"{name}","node":"{node}","states":["{state}"],"taints":[],"holders":[],"classes":[]}}"#
    )
}

fn publish(board: &LivePageStore, devices: &[String]) {
    let report =
        format!(r#"{{"profile":"1.37","at":"2026-11-17T00:00:00Z","devices":[{}]}}"#, devices.join(","));
    board.publish(serde_json::from_str(&report).expect("a report"), "2026-11-17T00:00:00Z", None);
}

fn text(answer: &crate::Answer) -> String {
    String::from_utf8(answer.body.to_vec()).expect("UTF-8")
}

#[test]
fn a_page_gets_the_cards_that_changed() {
    let board = LivePageStore::new(PageFacts::default());
    publish(&board, &[device_json("a", "0", "free"), device_json("b", "0", "free")]);
    let first = *board.revision().borrow();
    let page = text(&board.get("/").expect("a page"));
    assert!(page.contains(&format!("data-revision=\"{first}\"")), "{page}");
    assert!(text(&board.changes_since(first)).contains(r#""cards":[],"gone":[]"#));
    publish(
        &board,
        &[device_json("a", "0", "free"), device_json("b", "0", "allocated"), device_json("c", "0", "free")],
    );
    let changes = text(&board.changes_since(first));
    assert_eq!(changes.matches("<article").count(), 2, "{changes}");
    assert!(
        !changes.contains(">a</h3>") && changes.contains(">b</h3>") && changes.contains(">c</h3>"),
        "{changes}"
    );
    assert!(changes.contains("\"lead\":"), "the totals changed: {changes}");
    assert!(!changes.contains("\"taints\":"), "nothing about taints changed: {changes}");
    publish(&board, &[device_json("a", "0", "free"), device_json("c", "0", "free")]);
    let changes = text(&board.changes_since(first + 1));
    assert_eq!(changes.matches("<article").count(), 0);
    assert!(changes.contains("\"gone\":[\"n"), "{changes}");
    assert!(text(&board.changes_since(99)).contains("\"isForgotten\":true"), "a page of another run");
}

#[test]
fn an_old_state_stays_with_the_reason() {
    let board = LivePageStore::new(PageFacts::default());
    publish(&board, &[device_json("a", "0", "free")]);
    let before = *board.revision().borrow();
    let trouble = || "the API server <does> not answer: \u{202e}\u{1b}".to_owned();
    board.mark_out_of_date(trouble(), None);
    let has_taken =
        |time: &str| text(&board.changes_since(before)).contains(&format!("\"taken\":\"{time}\""));
    assert!(has_taken("2026-11-17T00:00:00Z"), "the time of the last change");
    board.mark_out_of_date(trouble(), Some("2026-11-17T08:00:00Z".to_owned()));
    assert!(has_taken("2026-11-17T08:00:00Z"), "the time of the last contact");
    let changes = text(&board.changes_since(before));
    assert!(changes.contains(r#""trouble":"the API server <does> not answer: \\u202e\\u001b""#), "{changes}");
    let page = text(&board.get("/").unwrap());
    assert!(
        page.contains(r#"data-trouble="the API server &lt;does&gt; not answer: \u202e\u001b""#),
        "{page}"
    );
    publish(&board, &[device_json("a", "0", "free")]);
    assert!(text(&board.changes_since(before)).contains("\"trouble\":null"));
}

#[test]
fn cells_lead_to_devices() {
    let board = LivePageStore::new(PageFacts::default());
    publish(&board, &[device_json("a", "gpu-0", "free"), device_json("a", "gpu-1", "tainted")]);
    let page = text(&board.get("/").expect("a page"));
    let id = page
        .split("id=\"")
        .filter_map(|rest| rest.split('"').next())
        .filter(|id| id.len() == 13)
        .last()
        .expect("a cell");
    let found = board.device_of_cell(id).expect("a device");
    let expected = DeviceName { driver: "gpu.example.com".into(), pool: "a".into(), device: "gpu-1".into() };
    assert_eq!(found, expected);
    assert_eq!(found.driver_pool_device(), "gpu.example.com/a/gpu-1");
    let details =
        text(&board.device_details(id, &crate::DevicesSharingCounters::default()).expect("details"));
    assert!(details.contains("tainted") && details.contains(&format!("/what-if#{id}")), "{details}");
    assert_eq!(board.device_of_cell("d000000000000"), None);
    assert!(board.get("/nowhere").is_none());
}
