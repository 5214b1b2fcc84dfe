//! The page of `tollgate audit`.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{TABLE_BYTE_BUDGET, tile_class_bad_unless_zero, tiles};
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::table::{DUE_OR_OVERDUE, FINDING_COUNTS, FINDINGS, Table};
use crate::text::SafeText;

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Report {
    profiles: Vec<SafeText>,
    results: Vec<Object>,
    summary: Summary,
    audit: AuditListingsAndCounts,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Object {
    kind: SafeText,
    namespace: SafeText,
    name: SafeText,
    verdict: SafeText,
    findings: Vec<Finding>,
    error: Option<UnreadableObjectError>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct UnreadableObjectError {
    message: SafeText,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Finding {
    rule: SafeText,
    level: SafeText,
    message: SafeText,
    policy: Option<SafeText>,
    help: Option<SafeText>,
    denied_from: Option<SafeText>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Summary {
    checked: usize,
    valid: usize,
    invalid: usize,
    unreadable: usize,
    denied: usize,
    warned: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AuditListingsAndCounts {
    listed: Vec<ListedResourceType>,
    not_served: Vec<SafeText>,
    by_rule: BTreeMap<SafeText, FindingCountsByLevel>,
    by_namespace: BTreeMap<SafeText, FindingCountsByLevel>,
    expiring_entries: Vec<ExpiringAllowEntry>,
    failing_claims: Vec<ClaimDeniedIfRecreated>,
    forgotten_rules: Vec<ForgottenTaintRule>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListedResourceType {
    resource: SafeText,
    api_version: SafeText,
    objects: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct FindingCountsByLevel {
    denied: usize,
    warned: usize,
    audited: usize,
    objects: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct ExpiringAllowEntry {
    policy: SafeText,
    entry: SafeText,
    tolerations: SafeText,
    expires: SafeText,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct ClaimDeniedIfRecreated {
    namespace: SafeText,
    name: SafeText,
    from: SafeText,
    policy: SafeText,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ForgottenTaintRule {
    name: SafeText,
    expired: Option<SafeText>,
    has_owner: bool,
    devices: usize,
}

/// The page for the report of `audit -o json`. `at` is the time of the audit.
pub fn audit(json: &str, at: &str, page: &ReportProvenance) -> serde_json::Result<String> {
    let report: Report = serde_json::from_str(json)?;
    let Summary { checked, valid, invalid, unreadable, denied, warned } = report.summary;
    // A valid object can have warnings.
    let is_accepted = |object: &&Object| &*object.verdict == "valid" && !object.findings.is_empty();
    let accepted = report.results.iter().filter(is_accepted).count();
    let profiles: Vec<&str> = report.profiles.iter().map(|profile| &**profile).collect();
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
        profile: &profiles.join(", "),
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
                    @if has_finding_on_immutable_object(&report.results) { li {
                        "The specs of ResourceClaims and ResourceClaimTemplates cannot be edited. Create a corrected template with another "
                        "name, and refer to it in the pod templates of the workloads. Existing claims stay as they are: a claim that was "
                        "created from a template is deleted with its pod. Delete other claims when no pod uses them, and create them again."
                    } }
                } }
                (findings(&report.results, page))
            }
            @if !report.audit.by_rule.is_empty() {
                section {
                    h2 { "Findings by rule" }
                    (finding_counts_table(&report.audit.by_rule, "Findings of each rule", |rule| rule_link(rule, page)))
                }
                section {
                    h2 { "Findings by namespace" }
                    (finding_counts_table(&report.audit.by_namespace, "Findings in each namespace", namespace_or_cluster_scoped))
                }
            }
            (due_soon_or_overdue_section(&report.audit))
            (listed_resources_section(&report.audit))
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
fn has_finding_on_immutable_object(objects: &[Object]) -> bool {
    let is_immutable = |object: &Object| matches!(&*object.kind, "ResourceClaim" | "ResourceClaimTemplate");
    objects.iter().any(|object| is_immutable(object) && !object.findings.is_empty())
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

fn findings(objects: &[Object], page: &ReportProvenance) -> Markup {
    let mut table = Table::new(&FINDINGS, TABLE_BYTE_BUDGET);
    for object in objects {
        let name = || {
            html! {
                (object.kind) " "
                @if !object.namespace.is_empty() { (object.namespace) "/" }
                b { (object.name) }
            }
        };
        for finding in &object.findings {
            let class = match &*finding.level {
                "deny" => "deny",
                "warn" => "bad",
                _ => "calm",
            };
            table.add_row_or_count_omitted([
                name(),
                html! { span.tag.(class) { (finding.level) } },
                html! {
                    (rule_link(&finding.rule, page))
                    @if let Some(policy) = &finding.policy { p.hint { (policy) } }
                },
                html! {
                    p { (finding.message) }
                    @if let Some(from) = &finding.denied_from { p.hint { "denied from " (from) } }
                    @if let Some(help) = &finding.help { p.hint { "help: " (help) } }
                },
            ]);
        }
        if let Some(error) = &object.error {
            table.add_row_or_count_omitted([
                name(),
                html! { span.tag.deny { "unreadable" } },
                html! { "–" },
                html! { (error.message) },
            ]);
        }
    }
    table.finish("Everything that was found, object by object", "Nothing was found.")
}

fn finding_counts_table(
    counts: &BTreeMap<SafeText, FindingCountsByLevel>,
    caption: &str,
    name: impl Fn(&SafeText) -> Markup,
) -> Markup {
    let mut table = Table::new(&FINDING_COUNTS, TABLE_BYTE_BUDGET / 16);
    for (key, count) in counts {
        let [denied, warned, audited, objects] = [count.denied, count.warned, count.audited, count.objects]
            .map(|count| html! { (group_thousands(count)) });
        table.add_row_or_count_omitted([name(key), denied, warned, audited, objects]);
    }
    table.finish(caption, "None")
}

/// Tables of exceptions that end soon, and of rules that should have ended.
fn due_soon_or_overdue_section(audit: &AuditListingsAndCounts) -> Markup {
    let mut table = Table::new(&DUE_OR_OVERDUE, TABLE_BYTE_BUDGET / 16);
    for entry in &audit.expiring_entries {
        table.add_row_or_count_omitted([
            html! { "allow entry " (entry.entry) " of " b { (entry.policy) } },
            html! { "expires " time { (entry.expires) } },
            html! { (entry.tolerations) },
        ]);
    }
    for claim in &audit.failing_claims {
        table.add_row_or_count_omitted([
            html! { "claim " (claim.namespace) "/" b { (claim.name) } },
            html! { "denied from " time { (claim.from) } },
            html! { "by " (claim.policy) " if it is created again" },
        ]);
    }
    for rule in &audit.forgotten_rules {
        table.add_row_or_count_omitted([
            html! { "DeviceTaintRule " b { (rule.name) } },
            html! { @if let Some(expired) = &rule.expired { "expired " time { (expired) } } @else { "has no end" } },
            html! { (counted(rule.devices, "device")) @if !rule.has_owner { "; has no owner" } },
        ]);
    }
    html! {
        @if !(audit.expiring_entries.is_empty() && audit.failing_claims.is_empty() && audit.forgotten_rules.is_empty()) {
            section { h2 { "Due soon or overdue" } (table.finish("What ends soon, and what should have ended", "None")) }
        }
    }
}

fn listed_resources_section(audit: &AuditListingsAndCounts) -> Markup {
    html! {
        @if !audit.listed.is_empty() {
            section {
                h2 { "What was read" }
                ul.notes {
                    @for listed in &audit.listed {
                        li { (listed.resource) " (" (listed.api_version) "): " (counted(listed.objects, "object")) }
                    }
                    @for resource in &audit.not_served { li { (resource) ": not served by the API server" } }
                }
            }
        }
    }
}
