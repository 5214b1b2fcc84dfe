//! Properties of every simulated run, checked for the recorded states.

use crate::scenario::{settings, steps_of};
use crate::{SCENARIOS, releases, unzip};
use std::collections::{BTreeMap, BTreeSet};
use tollgate_document::doc::{Value, parse};
use tollgate_forecast::{Forecast, Plan, PodOutcome, RunOutcome, Settings, State};

fn plan_of(scenario: Value<'_>, release: tollgate_forecast::SimulatedRelease, seed: u64) -> Plan<'_> {
    let mut state = State::default();
    for object in scenario.get("before").get("items").items() {
        state.add(object);
    }
    let (steps, _) = steps_of(scenario, &BTreeSet::new());
    Plan::new(state, steps, release, Settings { seed, ..settings() })
}

#[test]
fn courses_do_not_depend_on_each_other() {
    for line in unzip(SCENARIOS).lines() {
        let doc = parse(line).expect("JSON");
        for (_, release) in releases() {
            let plan = plan_of(doc.root(), release, 7);
            let (mut one, mut other) = (plan.create_run_simulator(), plan.create_run_simulator());
            let forward: Vec<RunOutcome> = (0..6).map(|course| one.simulate_run(course)).collect();
            let mut backward: Vec<RunOutcome> =
                (0..6).rev().map(|course| other.simulate_run(course)).collect();
            let forward = Forecast::from_runs(&plan, forward);
            assert_eq!(forward, Forecast::from_runs(&plan, std::mem::take(&mut backward)));
            let again = plan_of(doc.root(), release, 7);
            let mut player = again.create_run_simulator();
            let again = Forecast::from_runs(&again, (0..6).map(|course| player.simulate_run(course)));
            assert_eq!(forward, again, "{}", doc.root().get("id").text());
        }
    }
}

#[test]
fn no_device_is_given_twice() {
    for line in unzip(SCENARIOS).lines() {
        let doc = parse(line).expect("JSON");
        let scenario = doc.root();
        let id = scenario.get("id").text();
        // Administrators share devices with others, and a name can be published for two nodes.
        if scenario.get("topic").text() == "admin-access" {
            continue;
        }
        for (_, release) in releases() {
            for seed in 0..8 {
                let plan = plan_of(scenario, release, seed);
                let forecast = Forecast::from_runs(&plan, [plan.create_run_simulator().simulate_run(0)]);
                let mut holders: BTreeMap<(String, String, String), String> = BTreeMap::new();
                for pod in
                    forecast.pods.iter().filter(|pod| pod.outcome == PodOutcome::Fits && !pod.evicted_again)
                {
                    let claims = pod.placements.iter().flat_map(|placement| &placement.place.claims);
                    for claim in claims {
                        let reference = claim.reference.clone().unwrap_or_default();
                        let own = format!("{:?} {:?} {reference}", pod.name, pod.replaces);
                        let holder = claim.name.clone().unwrap_or(own);
                        for device in claim.devices.iter().filter(|device| device.consumed_capacity.is_none())
                        {
                            let device = (device.driver.clone(), device.pool.clone(), device.device.clone());
                            let first = holders.entry(device.clone()).or_insert_with(|| holder.clone());
                            assert_eq!(*first, holder, "{id}: {device:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_pod_has_one_outcome() {
    for line in unzip(SCENARIOS).lines() {
        let doc = parse(line).expect("JSON");
        for (_, release) in releases() {
            let plan = plan_of(doc.root(), release, 3);
            let mut player = plan.create_run_simulator();
            let forecast = Forecast::from_runs(&plan, (0..8).map(|course| player.simulate_run(course)));
            let totals = forecast.totals;
            let sum = totals.fits + totals.sometimes + totals.pending + totals.unknown + totals.not_recreated;
            assert_eq!(sum, forecast.pods.len());
            for pod in &forecast.pods {
                let placed: u32 = pod.placements.iter().map(|placement| placement.courses).sum();
                assert_eq!(placed, pod.fits);
                assert_eq!(pod.fits == 8, pod.outcome == PodOutcome::Fits);
                let is_told = pod.outcome != PodOutcome::Fits || pod.message.is_none();
                assert!(is_told, "{pod:?}");
            }
        }
    }
}
