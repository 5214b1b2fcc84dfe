//! A running cluster as a [`Server`]: watches for the objects, requests for everything else, and the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::recording::Recorder;
use super::server::{ObjectKey, ObjectStore, Server, ServerResponse};
use crate::cli::clock;
use crate::cli::live::object_kind;
use crate::cli::outcome::Failure;
use crate::cli::snapshot::{OptionalFields, keep_needed_fields};
use crate::cli::state::OwnedObject;
use crate::cluster::{
    ApiError, Cluster, DrainApiRequest, KeptFieldsAndSizeLimit, ListEvent, ListOutcome, ListedKind,
    ObjectWatch, ProjectFn, RESOURCE_CLAIMS, WatchState, WatchedObject,
};
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::Timestamp;

/// Maximum time until all watches have listed their objects; large clusters take long.
const SYNC_TIMEOUT: Duration = Duration::from_mins(2);
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
        let project: ProjectFn =
            Arc::new(|kind, _, object| Ok(keep_needed_fields(kind, object, OptionalFields::WITH_MESSAGES)));
        let watch = ObjectWatch::start(cluster, needed, wanted, &project, "manifests/components/drain");
        watch
            .wait_until_synced(SYNC_TIMEOUT)
            .map_err(|failures| Failure::from_kinds_that_cannot_be_listed(&failures))?;
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

    /// Sets the time that [`Server::time_of_last_exchange`] returns until the next call.
    fn set_cached_time_to_now(&mut self) {
        self.now = clock::timestamp();
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
        self.set_cached_time_to_now();
        if let Some(recorder) = &mut self.recorder {
            recorder.record_call(self.now, "pause", &Ok(()));
        }
    }

    fn catch_interrupts(&mut self) {
        self.interrupted = Some(self.cluster.install_interrupt_flag());
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interrupted| interrupted.load(Ordering::Acquire))
    }

    fn send(&mut self, request: &DrainApiRequest) -> Result<ServerResponse, ApiError> {
        let answer = self.cluster.send(request.clone()).map(|(code, body)| ServerResponse { code, body });
        self.set_cached_time_to_now();
        if let Some(recorder) = &mut self.recorder {
            recorder.record_request(self.now, request, &answer);
        }
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
        self.set_cached_time_to_now();
        let failures = self.watch.missing_data_messages();
        let result = if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) };
        if let Some(recorder) = &mut self.recorder {
            recorder.record_call(self.now, "refresh", &result);
        }
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
        self.set_cached_time_to_now();
        let result = match listed {
            Ok(ListOutcome::All { .. }) if left_out.is_empty() => Ok(claims),
            Ok(ListOutcome::All { .. }) => Err(left_out.join("; ")),
            Ok(ListOutcome::NotServed) => Err("the API server does not serve resourceclaims".to_owned()),
            Err(error) => Err(format!("cannot list resourceclaims: {error}")),
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.record_claims(self.now, &result);
        }
        result
    }
}
