//! A running cluster as a [`Server`]: watches for the objects, requests for everything else, and the clock.
//!
//! `--record FILE` writes every request with its answer, every change that the watches showed, and the times, for
//! whoever wants to know afterwards what a drain did and saw. The tests replay recordings of real clusters with it. One
//! JSON object per line; a line with `at` ends what belongs to one call of a [`Server`].

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;

use super::server::{ObjectKey, ObjectStore, Server, ServerResponse};
use super::time::micro_time;
use crate::cli::clock;
use crate::cli::live::{object_kind, watch_objects};
use crate::cli::outcome::Failure;
use crate::cli::snapshot::{OptionalFields, keep_needed_fields};
use crate::cli::state::OwnedObject;
use crate::cluster::{
    ApiError, Cluster, DrainApiRequest, KeptFieldsAndSizeLimit, ListEvent, ListOutcome, ListedKind,
    ObjectWatch, RESOURCE_CLAIMS, WatchState, WatchedObject,
};
use crate::report::record::{Json, record};
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::Timestamp;

/// Longest sleep without a look at the interrupt flag, so that Ctrl-C ends a pause soon.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(100);

/// The connection of a drain to a running cluster.
pub(super) struct LiveServer {
    cluster: Cluster,
    watch: ObjectWatch,
    objects: ObjectStore,
    revision: u64,
    now: Timestamp,
    /// Set by Ctrl-C or SIGTERM once interrupts are held; `None` before, while they end the process.
    interrupted: Option<Arc<AtomicBool>>,
    recorder: Option<Recorder>,
}

impl LiveServer {
    /// Starts the watches and waits until everything is listed. Also returns notes about kinds that the user may not
    /// list.
    pub(super) fn connect(
        cluster: &Cluster,
        needed: &[ListedKind],
        wanted: &[ListedKind],
        recorder: Option<Recorder>,
    ) -> Result<(LiveServer, Vec<String>), Failure> {
        let watch = watch_objects(cluster, needed, wanted, OptionalFields::WITH_MESSAGES)?;
        let mut objects = ObjectStore::default();
        for status in watch.status() {
            // Of what the user may not list, nothing is known.
            let known = object_kind(&status.kind).filter(|_| status.state != WatchState::Forbidden);
            objects.listed.extend(known);
        }
        let notes = watch.omitted_kind_notes();
        let (cluster, now) = (cluster.clone(), clock::timestamp());
        let mut server =
            LiveServer { cluster, watch, objects, revision: 0, now, interrupted: None, recorder };
        server.copy_watched_objects();
        if let Some(recorder) = &mut server.recorder {
            recorder.record_call(now, "connect", &Ok(()));
        }
        Ok((server, notes))
    }

    /// Replaces all objects by those that the watches have now.
    fn copy_watched_objects(&mut self) {
        let all = self.watch.objects();
        self.revision = all.revision;
        self.objects.objects.clear();
        for object in &all.objects {
            self.set_or_remove_object_and_record(object.kind, &object.namespace, &object.name, Some(object));
        }
    }

    /// Adds, replaces or (`None`) removes an object, and records the change.
    fn set_or_remove_object_and_record(
        &mut self,
        kind: ListedKind,
        namespace: &str,
        name: &str,
        object: Option<&Arc<WatchedObject>>,
    ) {
        let Some(known) = object_kind(&kind) else { return };
        let key: ObjectKey = (known, namespace.to_owned(), name.to_owned());
        let stored = object.map(|object| OwnedObject::from(&**object));
        if let Some(recorder) = &mut self.recorder {
            recorder.record_change(&key, stored.as_ref());
        }
        self.objects.insert_or_remove(key, stored);
    }

    /// Sets the time that [`Server::time_of_last_exchange`] returns until the next call, and records the exchange.
    fn end_exchange(&mut self, record: impl FnOnce(&mut Recorder, Timestamp)) {
        self.now = clock::timestamp();
        if let Some(recorder) = &mut self.recorder {
            record(recorder, self.now);
        }
    }
}

impl Server for LiveServer {
    fn time_of_last_exchange(&self) -> Timestamp {
        self.now
    }

    fn pause(&mut self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() && !self.is_interrupted() {
            let part = left.min(INTERRUPT_PERIOD);
            std::thread::sleep(part);
            left = left.saturating_sub(part);
        }
        self.end_exchange(|recorder, now| recorder.record_call(now, "pause", &Ok(())));
    }

    fn catch_interrupts(&mut self) {
        self.interrupted = Some(self.cluster.install_interrupt_flag());
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interrupted| interrupted.load(Ordering::Acquire))
    }

    fn send(&mut self, request: &DrainApiRequest) -> Result<ServerResponse, ApiError> {
        let answer = self.cluster.send(request.clone()).map(|(code, body)| ServerResponse { code, body });
        self.end_exchange(|recorder, now| recorder.record_request(now, request, &answer));
        answer
    }

    fn refresh(&mut self) -> Result<(), String> {
        match self.watch.changes_since(self.revision) {
            Some(changes) => {
                for change in &changes {
                    self.revision = change.revision;
                    self.set_or_remove_object_and_record(
                        change.kind,
                        &change.namespace,
                        &change.name,
                        change.object.as_ref(),
                    );
                }
            }
            None => self.copy_watched_objects(),
        }
        let failures = self.watch.missing_data_messages();
        let result = if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) };
        self.end_exchange(|recorder, now| recorder.record_call(now, "refresh", &result));
        result
    }

    fn objects(&self) -> &ObjectStore {
        &self.objects
    }

    fn list_claims(&mut self) -> Result<ObjectStore, String> {
        let mut claims = ObjectStore::default();
        claims.listed.push(ObjectKind::ResourceClaim);
        let mut left_out = Vec::new();
        let listed = self.cluster.list(
            &RESOURCE_CLAIMS,
            RESOURCE_CLAIMS.versions,
            None,
            KeptFieldsAndSizeLimit::WHOLE_OBJECTS,
            &mut |event| match event {
                ListEvent::Object { api_version, object } => {
                    let kept = keep_needed_fields(&RESOURCE_CLAIMS, object, OptionalFields::WITH_MESSAGES);
                    let metadata = object.get("metadata");
                    let name = |field: &str| metadata.get(field).str().to_owned();
                    let stored = OwnedObject::from_value(api_version, RESOURCE_CLAIMS.kind, kept.root());
                    claims.insert_or_remove(
                        (ObjectKind::ResourceClaim, name("namespace"), name("name")),
                        Some(stored),
                    );
                }
                ListEvent::LeftOut { namespace, name, why } => {
                    left_out.push(format!("claim {namespace}/{name} {why}"));
                }
                ListEvent::Page { .. } => {}
            },
        );
        let result = match listed {
            Ok(ListOutcome::All { .. }) if left_out.is_empty() => Ok(claims),
            Ok(ListOutcome::All { .. }) => Err(left_out.join("; ")),
            Ok(ListOutcome::NotServed) => Err("the API server does not serve resourceclaims".to_owned()),
            Err(error) => Err(format!("cannot list resourceclaims: {error}")),
        };
        self.end_exchange(|recorder, now| recorder.record_claims(now, &result));
        result
    }
}

/// Writes the recording of a drain (`--record`): each request with its answer, and each change that the watches
/// show.
pub(super) struct Recorder {
    out: Box<dyn Write + Send>,
}

impl Recorder {
    /// A recorder that writes to `out`.
    pub(super) fn new(out: Box<dyn Write + Send>) -> Recorder {
        Recorder { out }
    }

    /// Writes a line. An error is ignored, because a recording that cannot be written must not end a drain.
    fn write_json_line(&mut self, line: &Json) {
        _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }

    /// Records that an object has changed, or was deleted if `object` is `None`.
    fn record_change(&mut self, key: &ObjectKey, object: Option<&OwnedObject>) {
        let (kind, namespace, name) = key;
        self.write_json_line(&record! {
            "kind": kind.name(),
            "apiVersion": object.map_or("", |stored| &*stored.api_version),
            "namespace": namespace,
            "name": name,
            "object": object.and_then(|stored| RawValue::from_string(stored.object.root().to_json()).ok()),
        });
    }

    /// Records the end of a call of the server that sends no write request: `connect`, `refresh`, `claims` or
    /// `pause`.
    fn record_call<T>(&mut self, at: Timestamp, call: &str, result: &Result<T, String>) {
        let problem = result.as_ref().err();
        self.write_json_line(&record! { "at": micro_time(at), "call": call, "problem" if given: problem });
    }

    /// Records a request with its answer.
    fn record_request(
        &mut self,
        at: Timestamp,
        request: &DrainApiRequest,
        answer: &Result<ServerResponse, ApiError>,
    ) {
        let (method, path) = request.method_and_path();
        let (code, text) = match answer {
            Ok(answer) => (Some(answer.code), answer.body.clone()),
            Err(error) => (None, error.to_string()),
        };
        self.write_json_line(&record! {
            "at": micro_time(at),
            "send": format!("{method} {path}"),
            "body" if given: request.body(),
            "code" if given: code,
            "answer": text,
        });
    }

    /// Records the result of listing the claims.
    fn record_claims(&mut self, at: Timestamp, result: &Result<ObjectStore, String>) {
        for (api_version, claim) in result.iter().flat_map(ObjectStore::claims) {
            let claim = RawValue::from_string(claim.to_json()).ok();
            self.write_json_line(&record! { "claim": claim, "apiVersion": api_version });
        }
        self.record_call(at, "claims", result);
    }
}
