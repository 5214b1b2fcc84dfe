//! What a careless drain would get wrong: each of these happened on a real cluster once.

use std::time::Duration;

use super::simulator::{Simulator, with_ready};
use super::{RecordingUserInterface, after_third_eviction, example_simulator, run, settings};
use crate::cli::drain::online::event::Event;
use crate::cli::drain::online::run::{Ending, RunSettings, drain};
use crate::cli::drain::online::server::{Server as _, ServerResponse};
use crate::cli::drain::online::time::add_duration;
use crate::cluster::{ApiError, DrainApiRequest};
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_forecast::ObjectKind;

/// A resume long after the devices were closed: the pods of the plan are not newcomers.
#[test]
fn a_drain_goes_on_long_after_it_was_interrupted() {
    let mut sim = example_simulator();
    after_third_eviction(&mut sim, |sim| sim.is_interrupted.set(true));
    assert_eq!(run(&mut sim).0, Ending::Stopped);
    sim.is_interrupted.set(false);
    sim.pause(Duration::from_mins(30));
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
    assert!(!watcher.events.iter().any(|event| matches!(event, Event::PodJoined { .. })));
}

/// A PDB holds the canary back until the user interrupts. The next run has evicted nothing yet, so it begins with one pod.
#[test]
fn a_drain_that_evicted_nothing_begins_with_one_pod() {
    let mut sim = example_simulator();
    let mut is_held = true;
    sim.answer_with(move |sim, request| {
        let is_eviction = matches!(request, DrainApiRequest::EvictPod { .. });
        (is_eviction && std::mem::take(&mut is_held)).then(|| {
            sim.is_interrupted.set(true);
            Ok(ServerResponse { code: 429, body: r#"{"message":"disruption budget"}"#.to_owned() })
        })
    });
    let (ending, first) = run(&mut sim);
    assert_eq!((ending, first.stop_reason_or_empty()), (Ending::Stopped, "interrupted"));
    sim.is_interrupted.set(false);
    let (ending, second) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", second.events);
    let waves = second.evicted_pods_by_wave();
    assert_eq!((waves[0].len(), waves.concat().len()), (1, 8), "{waves:?}");
}

/// An interrupt while the next wave is planned: the wave does not begin.
#[test]
fn an_interrupt_during_planning_begins_no_wave() {
    let mut sim = example_simulator();
    // Somebody deletes a pod that is not the canary.
    let (_, watcher) = run(&mut example_simulator());
    let other = watcher.events.iter().find_map(|event| match event {
        Event::PodEvicted { wave: 2, pod } => Some(pod.clone()),
        _ => None,
    });
    let other = other.expect("a second wave");
    sim.answer_with(move |sim, request| {
        if matches!(request, DrainApiRequest::EvictPod { .. }) {
            sim.remove(ObjectKind::Pod, &other.namespace, &other.name);
        }
        None
    });
    let interrupt = Some(sim.is_interrupted.clone());
    let mut watcher =
        RecordingUserInterface { interrupt_at_plan_change: interrupt, ..RecordingUserInterface::default() };
    assert_eq!(drain(&mut sim, &settings(), &mut watcher), Ending::Stopped);
    assert_eq!(watcher.stop_reason_or_empty(), "interrupted");
    let started = watcher.events.iter().filter(|event| matches!(event, Event::WaveStarted { .. }));
    assert_eq!((started.count(), sim.sent("/eviction")), (1, 1), "{:#?}", watcher.events);
}

/// The scheduler ignores the rules: the replacement of the canary gets a device that was closed.
#[test]
fn a_replacement_on_a_closed_device_stops_the_drain() {
    let mut sim = example_simulator();
    sim.ignores_rules = true;
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Stopped, "{:#?}", watcher.events);
    assert!(
        watcher.stop_reason_or_empty().contains("the scheduler ignores DeviceTaintRules"),
        "{}",
        watcher.stop_reason_or_empty()
    );
    assert!(
        watcher.stop_reason_or_empty().contains("have been closed since 2026-11-16T09:0"),
        "{}",
        watcher.stop_reason_or_empty()
    );
    assert_eq!(watcher.evicted_pods_by_wave().concat().len(), 1, "only the canary");
}

/// A pod that was starting when a wave began does not count as a replacement.
#[test]
fn only_new_pods_replace_old_ones() {
    let (_, watcher) = run(&mut example_simulator());
    let canary = watcher.evicted_pods_by_wave()[0][0].clone();
    let mut sim = example_simulator();
    let other = (sim.objects.objects_of_kind(ObjectKind::Pod))
        .find(|pod| {
            let name = pod.get("metadata").get("name").str();
            name.starts_with("chat-")
                && name != canary
                && pod.get("spec").get("nodeName").str() != "gpu-node-03"
        })
        .expect("another pod of the Deployment");
    let (namespace, name) = ("inference", other.get("metadata").get("name").str().to_owned());
    let ready = sim.json(ObjectKind::Pod, namespace, &name).expect("a pod");
    let starting = with_ready(&ready, false);
    sim.set(ObjectKind::Pod, &starting);
    let becomes_ready = with_ready(&ready, true);
    sim.start = 100;
    sim.after(8, move |sim| sim.set(ObjectKind::Pod, &becomes_ready));
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
    let first = watcher.events.iter().find_map(|event| match event {
        Event::WaveFinished { wave: 1, seconds } => Some(*seconds),
        _ => None,
    });
    assert!(first.is_some_and(|seconds| seconds >= 100), "{first:?}");
}

/// A workload that its owner scales to 0 in the middle of a wave wants no new pods.
#[test]
fn a_workload_that_is_scaled_down_is_not_waited_for() {
    let mut sim = example_simulator();
    sim.has_replacements = false;
    sim.objects.listed.push(ObjectKind::Deployment);
    sim.answer_with(|sim, request| {
        if matches!(request, DrainApiRequest::EvictPod { .. }) {
            for kind in
                [ObjectKind::Deployment, ObjectKind::ReplicaSet, ObjectKind::Job, ObjectKind::StatefulSet]
            {
                let names: Vec<[String; 2]> = (sim.objects.objects_of_kind(kind))
                    .map(|object| {
                        ["namespace", "name"].map(|field| object.get("metadata").get(field).str().to_owned())
                    })
                    .collect();
                for [namespace, name] in &names {
                    sim.remove(kind, namespace, name);
                }
            }
        }
        None
    });
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
}

/// A server that fails long enough for somebody else to take the Lease: nothing is evicted afterwards.
#[test]
fn nothing_is_evicted_after_the_lease_was_lost() {
    let mut sim = example_simulator();
    sim.answer_with(|sim, request| {
        if !matches!(request, DrainApiRequest::EvictPod { .. }) || sim.sent("/eviction") != 2 {
            return None;
        }
        let lease = r#"{"metadata":{"name":"tollgate-drain","namespace":"tollgate-system","resourceVersion":"999"},"spec":{"holderIdentity":"bob@desk"}}"#;
        sim.lease = Some(lease.to_owned());
        sim.now = add_duration(sim.now, Duration::from_secs(20));
        Some(Err(ApiError::Unreachable("timed out".to_owned())))
    });
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Stopped);
    assert!(
        watcher.stop_reason_or_empty().contains("held by bob@desk"),
        "{}",
        watcher.stop_reason_or_empty()
    );
    assert_eq!(sim.sent("/eviction"), 2, "the second was tried once");
}

/// The slices and the rule of one target are gone, and a claim still holds its device: nothing is proven.
#[test]
fn a_target_that_is_gone_is_not_proven() {
    let mut sim = example_simulator();
    let mut settings = settings();
    settings.request.typed.push("node/gpu-node-04".to_owned());
    settings.request.targets.push(DeviceTarget::parse("node/gpu-node-04").expect("a target"));
    let slice = (sim.objects.objects_of_kind(ObjectKind::ResourceSlice))
        .find(|slice| slice.get("spec").get("nodeName").str() == "gpu-node-04")
        .map(|slice| slice.get("metadata").get("name").str().to_owned());
    sim.remove(ObjectKind::ResourceSlice, "", &slice.expect("its slice"));
    let ending = drain(&mut sim, &settings, &mut RecordingUserInterface::default());
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("node/gpu-node-04: no ResourceSlice names node"), "{why}");
    assert_eq!(sim.rules(), Vec::new());
}

/// The slices of the node go while its pods move: the devices that no claim holds any more are proven free, too.
#[test]
fn the_end_counts_devices_that_are_not_published_any_more() {
    let mut sim = example_simulator();
    sim.answer_with(|sim, request| {
        if matches!(request, DrainApiRequest::EvictPod { .. }) {
            let slices: Vec<String> = (sim.objects.objects_of_kind(ObjectKind::ResourceSlice))
                .filter(|slice| slice.get("spec").get("nodeName").str() == "gpu-node-03")
                .map(|slice| slice.get("metadata").get("name").str().to_owned())
                .collect();
            for name in &slices {
                sim.remove(ObjectKind::ResourceSlice, "", name);
            }
        }
        None
    });
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
    let last = watcher.events.last();
    assert!(matches!(last, Some(Event::Finished { devices: 8, evicted: 8, .. })), "{last:?}");
}

/// If a user has no permissions, the problem names every role that must be bound.
#[test]
fn missing_permissions_name_the_roles_that_grant_them() {
    let mut sim = example_simulator();
    sim.answer_with(|_, request| {
        let denied = || ServerResponse { code: 200, body: r#"{"status":{"allowed":false}}"#.to_owned() };
        matches!(request, DrainApiRequest::ReviewAccess(_)).then(|| Ok(denied()))
    });
    let roles = |sim: &mut Simulator, settings: &RunSettings| {
        let mut watcher = RecordingUserInterface::default();
        drain(sim, settings, &mut watcher);
        let mut events = watcher.events.into_iter();
        let problem = events.find_map(|event| match event {
            Event::Preflight { check, problem } if check == "permissions" => problem,
            _ => None,
        });
        problem.expect("a problem").split_once("; ").expect("an advice").1.to_owned()
    };
    let normal =
        "bind the ClusterRole tollgate-drain and the Role tollgate-drain of manifests/components/drain";
    assert_eq!(roles(&mut sim, &settings()), normal);
    let forced = RunSettings { force_after: Some(Duration::from_mins(30)), ..settings() };
    assert_eq!(
        roles(&mut sim, &forced),
        "bind the ClusterRole tollgate-drain, the ClusterRole tollgate-drain-force and the Role tollgate-drain of \
         manifests/components/drain"
    );
}

/// Deletes all rules, as another admin would.
fn delete_rules(sim: &mut Simulator) {
    for (name, _) in sim.rules() {
        sim.remove(ObjectKind::DeviceTaintRule, "", &name);
    }
}

#[test]
fn a_rule_that_is_deleted_before_it_is_confirmed_is_not_blamed_on_the_controller() {
    let mut sim = example_simulator();
    sim.has_controller = false;
    sim.after(5, delete_rules);
    let (ending, _) = run(&mut sim);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("was deleted by somebody else; no rule of this drain is left"), "{why}");
}

#[test]
fn a_drain_without_rules_says_so_at_its_end() {
    let mut sim = example_simulator();
    after_third_eviction(&mut sim, delete_rules);
    let (_, watcher) = run(&mut sim);
    let last = watcher.events.last();
    assert!(matches!(last, Some(Event::Stopped { rules: 0, go_back: None, .. })), "{last:?}");

    let mut sim = example_simulator();
    after_third_eviction(&mut sim, |sim| sim.is_interrupted.set(true));
    let (_, watcher) = run(&mut sim);
    let last = watcher.events.last();
    assert!(matches!(last, Some(Event::Stopped { rules: 1, go_back: Some(_), .. })), "{last:?}");
}
