//! `--max pods=10,namespaces=2`: limits on the impact.

use std::collections::BTreeSet;

use super::Assessment;
use crate::cli::limit_list::LimitList;
use tollgate_formats::count::count_with_noun;

/// The numbers of an impact that `--max` can limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImpactCounts {
    pub(super) devices: usize,
    pub(super) pods: usize,
    pub(super) namespaces: usize,
    /// True if the numbers are upper bounds, because class selectors could not be evaluated.
    pub(super) is_upper_bound: bool,
    /// True if `devices` counts a device once for each rule that selects it.
    pub(super) counts_devices_twice: bool,
}

impl ImpactCounts {
    /// Counts the impact of one rule or slice.
    pub(super) fn from_assessment(assessment: &Assessment<'_>) -> ImpactCounts {
        // Without a selector the scheduler applies a rule to all devices, unlike the eviction controller.
        let devices = assessment.query.device_count_tainted_for_scheduler(assessment.impact.counts);
        ImpactCounts::from_slice_assessments(std::slice::from_ref(assessment), devices)
    }

    /// Counts the impact of one change on several slices. A pod that loses devices in several of them counts
    /// once.
    pub(super) fn from_slice_assessments(assessments: &[Assessment<'_>], devices: usize) -> ImpactCounts {
        let pods = assessments.iter().flat_map(|assessment| &assessment.impact.pods);
        let evicted: BTreeSet<(&str, &str)> =
            pods.filter(|pod| pod.is_evicted_by_change()).map(|pod| (pod.namespace, pod.name)).collect();
        let namespaces: BTreeSet<&str> = evicted.iter().map(|(namespace, _)| *namespace).collect();
        ImpactCounts {
            devices,
            pods: evicted.len(),
            namespaces: namespaces.len(),
            is_upper_bound: assessments.iter().any(|assessment| assessment.impact.is_upper_bound),
            counts_devices_twice: false,
        }
    }
}

/// The names that `--max` accepts for an impact.
const LIMIT_NAMES: [&str; 4] = ["devices", "pods", "namespaces", "pending"];

/// Parses the value of `--max`, such as `pods=10,namespaces=2,devices=64`.
pub(super) fn parse(text: &str) -> Result<LimitList, String> {
    LimitList::parse(text, &LIMIT_NAMES)
}

/// Returns a message for each limit of `--max` that the impact exceeds.
pub(super) fn exceeded_limit_messages(limits: &LimitList, extent: ImpactCounts) -> Vec<String> {
    let found = [
        (extent.devices, "devices", "selects", "device"),
        (extent.pods, "pods", "evicts", "pod"),
        (extent.namespaces, "namespaces", "evicts pods in", "namespace"),
    ];
    let over = found.into_iter().filter_map(|(found, name, verb, noun)| {
        let limit = limits.get(name).filter(|limit| found > *limit)?;
        let is_upper_bound = extent.is_upper_bound || (extent.counts_devices_twice && noun == "device");
        let hedge = if is_upper_bound { "at most " } else { "" };
        Some(format!("{verb} {hedge}{}; --max allows {limit}", count_with_noun(found, noun)))
    });
    over.collect()
}
