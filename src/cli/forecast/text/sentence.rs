//! The summary of a forecast in one sentence: how many of the pods fit, and how many stay Pending.

use std::collections::BTreeSet;

use tollgate_forecast::{Forecast, PodForecast, PodOrigin, PodOutcome};
use tollgate_formats::count::count_with_noun;

/// Returns the outcomes of the evicted pods in one sentence: `of 8 evicted pods 6 fit elsewhere, 2 stay Pending`;
/// `None` if no pod is evicted.
pub(in crate::cli) fn summary_of_evicted(forecast: &Forecast) -> Option<String> {
    summary_sentence(forecast, PodOrigin::Replacement)
}

/// The sentence about the pods of one origin, with a line break; empty if there are none.
pub(super) fn summary_line(forecast: &Forecast, origin: PodOrigin) -> String {
    summary_sentence(forecast, origin).map(|sentence| sentence + "\n").unwrap_or_default()
}

fn summary_sentence(forecast: &Forecast, origin: PodOrigin) -> Option<String> {
    let (what, place) = match origin {
        PodOrigin::Replacement => ("evicted", " elsewhere"),
        PodOrigin::Given => ("given", ""),
        PodOrigin::Waiting => ("waiting", ""),
    };
    // A Job that fails deletes pods that are not evicted.
    let evicted: BTreeSet<(&str, &str)> =
        forecast.evicted.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
    let is_counted = |pod: &&PodForecast| {
        let replaced = pod.replaces.as_deref();
        pod.origin == origin
            && replaced.is_none_or(|replaced| evicted.contains(&(pod.namespace.as_str(), replaced)))
    };
    let total = forecast.pods.iter().filter(is_counted).count();
    if total == 0 {
        return None;
    }
    // A pod that fits on devices from which it is evicted again has no place.
    let is_evicted_again = |pod: &PodForecast| pod.outcome == PodOutcome::Fits && pod.evicted_again;
    let count = |outcome: PodOutcome| {
        let pods = forecast.pods.iter().filter(is_counted);
        pods.filter(|pod| pod.outcome == outcome && !is_evicted_again(pod)).count()
    };
    let evicted_again = forecast.pods.iter().filter(is_counted).filter(|pod| is_evicted_again(pod)).count();
    let parts = [
        (count(PodOutcome::Fits), format!("fits{place}"), format!("fit{place}")),
        (evicted_again, "is evicted again and again".to_owned(), "are evicted again and again".to_owned()),
        (
            count(PodOutcome::Sometimes),
            format!("fits{place} in some courses"),
            format!("fit{place} in some courses"),
        ),
        (count(PodOutcome::Pending), "stays Pending".to_owned(), "stay Pending".to_owned()),
        (
            count(PodOutcome::Unknown),
            "has an unknown outcome".to_owned(),
            "have an unknown outcome".to_owned(),
        ),
        (count(PodOutcome::NotRecreated), "is not recreated".to_owned(), "are not recreated".to_owned()),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, several)| format!("{count} {}", if count == 1 { one } else { several }))
        .collect();
    Some(format!("of {} {}", count_with_noun(total, &format!("{what} pod")), parts.join(", ")))
}
