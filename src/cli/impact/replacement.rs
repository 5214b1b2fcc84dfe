//! How a FoundationDBCluster reacts to tainted nodes: which process groups are replaced, and when.

use std::io::Write as _;

use super::other_apis::OtherApiAssessment;
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::shared::ReportOutput;
use crate::cli::{table, to_safe_json};
use crate::report::record::{collect_records, record};
use tollgate_api::view::{FoundationDbCluster, View as _};
use tollgate_document::doc::Value;
use tollgate_engine::impact::other_apis::replacement::{
    FoundationDbReplacementForecast, FoundationDbReplacementInput, forecast_foundationdb_replacements,
    has_same_namespace_and_name,
};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime::{self, Timestamp};
use tollgate_formats::sanitize;

impl OtherApiAssessment<'_> {
    /// Reports which process groups of a FoundationDBCluster are replaced, and when.
    pub(super) fn report_foundationdb_process_replacements(
        self,
        object: Value<'_>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let OtherApiAssessment { arguments, state, now, .. } = self;
        let of_kind = |kind: &str| -> Vec<Value<'_>> {
            let is_of_kind =
                |value: &&Value<'_>| value.get("apiVersion").str() == "v1" && value.get("kind").str() == kind;
            state.iter().filter(is_of_kind).copied().collect()
        };
        let (nodes, pods) = (of_kind("Node"), of_kind("Pod"));
        if nodes.is_empty() {
            console
                .note("the dump contains no Nodes; create a dump with `kubectl get nodes,pods -A -o yaml`");
        }
        let moment = gotime::parse_rfc3339(now).map_err(Failure::Usage)?;
        let cluster = FoundationDbCluster::of(object);
        let replacement_seconds = arguments.replacement_takes;
        // A manifest has no status; the stored cluster has.
        let is_stored = |value: &&Value<'_>| {
            value.get("kind").str() == "FoundationDBCluster"
                && has_same_namespace_and_name(
                    FoundationDbCluster::of(**value).metadata(),
                    cluster.metadata(),
                )
        };
        let stored = state.iter().find(is_stored).map(|stored| stored.get("status"));
        let own = Some(object.get("status")).filter(|status| !status.is_null_or_absent());
        let forecast = forecast_foundationdb_replacements(FoundationDbReplacementInput {
            cluster,
            status: own.or(stored).unwrap_or(Value::absent()),
            nodes: &nodes,
            pods: &pods,
            now: moment,
            replacement_seconds,
        });
        let (name, namespace) = (cluster.metadata().name(), cluster.metadata().namespace());
        match arguments.output {
            ReportOutput::Json => {
                let groups = forecast.groups.iter().map(|group| {
                    record! {
                        "id": group.id,
                        "pod": group.pod,
                        "node": group.node,
                        "condition": group.condition.name(),
                        "detected": gotime::rfc3339(group.detected),
                        "replacing": group.replacing.map(gotime::rfc3339),
                        "replaced": group.replaced.map(gotime::rfc3339),
                        "waits": group.waits,
                        "because": group.to_string(),
                    }
                });
                let line = record! {
                    "cluster": name,
                    "namespace": namespace,
                    "at": now,
                    "processGroups": collect_records(groups),
                    "notes": forecast.notes,
                };
                writeln!(console, "{}", to_safe_json(&line)?)?;
            }
            ReportOutput::Text | ReportOutput::Html => {
                console.write_sanitized_text(&process_group_replacements_text(name, now, &forecast))?
            }
        }
        Ok(())
    }
}

/// Returns the process groups of a FoundationDBCluster that are replaced, as text.
fn process_group_replacements_text(
    name: &str,
    now: &str,
    forecast: &FoundationDbReplacementForecast<'_>,
) -> String {
    let (name, groups) =
        (sanitize::sanitize_as_line(name), count_with_noun(forecast.groups.len(), "process group"));
    let mut out = format!("FoundationDBCluster {name} (at {now})\n{groups} on tainted nodes\n");
    let time = |time: Option<Timestamp>| time.map_or("never".to_owned(), gotime::rfc3339);
    let rows = forecast.groups.iter().map(|group| {
        let waits = if group.waits { ", after others" } else { "" };
        vec![
            format!("{}{waits}", time(group.replaced)),
            group.id.to_owned(),
            group.pod.to_owned(),
            group.condition.name().to_owned(),
            time(group.replacing),
            group.to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        out.push('\n');
        let header = ["REPLACED", "PROCESS GROUP", "POD", "CONDITION", "MARKED", "BECAUSE"];
        out.push_str(&table::format_table(&header, &rows));
        out.push_str(
            "\nthe times are the earliest possible, because the operator acts only when it reconciles\n",
        );
    }
    for note in &forecast.notes {
        out.push_str("note: ");
        out.push_str(&sanitize::sanitize_as_line(note));
        out.push('\n');
    }
    out
}
