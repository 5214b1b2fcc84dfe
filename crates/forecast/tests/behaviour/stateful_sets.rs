//! Pods of a StatefulSet that are evicted together: which of them it makes again depends on the order of the evictions.

use crate::controllers::{DRAIN_N0, bound_pod, cluster, outcomes};
use crate::forecast;
use tollgate_forecast::{Forecast, PodOutcome};

const SET: (&str, &str, &str) = ("apps/v1", "StatefulSet", "db");

/// Forecasts the drain of a node with three pods of a StatefulSet. `free` of the three devices of another
/// node are free, and `others` further pods on the node are not recreated.
fn drained(free: usize, others: usize, grace_period: u32) -> Forecast {
    let mut state = cluster(2, 3 + others);
    for number in 0..3 {
        state += &bound_pod(&format!("db-{number}"), "n0", &format!("d{number}"), SET);
    }
    for number in 3..3 + others {
        state += &bound_pod(&format!("y{number}"), "n0", &format!("d{number}"), ("", "", ""));
    }
    for device in free..3 + others {
        state += &bound_pod(&format!("x{device}"), "n1", &format!("d{device}"), ("", "", ""));
    }
    let grace = format!(r#""spec":{{"terminationGracePeriodSeconds":{grace_period},"nodeName""#);
    forecast(&state.replace(r#""spec":{"nodeName""#, &grace), DRAIN_N0, 64)
}

/// For each pod of the set: the number of runs in which it is bound, and in which it is not created.
fn counts(forecast: &Forecast) -> Vec<(u32, u32)> {
    let set = forecast.pods.iter().filter(|pod| pod.name.is_some());
    set.map(|pod| (pod.fits, pod.not_recreated)).collect()
}

#[test]
fn pods_that_end_slowly_are_all_evicted_before_one_is_made_again() {
    let forecast = drained(0, 0, 1);
    assert_eq!(counts(&forecast), [(0, 0), (0, 64), (0, 64)]);
    assert_eq!(forecast.most_pending, 1);
}

#[test]
fn a_pod_can_be_made_again_before_the_one_before_it_is_evicted() {
    // Of more evictions, the last ones come after the first pods are gone.
    for forecast in [drained(0, 0, 0), drained(0, 10, 30)] {
        let [first, second, third] = counts(&forecast)[..] else { panic!("three pods") };
        assert_eq!(first, (0, 0));
        for (fits, not_recreated) in [second, third] {
            assert_eq!(fits, 0);
            assert!((1..64).contains(&not_recreated), "{not_recreated}");
        }
        let pending = (Some("db-2"), PodOutcome::Pending);
        assert!(outcomes(&forecast).contains(&pending));
        // If they are evicted in the opposite order, each is made again before the next is evicted.
        assert_eq!(forecast.most_pending, 3);
    }
}

#[test]
fn a_pod_that_is_made_again_early_takes_the_device_of_the_one_before_it() {
    let forecast = drained(1, 0, 0);
    let counts = counts(&forecast);
    assert!(counts.iter().all(|(fits, _)| (1..64).contains(fits)), "{counts:?}");
    assert_eq!(counts.iter().map(|(fits, _)| fits).sum::<u32>(), 64);
    assert_eq!(drained(3, 0, 0).totals.fits, 3);
}
