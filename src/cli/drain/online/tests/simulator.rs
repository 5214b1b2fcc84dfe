//! A small cluster in memory that answers a drain: rules get conditions, evicted pods end and are replaced, time passes
//! only in pauses. What real API servers answer is in the recordings; this one is for what rarely happens.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use crate::cli::drain::online::server::{ObjectKey, ObjectStore, Server, ServerResponse};
use crate::cli::drain::online::time::add_duration;
use crate::cli::state::OwnedObject;
use crate::cluster::{ApiError, DrainApiRequest};
use tollgate_document::doc;
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime::{self, Timestamp};

/// What happens at some time.
type Action = Box<dyn FnOnce(&mut Simulator)>;

/// An answer that a test gives instead of the simulator's.
type Override = Box<dyn FnMut(&mut Simulator, &DrainApiRequest) -> Option<Result<ServerResponse, ApiError>>>;

pub(super) struct Simulator {
    pub(super) now: Timestamp,
    pub(super) objects: ObjectStore,
    /// Every request in order, as method and path.
    pub(super) log: Vec<String>,
    pub(super) is_interrupted: Rc<Cell<bool>>,
    /// The JSON of the Lease; `None` if there is none.
    pub(super) lease: Option<String>,
    /// Rules get a condition.
    pub(super) has_controller: bool,
    /// Seconds from eviction until a pod is gone, and from then until its replacement is Ready.
    pub(super) grace: u64,
    pub(super) start: u64,
    /// The scheduler gives closed devices to pods.
    pub(super) ignores_rules: bool,
    /// Evicted pods are replaced.
    pub(super) has_replacements: bool,
    /// Pods that never end.
    pub(super) stuck: BTreeSet<String>,
    due: Vec<(Timestamp, Action)>,
    overrides: Vec<Override>,
    counter: u32,
}

impl Simulator {
    pub(super) fn new(objects: ObjectStore) -> Simulator {
        let lease = r#"{"metadata":{"name":"tollgate-drain","namespace":"tollgate-system","resourceVersion":"1"},"spec":{}}"#;
        Simulator {
            now: gotime::parse_rfc3339("2026-11-16T09:00:00Z").expect("a time"),
            objects,
            log: Vec::new(),
            is_interrupted: Rc::default(),
            lease: Some(lease.to_owned()),
            has_controller: true,
            grace: 2,
            start: 3,
            ignores_rules: false,
            has_replacements: true,
            stuck: BTreeSet::new(),
            due: Vec::new(),
            overrides: Vec::new(),
            counter: 0,
        }
    }

    /// Answers some requests in another way.
    pub(super) fn answer_with(
        &mut self,
        answer: impl FnMut(&mut Simulator, &DrainApiRequest) -> Option<Result<ServerResponse, ApiError>> + 'static,
    ) {
        self.overrides.push(Box::new(answer));
    }

    /// Does something after so many seconds.
    pub(super) fn after(&mut self, seconds: u64, action: impl FnOnce(&mut Simulator) + 'static) {
        self.due.push((add_duration(self.now, Duration::from_secs(seconds)), Box::new(action)));
    }

    /// Stores an object, given as JSON.
    pub(super) fn set(&mut self, kind: ObjectKind, json: &str) {
        let object = doc::parse(json).expect("JSON");
        let metadata = object.root().get("metadata");
        let name = |field: &str| metadata.get(field).str().to_owned();
        let api_version = match kind {
            ObjectKind::Pod => "v1",
            ObjectKind::ResourceClaim | ObjectKind::DeviceTaintRule => "resource.k8s.io/v1",
            _ => "apps/v1",
        };
        let stored = OwnedObject::from_value(api_version, kind.name(), object.root());
        self.objects.insert_or_remove((kind, name("namespace"), name("name")), Some(stored));
    }

    pub(super) fn remove(&mut self, kind: ObjectKind, namespace: &str, name: &str) {
        let key: ObjectKey = (kind, namespace.to_owned(), name.to_owned());
        self.objects.insert_or_remove(key, None);
    }

    /// The JSON of an object.
    pub(super) fn json(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<String> {
        self.objects.get(kind, namespace, name).map(doc::Value::to_json)
    }

    /// Names of the rules with their effects.
    pub(super) fn rules(&self) -> Vec<(String, String)> {
        let rules = self.objects.objects_of_kind(ObjectKind::DeviceTaintRule);
        rules
            .map(|rule| {
                let effect = rule.get("spec").get("taint").get("effect").str();
                (rule.get("metadata").get("name").str().to_owned(), effect.to_owned())
            })
            .collect()
    }

    /// Requests whose text contains that.
    pub(super) fn sent(&self, part: &str) -> usize {
        self.log.iter().filter(|line| line.contains(part)).count()
    }

    pub(super) fn number(&mut self) -> u32 {
        self.counter += 1;
        self.counter
    }

    fn write_rule(&mut self, json: &str, generation: u32) -> String {
        let rule = doc::parse(json).expect("JSON");
        let name = rule.root().get("metadata").get("name").str().to_owned();
        let old = self.json(ObjectKind::DeviceTaintRule, "", &name);
        let uid = old.as_ref().map_or_else(
            || format!("rule-{}", self.number()),
            |old| doc::parse(old).expect("JSON").root().get("metadata").get("uid").str().to_owned(),
        );
        let version = self.number();
        let added = gotime::rfc3339(self.now);
        let effect = rule.root().get("spec").get("taint").get("effect").str();
        let metadata = rule.root().get("metadata");
        let spec = rule.root().get("spec");
        let key = spec.get("taint").get("key").str();
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{uid}","generation":{generation},"resourceVersion":"{version}","labels":{},"annotations":{}}},"spec":{{"deviceSelector":{},"taint":{{"key":"{key}","effect":"{effect}","timeAdded":"{added}"}}}}STATUS}}"#,
            metadata.get("labels").to_json(),
            metadata.get("annotations").to_json(),
            spec.get("deviceSelector").to_json(),
        );
        let stored = json.replace("STATUS", "");
        self.set(ObjectKind::DeviceTaintRule, &stored);
        if self.has_controller {
            let status = format!(
                r#","status":{{"conditions":[{{"type":"EvictionInProgress","status":"False","reason":"NoEffect","observedGeneration":{generation},"message":"All good."}}]}}"#
            );
            let confirmed = json.replace("STATUS", &status);
            self.after(1, move |sim| sim.set(ObjectKind::DeviceTaintRule, &confirmed));
        }
        stored
    }

    /// Ends a pod, and makes another one with other devices on another node.
    fn evict(&mut self, namespace: &str, name: &str) {
        let Some(pod) = self.json(ObjectKind::Pod, namespace, name) else { return };
        let deleted =
            pod.replacen(r#""metadata":{"#, r#""metadata":{"deletionTimestamp":"2026-11-16T09:00:00Z","#, 1);
        self.set(ObjectKind::Pod, &deleted);
        if self.stuck.contains(name) {
            return;
        }
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.after(self.grace, move |sim| sim.replace(&namespace, &name, &pod));
    }

    fn replace(&mut self, namespace: &str, name: &str, pod: &str) {
        self.remove(ObjectKind::Pod, namespace, name);
        let old = doc::parse(pod).expect("JSON");
        let (root, number) = (old.root(), self.number());
        let uid = root.get("metadata").get("uid").str();
        let mut new = pod.replace(name, &format!("{name}x")).replace(uid, &format!("uid-{number}"));
        let claims: Vec<String> = (root.get("status").get("resourceClaimStatuses").items())
            .map(|status| status.get("resourceClaimName").str().to_owned())
            .collect();
        for claim in claims {
            let Some(json) = self.json(ObjectKind::ResourceClaim, namespace, &claim) else { continue };
            self.remove(ObjectKind::ResourceClaim, namespace, &claim);
            if !self.has_replacements {
                continue;
            }
            let (pool, device) = self.free_device();
            let stored = doc::parse(&json).expect("JSON");
            let results = stored.root().get("status").get("allocation").get("devices").get("results");
            let result = results.items().next().expect("a device");
            let (old_pool, old_device) = (result.get("pool").to_json(), result.get("device").to_json());
            let node = root.get("spec").get("nodeName").to_json();
            let moved = json
                .replace(name, &format!("{name}x"))
                .replace(uid, &format!("uid-{number}"))
                .replace(&format!(r#""pool":{old_pool}"#), &format!(r#""pool":"{pool}""#))
                .replace(&format!(r#""device":{old_device}"#), &format!(r#""device":"{device}""#));
            self.set(ObjectKind::ResourceClaim, &moved);
            new = new.replace(&node, &format!(r#""{pool}""#));
        }
        if !self.has_replacements {
            return;
        }
        let created = gotime::rfc3339(self.now);
        let old_time = root.get("metadata").get("creationTimestamp").to_json();
        new = new.replace(
            &format!(r#""creationTimestamp":{old_time}"#),
            &format!(r#""creationTimestamp":"{created}""#),
        );
        self.set(ObjectKind::Pod, &with_ready(&new, false));
        let ready = with_ready(&new, true);
        self.after(self.start, move |sim| sim.set(ObjectKind::Pod, &ready));
    }

    /// A device that no claim holds and no rule selects.
    fn free_device(&self) -> (String, String) {
        let closed: BTreeSet<String> = (self.objects.objects_of_kind(ObjectKind::DeviceTaintRule))
            .map(|rule| rule.get("spec").get("deviceSelector").get("pool").str().to_owned())
            .collect();
        let mut held: BTreeSet<(String, String)> = BTreeSet::new();
        for claim in self.objects.objects_of_kind(ObjectKind::ResourceClaim) {
            for result in claim.get("status").get("allocation").get("devices").get("results").items() {
                held.insert((result.get("pool").str().to_owned(), result.get("device").str().to_owned()));
            }
        }
        let mut slices: Vec<doc::Value<'_>> =
            self.objects.objects_of_kind(ObjectKind::ResourceSlice).collect();
        // Closed devices come first, if the scheduler does not know that they are.
        slices.sort_by_key(|slice| !closed.contains(slice.get("spec").get("pool").get("name").str()));
        for slice in slices {
            let pool = slice.get("spec").get("pool").get("name").str().to_owned();
            for device in slice.get("spec").get("devices").items() {
                let found = (pool.clone(), device.get("name").str().to_owned());
                if (self.ignores_rules || !closed.contains(&pool)) && !held.contains(&found) {
                    return found;
                }
            }
        }
        panic!("no free device");
    }

    fn answer(&mut self, request: &DrainApiRequest) -> ServerResponse {
        let ok = |body: String| ServerResponse { code: 200, body };
        let status =
            |code: u16, message: &str| ServerResponse { code, body: format!(r#"{{"message":"{message}"}}"#) };
        match request {
            DrainApiRequest::ReviewAccess(_) => ok(r#"{"status":{"allowed":true}}"#.to_owned()),
            DrainApiRequest::GetLease { .. } => match &self.lease {
                Some(lease) => ok(lease.clone()),
                None => status(404, "leases not found"),
            },
            DrainApiRequest::UpdateLease { object, .. } => {
                let version = |json: &str| {
                    let lease = doc::parse(json).expect("JSON");
                    lease.root().get("metadata").get("resourceVersion").str().to_owned()
                };
                let (old, new) = (version(self.lease.as_ref().expect("a Lease")), version(object));
                if old != new {
                    return status(409, "the object has been modified");
                }
                let next = format!(r#""resourceVersion":"{}""#, self.number() + 100);
                let stored = object.replace(&format!(r#""resourceVersion":"{old}""#), &next);
                self.lease = Some(stored.clone());
                ok(stored)
            }
            DrainApiRequest::CreateRule { object, is_dry_run, .. } => {
                let rule = doc::parse(object).expect("JSON");
                let name = rule.root().get("metadata").get("name").str();
                if self.json(ObjectKind::DeviceTaintRule, "", name).is_some() {
                    return status(409, "already exists");
                }
                ok(if *is_dry_run { object.clone() } else { self.write_rule(object, 1) })
            }
            DrainApiRequest::UpdateRule { object, is_dry_run, name, .. } => {
                let is_effect = object.contains(r#""effect":"NoSchedule""#);
                let before = self.json(ObjectKind::DeviceTaintRule, "", name).unwrap_or_default();
                let generation = if is_effect && before.contains(r#""effect":"None""#) { 2 } else { 1 };
                ok(if *is_dry_run { object.clone() } else { self.write_rule(object, generation) })
            }
            DrainApiRequest::GetRule { name, .. } => match self.json(ObjectKind::DeviceTaintRule, "", name) {
                Some(rule) => ok(rule),
                None => status(404, "not found"),
            },
            DrainApiRequest::DeleteRule { name, .. } => {
                self.remove(ObjectKind::DeviceTaintRule, "", name);
                ok("{}".to_owned())
            }
            DrainApiRequest::EvictPod { namespace, name, uid, .. }
            | DrainApiRequest::DeletePod { namespace, name, uid } => {
                let found = self.objects.get(ObjectKind::Pod, namespace, name);
                if found.is_none_or(|found| found.get("metadata").get("uid").str() != uid) {
                    return status(404, "pods not found");
                }
                self.evict(namespace, name);
                ServerResponse { code: 201, body: "{}".to_owned() }
            }
        }
    }
}

/// The pod with that condition, and no other.
pub(super) fn with_ready(pod: &str, is_ready: bool) -> String {
    let status = if is_ready { "True" } else { "False" };
    let condition = format!(r#"[{{"type":"Ready","status":"{status}"}}]"#);
    let object = doc::parse(pod).expect("JSON");
    let conditions = object.root().get("status").get("conditions");
    if conditions.exists() {
        return pod.replace(&conditions.to_json(), &condition);
    }
    pod.replacen(r#""status":{"#, &format!(r#""status":{{"conditions":{condition},"#), 1)
}

impl Server for Simulator {
    fn time_of_last_exchange(&self) -> Timestamp {
        self.now
    }

    fn pause(&mut self, duration: Duration) {
        let end = add_duration(self.now, duration);
        loop {
            let next = (0..self.due.len()).min_by_key(|place| self.due[*place].0);
            match next.filter(|place| self.due[*place].0 <= end) {
                Some(place) => {
                    let (at, action) = self.due.remove(place);
                    self.now = self.now.max(at);
                    action(self);
                }
                None => break,
            }
        }
        self.now = end;
    }

    fn is_interrupted(&self) -> bool {
        self.is_interrupted.get()
    }

    fn send(&mut self, request: &DrainApiRequest) -> Result<ServerResponse, ApiError> {
        let (method, path) = request.method_and_path();
        self.log.push(format!("{method} {path}"));
        let mut overrides = std::mem::take(&mut self.overrides);
        let answer = overrides.iter_mut().find_map(|answer| answer(self, request));
        overrides.append(&mut self.overrides);
        self.overrides = overrides;
        answer.unwrap_or_else(|| Ok(self.answer(request)))
    }

    fn refresh(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn objects(&self) -> &ObjectStore {
        &self.objects
    }

    fn list_claims(&mut self) -> Result<ObjectStore, String> {
        self.log.push("LIST resourceclaims".to_owned());
        let mut claims = ObjectStore::default();
        for (api_version, claim) in self.objects.claims() {
            let metadata = claim.get("metadata");
            let name = |field: &str| metadata.get(field).str().to_owned();
            let stored = OwnedObject::from_value(api_version, "ResourceClaim", claim);
            claims
                .insert_or_remove((ObjectKind::ResourceClaim, name("namespace"), name("name")), Some(stored));
        }
        Ok(claims)
    }
}
