//! The page of `tollgate audit`.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{TABLE_BYTE_BUDGET, joined, namespace_and_bold_name, tile_class_bad_unless_zero, tiles};
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::map::NamespaceAndName;
use crate::record::{self, Record};
use crate::table::{DUE_OR_OVERDUE, FINDING_COUNTS, FINDINGS, Table};
use crate::text::SafeText;

/// The page for the report of `audit -o json`. `at` is the time of the audit.
pub fn audit(json: &str, at: &str, page: &ReportProvenance) -> serde_json::Result<String> {
    let report = record::parse(json)?;
    let report = Record(report.root());
    let (summary, audit) = (report.get("summary"), report.get("audit"));
    let [checked, valid, invalid, unreadable, denied, warned] =
        ["checked", "valid", "invalid", "unreadable", "denied", "warned"].map(|key| summary.count(key));
    // A valid object can have warnings.
    let is_accepted =
        |object: &Record<'_>| &*object.text("verdict") == "valid" && object.list("findings").len() > 0;
    let accepted = report.list("results").filter(is_accepted).count();
    let rules = counts_by_name(audit.get("byRule"));
    let frame = HtmlPage {
        page,
        title: "Audit",
        lead: html! {
            strong { (counted(checked, "object")) " checked" } ": "
            strong { (group_thousands(invalid)) " would be denied" } ", "
            (group_thousands(accepted)) " would be accepted with findings, " (group_thousands(valid.saturating_sub(accepted)))
            " without findings."
            @if unreadable > 0 { " " strong.warn { (counted(unreadable, "object")) " cannot be read." } }
        },
        profile: &joined(&report.texts("profiles")),
        at,
        body: html! {
            (tiles(&[
                ("calm", checked, "objects checked"),
                (tile_class_bad_unless_zero(invalid), invalid, "objects that would be denied"),
                (tile_class_bad_unless_zero(denied), denied, "findings that deny"),
                (tile_class_bad_unless_zero(warned), warned, "warnings"),
                (tile_class_bad_unless_zero(unreadable), unreadable, "unreadable objects"),
            ]))
            section {
                h2 { "Findings" }
                @if invalid + accepted > 0 { ul.notes {
                    li { strong { "deny" } ": the object would be denied if it were created or updated now." }
                    li {
                        strong { "warn" } ": the object would be accepted with a warning. If its message says that something is not "
                        "allowed, the policy only warns so far."
                    }
                    li { "Next: run " code { "tollgate explain RULE" } " for a rule of the table, correct the objects, and audit again." }
                    @if has_finding_on_immutable_object(report) { li {
                        "The specs of ResourceClaims and ResourceClaimTemplates cannot be edited. Create a corrected template with another "
                        "name, and refer to it in the pod templates of the workloads. Existing claims stay as they are: a claim that was "
                        "created from a template is deleted with its pod. Delete other claims when no pod uses them, and create them again."
                    } }
                } }
                (findings(report, page))
            }
            @if !rules.is_empty() {
                section {
                    h2 { "Findings by rule" }
                    (finding_counts_table(&rules, "Findings of each rule", |rule| rule_link(rule, page)))
                }
                section {
                    h2 { "Findings by namespace" }
                    (finding_counts_table(&counts_by_name(audit.get("byNamespace")), "Findings in each namespace", namespace_or_cluster_scoped))
                }
            }
            (due_soon_or_overdue_section(audit))
            (listed_resources_section(audit))
        },
        read_more: &[
            ("guides/audit.md", "Audit a cluster"),
            ("reference/rules.md", "All rules"),
            ("reference/json.md", "The same report as JSON"),
        ],
    };
    Ok(frame.render_page_or_part())
}

/// True if a finding is about an object whose spec the API server does not let anyone edit.
fn has_finding_on_immutable_object(report: Record<'_>) -> bool {
    let is_immutable =
        |object: Record<'_>| matches!(&*object.text("kind"), "ResourceClaim" | "ResourceClaimTemplate");
    report.list("results").any(|object| is_immutable(object) && object.list("findings").len() > 0)
}

/// The name of a rule, with a link to its page.
fn rule_link(rule: &SafeText, page: &ReportProvenance) -> Markup {
    // Rules are named by Tollgate; whatever else is in a report is text.
    let is_rule = rule.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    html! {
        @if is_rule { a href={ (page.docs) "/rules/" (rule) ".md" } rel="noreferrer" { (rule) } } @else { (rule) }
    }
}

fn namespace_or_cluster_scoped(name: &SafeText) -> Markup {
    html! { @if name.is_empty() { "(cluster-scoped)" } @else { (name) } }
}

fn findings(report: Record<'_>, page: &ReportProvenance) -> Markup {
    let mut table = Table::new(&FINDINGS, TABLE_BYTE_BUDGET);
    for object in report.list("results") {
        let name = || {
            let NamespaceAndName { namespace, name } = object.namespace_and_name();
            html! { (object.text("kind")) " " @if !namespace.is_empty() { (namespace) "/" } b { (name) } }
        };
        for finding in object.list("findings") {
            let (level, rule) = (finding.text("level"), finding.text("rule"));
            let class = match &*level {
                "deny" => "deny",
                "warn" => "bad",
                _ => "calm",
            };
            table.add_row_or_count_omitted([
                name(),
                html! { span.tag.(class) { (level) } },
                html! {
                    (rule_link(&rule, page))
                    @if let Some(policy) = finding.text_if_any("policy") { p.hint { (policy) } }
                },
                html! {
                    p { (finding.text("message")) }
                    @if let Some(from) = finding.text_if_any("deniedFrom") { p.hint { "denied from " (from) } }
                    @if let Some(help) = finding.text_if_any("help") { p.hint { "help: " (help) } }
                },
            ]);
        }
        let error = object.get("error");
        if error.exists() {
            table.add_row_or_count_omitted([
                name(),
                html! { span.tag.deny { "unreadable" } },
                html! { "–" },
                html! { (error.text("message")) },
            ]);
        }
    }
    table.finish("Everything that was found, object by object", "Nothing was found.")
}

/// The records of an object by their names, in the order in which the names are shown.
fn counts_by_name(records: Record<'_>) -> BTreeMap<SafeText, Record<'_>> {
    let records = records.0.members();
    records.map(|(name, counts)| (SafeText::from(name.text()), Record(counts))).collect()
}

fn finding_counts_table(
    counts: &BTreeMap<SafeText, Record<'_>>,
    caption: &str,
    name: impl Fn(&SafeText) -> Markup,
) -> Markup {
    let mut table = Table::new(&FINDING_COUNTS, TABLE_BYTE_BUDGET / 16);
    for (key, count) in counts {
        let [denied, warned, audited, objects] = ["denied", "warned", "audited", "objects"]
            .map(|key| html! { (group_thousands(count.count(key))) });
        table.add_row_or_count_omitted([name(key), denied, warned, audited, objects]);
    }
    table.finish(caption, "None")
}

/// Tables of exceptions that end soon, and of rules that should have ended.
fn due_soon_or_overdue_section(audit: Record<'_>) -> Markup {
    let mut table = Table::new(&DUE_OR_OVERDUE, TABLE_BYTE_BUDGET / 16);
    for entry in audit.list("expiringEntries") {
        table.add_row_or_count_omitted([
            html! { "allow entry " (entry.text("entry")) " of " b { (entry.text("policy")) } },
            html! { "expires " time { (entry.text("expires")) } },
            html! { (entry.text("tolerations")) },
        ]);
    }
    for claim in audit.list("failingClaims") {
        table.add_row_or_count_omitted([
            html! { "claim " (namespace_and_bold_name(claim)) },
            html! { "denied from " time { (claim.text("from")) } },
            html! { "by " (claim.text("policy")) " if it is created again" },
        ]);
    }
    for rule in audit.list("forgottenRules") {
        table.add_row_or_count_omitted([
            html! { "DeviceTaintRule " b { (rule.text("name")) } },
            html! { @if let Some(expired) = rule.text_if_any("expired") { "expired " time { (expired) } } @else { "has no end" } },
            html! { (counted(rule.count("devices"), "device")) @if !rule.is("hasOwner") { "; has no owner" } },
        ]);
    }
    let is_empty =
        ["expiringEntries", "failingClaims", "forgottenRules"].map(|key| audit.list(key).len()) == [0; 3];
    html! {
        @if !is_empty {
            section { h2 { "Due soon or overdue" } (table.finish("What ends soon, and what should have ended", "None")) }
        }
    }
}

fn listed_resources_section(audit: Record<'_>) -> Markup {
    html! {
        @if audit.list("listed").len() > 0 {
            section {
                h2 { "What was read" }
                ul.notes {
                    @for listed in audit.list("listed") {
                        li { (listed.text("resource")) " (" (listed.text("apiVersion")) "): " (counted(listed.count("objects"), "object")) }
                    }
                    @for resource in audit.texts("notServed") { li { (resource) ": not served by the API server" } }
                }
            }
        }
    }
}
