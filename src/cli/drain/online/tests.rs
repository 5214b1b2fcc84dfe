//! What a drain does when something goes wrong, with a cluster in memory: the example cluster, node gpu-node-03.

mod careful;
mod replay;
mod simulator;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::event::Event;
use super::lock::LockSettings;
use super::reporter::ContinueAndUndoCommands;
use super::run::{DrainUserInterface, Ending, RunSettings, drain};
use super::server::{ObjectStore, ServerResponse};
use super::settings::{ReplacementWaitCondition, RuleAnnotations};
use super::time::seconds_between;
use super::undrain::{check_devices_free, undrain};
use crate::cli::state::{self, OwnedObject, StateObjects};
use crate::cluster::{ApiError, DrainApiRequest};
use simulator::Simulator;
use std::num::NonZeroU32;
use tollgate_api::profile::{Profile, Version};
use tollgate_document::doc::Value;
use tollgate_drain::{DrainPlan, DrainRequest, MoveOptions};
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_forecast::{ObjectKind, SimulatedRelease};
use tollgate_formats::gotime::Timestamp;

/// Keeps the events, and agrees to every plan.
#[derive(Default)]
struct RecordingUserInterface {
    events: Vec<Event>,
    timed: Vec<(Timestamp, Event)>,
    plan: Option<DrainPlan>,
    /// Is set to true when a plan differs from the one before it.
    interrupt_at_plan_change: Option<Rc<Cell<bool>>>,
}

impl DrainUserInterface for RecordingUserInterface {
    fn report_event(&mut self, at: Timestamp, event: &Event) {
        self.events.push(event.clone());
        self.timed.push((at, event.clone()));
        if let (Event::PlanChanged { .. }, Some(interrupt)) = (event, &self.interrupt_at_plan_change) {
            interrupt.set(true);
        }
    }

    fn show_plan_and_confirm(&mut self, _: Timestamp, _: &RunSettings, plan: &DrainPlan) -> bool {
        self.plan = Some(plan.clone());
        true
    }

    fn redraw_summary(&mut self) {}
}

impl RecordingUserInterface {
    /// Why the drain stopped.
    fn stop_reason_or_empty(&self) -> &str {
        let stopped = self.events.iter().find_map(|event| match event {
            Event::Stopped { why, .. } => Some(why.as_str()),
            _ => None,
        });
        stopped.unwrap_or_default()
    }

    /// The pods of each wave, in the order of their evictions.
    fn evicted_pods_by_wave(&self) -> Vec<Vec<String>> {
        let mut waves: Vec<Vec<String>> = Vec::new();
        for event in &self.events {
            if let Event::PodEvicted { wave, pod } = event {
                waves.resize(waves.len().max(*wave), Vec::new());
                waves[wave - 1].push(pod.name.clone());
            }
        }
        waves
    }
}

/// The example cluster with its nodes.
fn example_simulator() -> Simulator {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let files = ["examples/cluster.yaml", "examples/forecast/nodes.yaml"].map(|file| root.join(file));
    let texts = state::read_texts(&files).expect("the example");
    let objects = StateObjects::parse(&texts).expect("the example");
    let state = objects.state();
    let mut store = ObjectStore::default();
    for kind in ObjectKind::ALL {
        // The dump has no Deployments.
        if kind != ObjectKind::Deployment {
            store.listed.push(kind);
        }
        for object in state.objects_of_kind(kind).iter() {
            let key = (kind, object.namespace().to_owned(), object.name().to_owned());
            let stored = OwnedObject::from_value(&api_version(kind), kind.name(), object.value);
            store.insert_or_remove(key, Some(stored));
        }
    }
    let mut sim = Simulator::new(store);
    // The dump has no conditions.
    let pods: Vec<String> = sim.objects.objects_of_kind(ObjectKind::Pod).map(Value::to_json).collect();
    for pod in pods {
        sim.set(ObjectKind::Pod, &simulator::with_ready(&pod, true));
    }
    sim
}

fn api_version(kind: ObjectKind) -> String {
    let version = ["v1", "apps/v1", "batch/v1", "policy/v1", "resource.k8s.io/v1"]
        .into_iter()
        .chain([
            "jobset.x-k8s.io/v1alpha2",
            "leaderworkerset.x-k8s.io/v1",
            "scheduling.k8s.io/v1",
            "scheduling.x-k8s.io/v1",
        ])
        .find(|version| ObjectKind::from_type_meta(version, kind.name()) == Some(kind));
    version.expect("a known group").to_owned()
}

fn settings() -> RunSettings {
    let profile = Profile::named("1.37").expect("a release");
    let typed = "node/gpu-node-03".to_owned();
    RunSettings {
        request: DrainRequest {
            targets: vec![DeviceTarget::parse(&typed).expect("a target")],
            typed: vec![typed],
            key: "tollgate.dev/drain".to_owned(),
            options: MoveOptions::default(),
        },
        release: SimulatedRelease { profile, semantics: profile.allocation, behaviour: profile.selectors },
        rule_version: Version::V1,
        samples: NonZeroU32::MIN.saturating_add(7),
        seed: 0,
        wait: ReplacementWaitCondition::Ready,
        timeout: Duration::from_mins(10),
        force_after: None,
        lock: Some(LockSettings { namespace: "tollgate-system".to_owned(), holder: "ann@laptop".to_owned() }),
        notes: RuleAnnotations::default(),
        ignore_preflight_errors: false,
        kubernetes_release_problems: Vec::new(),
        next: ContinueAndUndoCommands {
            go_on: "tollgate drain node/gpu-node-03".to_owned(),
            go_back: "tollgate undrain node/gpu-node-03".to_owned(),
        },
        cluster_flags: "--context prod".to_owned(),
    }
}

fn run(sim: &mut Simulator) -> (Ending, RecordingUserInterface) {
    let mut watcher = RecordingUserInterface::default();
    let ending = drain(sim, &settings(), &mut watcher);
    (ending, watcher)
}

/// The names of the pods of each wave of a plan.
fn planned_waves(plan: &DrainPlan) -> Vec<Vec<String>> {
    let names =
        |wave: &tollgate_drain::Wave| wave.pods.iter().map(|place| plan.pods[*place].name.clone()).collect();
    plan.waves.iter().map(names).collect()
}

fn lease_holder(sim: &Simulator) -> String {
    let lease = tollgate_document::doc::parse(sim.lease.as_ref().expect("a Lease")).expect("JSON");
    lease.root().get("spec").get("holderIdentity").str().to_owned()
}

#[test]
fn a_node_is_drained_as_planned_and_proven() {
    let mut sim = example_simulator();
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
    let plan = watcher.plan.as_ref().expect("a plan");
    assert_eq!(watcher.evicted_pods_by_wave(), planned_waves(plan), "plan against run");
    assert_eq!(watcher.evicted_pods_by_wave().first().map(Vec::len), Some(1), "the canary");
    assert_eq!(watcher.evicted_pods_by_wave().concat().len(), 8);
    let effects: Vec<String> = sim.rules().into_iter().map(|(_, effect)| effect).collect();
    assert_eq!(effects, ["NoSchedule"]);
    assert_eq!(lease_holder(&sim), "", "the Lease is given back");
    assert_eq!(sim.sent("LIST resourceclaims"), 2, "two looks");
    let changed = watcher.events.iter().filter(|event| matches!(event, Event::PlanChanged { .. }));
    assert_eq!(changed.count(), 0, "{:#?}", watcher.events);
}

/// How many new pods were reported as bound, and as Ready.
fn reported_replacements(watcher: &RecordingUserInterface) -> (usize, usize) {
    let count = |is_meant: fn(&Event) -> bool| watcher.events.iter().filter(|event| is_meant(event)).count();
    (
        count(|event| matches!(event, Event::ReplacementBound { .. })),
        count(|event| matches!(event, Event::ReplacementReady { .. })),
    )
}

#[test]
fn replacements_that_start_during_the_evictions_of_their_wave_are_reported() {
    let mut sim = example_simulator();
    (sim.grace, sim.start) = (0, 0);
    let mut refused = BTreeSet::new();
    sim.answer_with(move |_, request| match request {
        // A PDB holds back each pod once, so that the replacements of others start meanwhile.
        DrainApiRequest::EvictPod { uid, .. } if refused.insert(uid.clone()) => {
            Some(Ok(ServerResponse { code: 429, body: r#"{"message":"disruption budget"}"#.to_owned() }))
        }
        _ => None,
    });
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
    assert_eq!(reported_replacements(&watcher), (8, 8), "{:#?}", watcher.events);
}

#[test]
fn a_bound_replacement_is_not_called_ready() {
    let mut sim = example_simulator();
    sim.start = 100_000;
    let settings = RunSettings { wait: ReplacementWaitCondition::Bound, ..settings() };
    let mut watcher = RecordingUserInterface::default();
    assert_eq!(drain(&mut sim, &settings, &mut watcher), Ending::Proven, "{:#?}", watcher.events);
    assert_eq!(reported_replacements(&watcher), (8, 0), "{:#?}", watcher.events);
}

#[test]
fn without_a_condition_nothing_is_evicted_and_no_rule_is_left() {
    let mut sim = example_simulator();
    sim.has_controller = false;
    let (ending, _) = run(&mut sim);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("has written no condition") && why.ends_with("no pod was evicted"), "{why}");
    assert_eq!((sim.rules(), sim.sent("/eviction")), (Vec::new(), 0));
}

#[test]
fn a_policy_that_denies_the_effect_ends_the_drain_before_it_began() {
    let mut sim = example_simulator();
    sim.answer_with(|_, request| match request {
        DrainApiRequest::UpdateRule { object, .. } if object.contains("NoSchedule") => {
            Some(Ok(ServerResponse { code: 403, body: r#"{"message":"denied by policy guard"}"#.to_owned() }))
        }
        _ => None,
    });
    let (ending, _) = run(&mut sim);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("denied by policy guard"), "{why}");
    assert_eq!((sim.rules(), sim.sent("/eviction")), (Vec::new(), 0));
}

/// Does something to the cluster right after the third eviction was accepted.
fn after_third_eviction(sim: &mut Simulator, action: impl Fn(&mut Simulator) + 'static) {
    sim.answer_with(move |sim, request| {
        if matches!(request, DrainApiRequest::EvictPod { .. }) && sim.sent("/eviction") == 3 {
            action(sim);
        }
        None
    });
}

/// What others do to the cluster.
type Action = Box<dyn Fn(&mut Simulator)>;

#[test]
fn a_rule_that_others_delete_or_change_stops_the_drain() {
    let delete = |sim: &mut Simulator| {
        for (name, _) in sim.rules() {
            sim.remove(ObjectKind::DeviceTaintRule, "", &name);
        }
    };
    let edit = |sim: &mut Simulator| {
        for (name, _) in sim.rules() {
            let rule = sim.json(ObjectKind::DeviceTaintRule, "", &name).expect("a rule");
            sim.set(ObjectKind::DeviceTaintRule, &rule.replace("NoSchedule", "NoExecute"));
        }
    };
    let actions: [(Action, &str); 2] = [
        (Box::new(delete), "was deleted by somebody else"),
        (Box::new(edit), "was changed by somebody else"),
    ];
    for (action, words) in actions {
        let mut sim = example_simulator();
        after_third_eviction(&mut sim, action);
        let (ending, watcher) = run(&mut sim);
        assert_eq!(ending, Ending::Stopped);
        assert!(watcher.stop_reason_or_empty().contains(words), "{}", watcher.stop_reason_or_empty());
        assert_eq!(sim.sent("/eviction"), 3, "nothing is evicted afterwards");
    }
}

#[test]
fn a_lost_lease_stops_the_drain() {
    let mut sim = example_simulator();
    after_third_eviction(&mut sim, |sim| {
        let lease = r#"{"metadata":{"name":"tollgate-drain","namespace":"tollgate-system","resourceVersion":"999"},"spec":{"holderIdentity":"bob@desk"}}"#;
        sim.lease = Some(lease.to_owned());
        sim.grace = 20;
    });
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Stopped);
    assert!(
        watcher.stop_reason_or_empty().contains("held by bob@desk"),
        "{}",
        watcher.stop_reason_or_empty()
    );
    assert_eq!(lease_holder(&sim), "bob@desk", "it is not given back for him");
}

#[test]
fn a_drain_that_runs_keeps_others_out_and_one_that_was_killed_does_not() {
    let held = |renewed: u32| {
        format!(
            r#"{{"metadata":{{"name":"tollgate-drain","namespace":"tollgate-system","resourceVersion":"{renewed}"}},"spec":{{"holderIdentity":"bob@desk","leaseDurationSeconds":30,"renewTime":"{renewed}"}}}}"#
        )
    };
    let mut sim = example_simulator();
    sim.lease = Some(held(1));
    sim.after(7, move |sim| sim.lease = Some(held(2)));
    let (ending, _) = run(&mut sim);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.starts_with("another drain is running: bob@desk holds"), "{why}");
    assert_eq!(sim.rules(), Vec::new(), "nothing was written");

    let mut sim = example_simulator();
    sim.lease = Some(held(1));
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);

    let mut sim = example_simulator();
    sim.lease = None;
    let (ending, _) = run(&mut sim);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("--no-lock"), "{why}");
}

#[test]
fn a_budget_is_waited_for() {
    let mut sim = example_simulator();
    let mut left = 3;
    sim.answer_with(move |_, request| {
        let is_eviction = matches!(request, DrainApiRequest::EvictPod { .. });
        if !is_eviction || left == 0 {
            return None;
        }
        left -= 1;
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Some(Ok(ServerResponse { code: 429, body: format!(r#"{{"message":"{message}"}}"#) }))
    });
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Proven);
    let waits = watcher.events.iter().filter(|event| matches!(event, Event::PodWaits { .. }));
    assert_eq!(waits.count(), 1, "a reason is printed once");
}

#[test]
fn a_pod_that_stays_is_deleted_when_announced_and_not_before() {
    let mut sim = example_simulator();
    let (_, watcher) = run(&mut example_simulator());
    let stays = watcher.evicted_pods_by_wave()[0][0].clone();
    let pods: Vec<String> = sim.objects.objects_of_kind(ObjectKind::Pod).map(Value::to_json).collect();
    let pod = pods.iter().find(|pod| pod.contains(&stays)).expect("the canary");
    let asks = r#""metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"},"#;
    sim.set(ObjectKind::Pod, &pod.replacen(r#""metadata":{"#, asks, 1));
    let mut watcher = RecordingUserInterface::default();
    let settings = RunSettings { force_after: Some(Duration::from_mins(30)), ..settings() };
    let ending = drain(&mut sim, &settings, &mut watcher);
    assert_eq!(ending, Ending::Proven, "{:#?}", watcher.events);
    assert!(!watcher.evicted_pods_by_wave().concat().contains(&stays), "it is not evicted");
    let is_forced = |event: &Event| matches!(event, Event::DeletionWaits { .. } | Event::PodDeleted { .. });
    let forced: Vec<_> = watcher.timed.iter().filter(|(_, event)| is_forced(event)).collect();
    let [(told, Event::DeletionWaits { pods, seconds }), (done, Event::PodDeleted { pod })] = forced[..]
    else {
        panic!("{forced:#?}")
    };
    assert_eq!((pods.len(), &pods[0], pod.name.as_str()), (1, pod, stays.as_str()));
    let waited = seconds_between(*told, *done);
    let announced = i64::try_from(*seconds).expect("few seconds");
    assert!((announced..announced + 60).contains(&waited), "announced {announced}, waited {waited}");
    let last = watcher.events.last();
    assert!(matches!(last, Some(Event::Finished { evicted: 7, deleted: 1, .. })), "{last:?}");
    let gone = format!("{}/{stays} no longer uses", pod.namespace);
    let is_told = |event: &Event| matches!(event, Event::PlanChanged { differences } if differences.concat().contains(&gone));
    assert!(!watcher.events.iter().any(is_told), "{:#?}", watcher.events);
}

#[test]
fn a_pod_that_does_not_end_is_named_with_its_node() {
    let mut sim = example_simulator();
    let (_, watcher) = run(&mut example_simulator());
    let canary = watcher.evicted_pods_by_wave()[0][0].clone();
    sim.stuck.insert(canary.clone());
    let (ending, watcher) = run(&mut sim);
    assert_eq!(ending, Ending::Stopped);
    let why = watcher.stop_reason_or_empty();
    assert!(why.contains(&canary) && why.contains("on node gpu-node-03 is still Terminating"), "{why}");
    assert_eq!(sim.sent("/eviction"), 1, "the canary stopped it");
}

#[test]
fn an_interrupted_drain_goes_on_where_it_was() {
    let mut sim = example_simulator();
    after_third_eviction(&mut sim, |sim| sim.is_interrupted.set(true));
    let (ending, first) = run(&mut sim);
    assert_eq!((ending, first.stop_reason_or_empty()), (Ending::Stopped, "interrupted"));
    let counts = first.events.iter().find_map(|event| match event {
        Event::Stopped { evicted, left, .. } => Some((*evicted, *left)),
        _ => None,
    });
    assert_eq!(counts, Some((3, 5)), "what is evicted is not left, even if it is not gone yet");
    sim.is_interrupted.set(false);
    let before = sim.sent("/eviction");
    let (ending, second) = run(&mut sim);
    assert_eq!(ending, Ending::Proven, "{:#?}", second.events);
    let evictions =
        first.evicted_pods_by_wave().concat().into_iter().chain(second.evicted_pods_by_wave().concat());
    let mut names: Vec<String> = evictions.collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!((names.len(), count), (8, 8), "no pod is evicted twice");
    assert!(before >= 3);
    let finished = second.events.iter().position(|event| matches!(event, Event::WaveFinished { .. }));
    let started = second.events.iter().position(|event| matches!(event, Event::WaveStarted { .. }));
    assert!(finished < started, "the wave that was begun is finished first");
}

#[test]
fn a_server_that_fails_for_a_while_is_put_up_with() {
    for (failures, expected) in [(3, Ending::Proven), (100, Ending::Stopped)] {
        let mut sim = example_simulator();
        let mut left = failures;
        sim.answer_with(move |sim, request| {
            let fails =
                left > 0 && sim.sent("/eviction") >= 2 && matches!(request, DrainApiRequest::EvictPod { .. });
            left -= i32::from(fails);
            fails.then(|| Err(ApiError::Unreachable("connection refused".to_owned())))
        });
        let (ending, watcher) = run(&mut sim);
        assert_eq!(ending, expected, "{:#?}", watcher.events);
    }
}

#[test]
fn undrain_deletes_the_rules_of_its_drain_only() {
    let mut sim = example_simulator();
    let (ending, _) = run(&mut sim);
    assert_eq!(ending, Ending::Proven);
    let own = sim.rules();
    let other = r#"{"metadata":{"name":"other","uid":"o","labels":{"tollgate.dev/drain-id":"else"},"annotations":{"tollgate.dev/target":"node/gpu-node-09"}},"spec":{"deviceSelector":{"pool":"gpu-node-09"},"taint":{"key":"tollgate.dev/drain","effect":"NoSchedule"}}}"#;
    sim.set(ObjectKind::DeviceTaintRule, other);
    let mut watcher = RecordingUserInterface::default();
    assert_eq!(undrain(&mut sim, &settings(), &mut watcher, true), Ending::Proven);
    assert_eq!(sim.rules().len(), own.len() + 1, "a dry run deletes nothing");
    let would_delete = own.into_iter().map(|(rule, effect)| Event::RuleWouldBeDeleted { rule, effect });
    assert_eq!(watcher.events, would_delete.collect::<Vec<_>>());
    assert_eq!(undrain(&mut sim, &settings(), &mut watcher, false), Ending::Proven);
    assert_eq!(sim.rules(), [("other".to_owned(), "NoSchedule".to_owned())]);
    let ending = undrain(&mut sim, &settings(), &mut watcher, false);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("run `tollgate undrain node/gpu-node-09 --context prod`"), "{why}");
    sim.set(ObjectKind::DeviceTaintRule, &other.replace("tollgate.dev/target", "example.com/a"));
    let ending = undrain(&mut sim, &settings(), &mut watcher, false);
    let Ending::Refused(why) = ending else { panic!("{ending:?}") };
    assert!(why.contains("run `kubectl delete devicetaintrule other --context prod`"), "{why}");
}

#[test]
fn a_check_proves_nothing_away() {
    let mut sim = example_simulator();
    assert_eq!(
        check_devices_free(&mut sim, &settings(), &mut RecordingUserInterface::default()),
        Ending::Holding
    );
    assert_eq!(run(&mut sim).0, Ending::Proven);
    assert_eq!(
        check_devices_free(&mut sim, &settings(), &mut RecordingUserInterface::default()),
        Ending::Proven
    );
    // The driver restarts: no slice is left, and the rules still know what they select.
    let slices: Vec<String> = (sim.objects.objects_of_kind(ObjectKind::ResourceSlice))
        .map(|slice| slice.get("metadata").get("name").str().to_owned())
        .collect();
    for name in &slices {
        sim.remove(ObjectKind::ResourceSlice, "", name);
    }
    assert_eq!(
        check_devices_free(&mut sim, &settings(), &mut RecordingUserInterface::default()),
        Ending::Proven
    );
    for (name, _) in sim.rules() {
        sim.remove(ObjectKind::DeviceTaintRule, "", &name);
    }
    let ending = check_devices_free(&mut sim, &settings(), &mut RecordingUserInterface::default());
    assert!(matches!(ending, Ending::Refused(_)), "{ending:?}");
}
