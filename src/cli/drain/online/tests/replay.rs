//! Drains of real clusters, replayed: the run must send the same requests, in the same order and at the same times, and
//! must tell the same, without a cluster.
//!
//! A recording is what `--record` writes, after a line with the settings of the run.

use std::collections::VecDeque;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::time::Duration;

use super::RecordingUserInterface;
use crate::cli::drain::online::event::TimedEvent;
use crate::cli::drain::online::lock::LockSettings;
use crate::cli::drain::online::reporter::ContinueAndUndoCommands;
use crate::cli::drain::online::run::{RunSettings, drain};
use crate::cli::drain::online::server::{ObjectStore, Server, ServerResponse};
use crate::cli::drain::online::settings::{ReplacementWaitCondition, RuleAnnotations};
use crate::cli::state::OwnedObject;
use crate::cluster::{ApiError, DrainApiRequest};
use tollgate_api::profile::{GateChoice, Profile, Version};
use tollgate_document::doc::{self, Value};
use tollgate_drain::{DrainRequest, MoveOptions};
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_forecast::{ObjectKind, SimulatedRelease};
use tollgate_formats::gotime::{self, Timestamp};

/// A recording that is played.
struct Replay {
    lines: VecDeque<String>,
    objects: ObjectStore,
    now: Timestamp,
    /// Lines that were played.
    played: usize,
}

fn text(line: Value<'_>, field: &str) -> String {
    line.get(field).str().to_owned()
}

fn kind_of(api_version: &str, kind: &str) -> ObjectKind {
    let known = ObjectKind::from_type_meta(api_version, kind);
    // A deleted object has no version.
    known.or_else(|| ObjectKind::ALL.into_iter().find(|known| known.name() == kind)).expect("a known kind")
}

impl Replay {
    fn new(lines: VecDeque<String>) -> Replay {
        let mut objects = ObjectStore::default();
        objects.listed.extend(ObjectKind::ALL);
        let mut replay = Replay { lines, objects, now: Timestamp::ZERO, played: 0 };
        replay.until("connect").expect("no problem");
        replay
    }

    fn next(&mut self) -> String {
        self.played += 1;
        let played = self.played;
        self.lines.pop_front().unwrap_or_else(|| panic!("line {played}: the recording has ended"))
    }

    /// Plays changes up to the end of that call.
    fn until(&mut self, call: &str) -> Result<(), String> {
        loop {
            let line = self.next();
            let read = doc::parse(&line).expect("JSON");
            let root = read.root();
            if root.get("at").exists() {
                assert_eq!(text(root, "call"), call, "line {}: {line}", self.played);
                self.now = gotime::parse_rfc3339(root.get("at").str()).expect("a time");
                return if root.get("problem").exists() { Err(text(root, "problem")) } else { Ok(()) };
            }
            let api_version = text(root, "apiVersion");
            let kind = kind_of(&api_version, &text(root, "kind"));
            let key = (kind, text(root, "namespace"), text(root, "name"));
            let object = Some(root.get("object")).filter(|object| object.kind() == doc::ValueKind::Object);
            let stored = object.map(|object| OwnedObject::from_value(&api_version, kind.name(), object));
            self.objects.insert_or_remove(key, stored);
        }
    }
}

impl Server for Replay {
    fn time_of_last_exchange(&self) -> Timestamp {
        self.now
    }

    fn pause(&mut self, _: Duration) {
        self.until("pause").expect("no problem");
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn send(&mut self, request: &DrainApiRequest) -> Result<ServerResponse, ApiError> {
        let line = self.next();
        let read = doc::parse(&line).expect("JSON");
        let root = read.root();
        let (method, path) = request.method_and_path();
        assert_eq!(format!("{method} {path}"), text(root, "send"), "line {}", self.played);
        assert_eq!(request.body().unwrap_or_default(), text(root, "body"), "line {}", self.played);
        self.now = gotime::parse_rfc3339(root.get("at").str()).expect("a time");
        let body = text(root, "answer");
        match root.get("code").int() {
            Some(code) => Ok(ServerResponse { code: u16::try_from(code).expect("a status"), body }),
            None => Err(ApiError::Unreachable(body)),
        }
    }

    fn refresh(&mut self) -> Result<(), String> {
        self.until("refresh")
    }

    fn objects(&self) -> &ObjectStore {
        &self.objects
    }

    fn list_claims(&mut self) -> Result<ObjectStore, String> {
        let mut claims = ObjectStore::default();
        while let Some(line) = self.lines.front() {
            let read = doc::parse(line).expect("JSON");
            let claim = read.root().get("claim");
            if !claim.exists() {
                break;
            }
            let (metadata, api_version) = (claim.get("metadata"), text(read.root(), "apiVersion"));
            let key = (ObjectKind::ResourceClaim, text(metadata, "namespace"), text(metadata, "name"));
            claims.insert_or_remove(key, Some(OwnedObject::from_value(&api_version, "ResourceClaim", claim)));
            self.next();
        }
        self.until("claims").map(|()| claims)
    }
}

/// The settings of the recorded run, from the first line.
fn settings_of(header: Value<'_>) -> RunSettings {
    let release = Profile::named(header.get("kubernetes").str()).expect("a release");
    let gates = GateChoice::parse(header.get("gates").str()).expect("gates");
    let profile = release.with_gates(&gates).expect("gates");
    let typed: Vec<String> = header.get("targets").items().map(|target| target.str().to_owned()).collect();
    let flag = |name: &str| header.get("flags").items().any(|flag| flag.text_is(name));
    RunSettings {
        request: DrainRequest {
            targets: typed.iter().map(|target| DeviceTarget::parse(target).expect("a target")).collect(),
            typed,
            key: "tollgate.dev/drain".to_owned(),
            options: MoveOptions {
                move_unknown: flag("--move-unknown"),
                without_controller: flag("--force"),
                delete_empty_dir_data: flag("--delete-emptydir-data"),
                ..MoveOptions::default()
            },
        },
        release: SimulatedRelease { profile, semantics: profile.allocation, behaviour: profile.selectors },
        rule_version: Version::parse(header.get("version").str()).expect("a version"),
        samples: NonZeroU32::MIN.saturating_add(63),
        seed: 0,
        wait: ReplacementWaitCondition::Ready,
        timeout: Duration::from_mins(10),
        force_after: None,
        lock: Some(LockSettings { namespace: "tollgate-system".to_owned(), holder: text(header, "holder") }),
        notes: RuleAnnotations {
            flags: text(header, "typedFlags"),
            reason: Some(text(header, "reason")).filter(|reason| !reason.is_empty()),
            ..RuleAnnotations::default()
        },
        ignore_preflight_errors: false,
        kubernetes_release_problems: Vec::new(),
        next: ContinueAndUndoCommands { go_on: text(header, "goOn"), go_back: text(header, "goBack") },
        cluster_flags: String::new(),
    }
}

/// Recordings of Kubernetes 1.37 and 1.36, compressed.
const RECORDINGS: [(&str, &[u8]); 2] = [
    ("two nodes, 1.37", include_bytes!("../../../../../tests/drain/two-nodes-1.37.jsonl.gz")),
    ("a pool, 1.36", include_bytes!("../../../../../tests/drain/pool-1.36.jsonl.gz")),
];

#[test]
fn recorded_drains_are_repeated() {
    for (name, packed) in RECORDINGS {
        let mut recording = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut recording).expect("text");
        let mut lines: VecDeque<String> = recording.lines().map(ToOwned::to_owned).collect();
        let header = lines.pop_front().expect("the settings");
        let header = doc::parse(&header).expect("JSON");
        // What was told then stands at the end.
        let told: Vec<String> = header.root().get("told").items().map(Value::to_json).collect();
        let mut replay = Replay::new(lines);
        let mut watcher = RecordingUserInterface::default();
        drain(&mut replay, &settings_of(header.root()), &mut watcher);
        let events: Vec<String> = watcher
            .timed
            .iter()
            .map(|(at, event)| json(&TimedEvent { at: gotime::rfc3339(*at), event }))
            .collect();
        assert_eq!(events, told, "{name}");
        assert!(told.iter().any(|event| event.contains("wave-finished")), "{name}: something moved");
        assert_eq!(replay.lines.len(), 0, "{name}: everything was played");
    }
}

fn json(event: &TimedEvent<'_>) -> String {
    let text = serde_json::to_string(event).expect("JSON");
    doc::parse(&text).expect("JSON").root().to_json()
}
