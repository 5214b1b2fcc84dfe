//! Background tasks that are reported in `/readyz` and `/metrics`, and the cache of namespace labels.
//!
//! The server does not know what the tasks do (a registration, a watch of a cluster); the caller attaches them. None of
//! them is called during a request, except to fetch the labels of a namespace that is not cached.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_engine::engine::OwnedLabels;

/// True while the server answers requests: from when both ports are open until the drain begins. Clones share the
/// flag.
#[derive(Clone, Debug, Default)]
pub struct ServingFlag(Arc<AtomicBool>);

impl ServingFlag {
    /// True while both ports are open and the drain has not begun.
    pub fn is_serving(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }
}

/// All tasks that run next to the server.
#[derive(Clone, Default)]
pub struct BackgroundTasks {
    /// Tasks with a status.
    pub tasks: Vec<BackgroundTask>,
    /// Source of namespace labels; without it, the labels loaded with the policies are used.
    pub namespaces: Option<Arc<dyn NamespaceLabelCache>>,
}

/// The result of looking up the labels of a namespace in the cache.
#[derive(Clone, Debug)]
pub enum NamespaceLabelsResult {
    /// The namespace exists, with these labels.
    Known(OwnedLabels),
    /// The namespace is not in the cache; its labels can be fetched from the API server.
    NotCached,
    /// The labels cannot be read now, from the cache or from the API server.
    Unavailable,
}

/// The result of [`NamespaceLabelCache::fetch`].
pub type LabelsFuture = Pin<Box<dyn Future<Output = Result<OwnedLabels, String>> + Send>>;

/// A cache of namespace labels that the server reads, such as a watch of the cluster.
pub trait NamespaceLabelCache: std::fmt::Debug + Send + Sync {
    /// Starts to watch namespace labels, because a policy needs them.
    fn start_label_watch_if_not_running(&self);
    /// True if all namespaces were listed at least once.
    fn is_synced(&self) -> bool;
    /// Labels from the cache; never blocks.
    fn cached_labels(&self, namespace: &str) -> NamespaceLabelsResult;
    /// How many seconds ago the cache was current, if it may be out of date; `None` if it is current, or
    /// if nothing was listed yet.
    fn age_seconds_if_stale(&self) -> Option<u64>;
    /// Fetches the labels of a namespace that is not cached.
    fn fetch(&self, namespace: &str) -> LabelsFuture;
}

/// A task that runs next to the server.
#[derive(Clone)]
pub struct BackgroundTask {
    /// Its name in `/readyz?verbose`.
    pub name: &'static str,
    /// Returns its current status.
    pub status: Arc<dyn Fn() -> ComponentStatus + Send + Sync>,
}

/// The status of a background task, for `/readyz` and metrics.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ComponentStatus {
    /// True if the task does not keep the server from being ready.
    pub ready: bool,
    /// True if something is wrong that does not affect requests: `/readyz?verbose` shows it, and its status code stays
    /// 200.
    pub degraded: bool,
    /// The status in words.
    pub message: String,
    /// The values that the task adds to `/metrics`.
    pub samples: Vec<MetricSample>,
}

/// One value of a metric, with its name and labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricSample {
    /// Name of the metric without the prefix `tollgate_`. Names of counters end in `_total`.
    pub name: &'static str,
    /// The HELP text of the metric: what it counts.
    pub help: &'static str,
    /// Label name and value, both from a fixed set.
    pub label: Option<(&'static str, &'static str)>,
    pub value: i64,
}

/// Inserts samples before `# EOF`, which ends an OpenMetrics text.
pub(super) fn insert_samples_before_eof(text: &mut String, mut samples: Vec<MetricSample>) {
    if samples.is_empty() {
        return;
    }
    let end = text.trim_end().strip_suffix("# EOF").map_or(text.len(), str::len);
    text.truncate(end);
    // OpenMetrics wants all samples of a metric together.
    samples.sort_by_key(|sample| sample.name);
    let mut last = "";
    for MetricSample { name, help, label, value } in samples {
        let family = name.strip_suffix("_total").unwrap_or(name);
        // Writing to a `String` cannot fail.
        if name != last {
            let kind = if family == name { "gauge" } else { "counter" };
            let _ = write!(text, "# HELP tollgate_{family} {help}.\n# TYPE tollgate_{family} {kind}\n");
            last = name;
        }
        let _ = match label {
            Some((label, of)) => writeln!(text, "tollgate_{name}{{{label}=\"{of}\"}} {value}"),
            None => writeln!(text, "tollgate_{name} {value}"),
        };
    }
    text.push_str("# EOF\n");
}

#[cfg(test)]
mod tests {
    use super::{MetricSample, insert_samples_before_eof};

    #[test]
    fn samples_stand_together_before_the_end() {
        let sample =
            |name, of, value| MetricSample { name, help: "How often", label: Some(("of", of)), value };
        let mut text = "a 1\n# EOF\n".to_owned();
        insert_samples_before_eof(
            &mut text,
            vec![sample("b_total", "x", 1), sample("c", "x", 2), sample("b_total", "y", 3)],
        );
        let expected = "a 1\n# HELP tollgate_b How often.\n# TYPE tollgate_b counter\ntollgate_b_total{of=\"x\"} 1\n\
            tollgate_b_total{of=\"y\"} 3\n# HELP tollgate_c How often.\n# TYPE tollgate_c gauge\ntollgate_c{of=\"x\"} 2\n# EOF\n";
        assert_eq!(text, expected);
        let before = text.clone();
        insert_samples_before_eof(&mut text, Vec::new());
        assert_eq!(text, before);
    }
}
