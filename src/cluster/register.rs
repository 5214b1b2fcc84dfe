//! Keeps a webhook configuration registered: created once, and as it should be for as long as the process serves.
//!
//! What is wanted is a function of the CA bundle that is there ([`Wanted`]): a new CA comes beside the old one, and
//! replicas that make CAs of their own add up instead of overwriting each other. Entries of others stay.
//!
//! Replicas may disagree for a while on which entries they need, because a ConfigMap reaches them at different times. So
//! entries that are no longer needed are removed once, when what is wanted changes here; after that a replica only adds
//! what is missing, and two of them never fight.
//!
//! Invariant: nothing is written before `ready`, nothing that is already right is written again, and a configuration
//! that somebody deleted stays deleted: that is the emergency stop. One that was garbage-collected with its owner was
//! not deleted by anybody, and is created again as soon as there is a new owner.

mod compare;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::ask::{Client, Lines, OBJECTS, Trouble, refusal};
use super::retry::{Backoff, Timing};
use super::{Cluster, Standing};
use crate::doc::{self, Value};
use compare::{Owner, differences, has_leftovers, held_bundle, lacks_bundle};

/// The name under which the API server records this program's changes.
const MANAGER: &str = "tollgate";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/// How often to ask whether the server is ready.
const READY_PERIOD: Duration = Duration::from_millis(50);
/// How soon after the last time a change of somebody else is reverted again.
const REVERT_PERIOD: Duration = Duration::from_millis(500);
/// How often the owner is looked up. Configurations that were collected with it are back within 10 s.
const OWNER_PERIOD: Duration = Duration::from_secs(3);

/// From the CA certificates that are registered now (PEM, empty if none) to the whole configuration as JSON.
pub type Wanted = Arc<dyn Fn(&str) -> anyhow::Result<String> + Send + Sync>;

/// What is to be registered, and when.
#[derive(Clone)]
pub struct Registration {
    /// What should be there.
    pub wanted: Wanted,
    /// Counts the changes of what is wanted; [`super::Progress::revision`] is the last one that was registered.
    pub revision: watch::Receiver<u64>,
    /// Nothing is written before this is true.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// A configuration that is not there yet waits this much longer: the Service must have endpoints first.
    pub delay: Duration,
    /// The ClusterRole that owns the configuration: it is garbage-collected with it.
    pub owner: Option<String>,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Registers, and keeps it so.
    pub fn register(&self, registration: Registration) -> anyhow::Result<Arc<Standing>> {
        let target = Target::of(&(registration.wanted)("")?)?;
        let standing = Arc::new(Standing::default());
        standing.change(|state| "waiting until the server is ready".clone_into(&mut state.says));
        let mut timing = self.timing;
        if registration.owner.is_some() {
            timing.most = timing.most.min(OWNER_PERIOD);
            timing.look = timing.look.min(OWNER_PERIOD);
        }
        let keeper = Keeper {
            client: self.client.clone(),
            timing,
            registration,
            target,
            standing: standing.clone(),
            placed: None,
            waited: false,
        };
        self.spawn(keeper.keep());
        Ok(standing)
    }
}

/// Which object it is.
struct Target {
    resource: &'static str,
    name: String,
}

impl Target {
    fn of(manifest: &str) -> anyhow::Result<Target> {
        let manifest = doc::parse(manifest).map_err(|error| anyhow::anyhow!(error.detail))?;
        let resource = match manifest.root().get("kind").str() {
            "ValidatingWebhookConfiguration" => "validatingwebhookconfigurations",
            "MutatingWebhookConfiguration" => "mutatingwebhookconfigurations",
            other => anyhow::bail!("{other} is not a webhook configuration"),
        };
        Ok(Target { resource, name: manifest.root().get("metadata").get("name").str().to_owned() })
    }

    fn path(&self) -> String {
        format!("{GROUP}/{}/{}", self.resource, self.name)
    }

    /// A list of at most one: unlike the version of an old object, that of a list can always be watched from.
    fn list(&self) -> String {
        format!("{GROUP}/{}?fieldSelector=metadata.name%3D{}", self.resource, self.name)
    }
}

/// Why a round ended well.
enum Round {
    /// Something is to be looked at anew.
    Again,
    /// What is wanted changed here; nobody waits for that.
    Changed,
    /// Somebody changed it: it is put right at once, however often that was necessary before.
    Wrong,
    /// The owner does not exist; whether the configuration does.
    NoOwner(bool),
    /// Somebody deleted it.
    Deleted,
}

/// What was registered last.
struct Placed {
    revision: u64,
    /// As JSON.
    wanted: String,
    owner: Option<Owner>,
    /// There was something to register; with nothing wanted, there may be no object.
    exists: bool,
}

/// What is registered now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Put {
    /// What is wanted.
    Right,
    /// The same, without a caBundle: somebody else is to fill it in.
    Untrusted,
    /// Nothing, and nothing is wanted.
    Nothing,
}

impl Put {
    fn of(held: Value<'_>) -> Put {
        if lacks_bundle(held) { Put::Untrusted } else { Put::Right }
    }
}

struct Keeper {
    client: Client,
    timing: Timing,
    registration: Registration,
    target: Target,
    standing: Arc<Standing>,
    placed: Option<Placed>,
    /// The delay before it is created is over.
    waited: bool,
}

impl Keeper {
    async fn keep(mut self) {
        while !(self.registration.ready)() {
            sleep(READY_PERIOD).await;
        }
        let mut backoff = Backoff::new(self.timing);
        let mut reverted: Option<Instant> = None;
        loop {
            let began = Instant::now();
            match self.round().await {
                Ok(Round::Changed) => continue,
                // At most twice a second, so that two who disagree do not keep the API server busy.
                Ok(Round::Wrong) => {
                    let since = reverted.map_or(REVERT_PERIOD, |before| before.elapsed());
                    sleep(REVERT_PERIOD.saturating_sub(since)).await;
                    reverted = Some(Instant::now());
                    continue;
                }
                Ok(Round::Again) => {}
                Ok(Round::NoOwner(is_held)) => self.tell_missing_owner(is_held),
                Ok(Round::Deleted) => return self.tell_deleted(),
                Err(trouble) => self.tell(&trouble),
            }
            // Somebody who changes it back each time, or a watch that ends at once, must not make us spin.
            if began.elapsed() >= self.timing.stable {
                backoff.reset();
            } else {
                // New policies do not wait for it.
                _ = unless_changed(&mut self.registration.revision, backoff.wait()).await;
            }
        }
    }

    /// Looks, writes if need be, and returns when there is a reason to look again.
    async fn round(&mut self) -> Result<Round, Trouble> {
        let revision = *self.registration.revision.borrow_and_update();
        let owner = self.owner().await?;
        let text = self.client.get(&self.target.list(), OBJECTS).await?;
        let list = parse(&text)?;
        let version = list.root().get("metadata").get("resourceVersion").str();
        let held = list.root().get("items").at(0);
        if self.registration.owner.is_some() && owner.is_none() {
            return Ok(Round::NoOwner(held.exists()));
        }
        if !held.exists() {
            match &self.placed {
                Some(placed) if placed.exists && placed.owner == owner => return Ok(Round::Deleted),
                Some(_) | None => {}
            }
            // Nobody calls us before it is there.
            self.standing.change(|state| state.settled = true);
            if self.placed.is_none() && !std::mem::replace(&mut self.waited, true) {
                sleep(self.registration.delay).await;
                return Ok(Round::Again);
            }
        }
        let wanted = self.with_bundle(&held_bundle(held))?;
        let is_new = self.placed.as_ref().is_none_or(|placed| placed.revision != revision);
        let placed = match self.put_right(held, parse(&wanted)?.root(), owner.as_ref(), is_new).await {
            // A replica was faster.
            Err(trouble) if trouble.code() == 409 => return Ok(Round::Again),
            written => written?,
        };
        let exists = placed != Put::Nothing;
        self.placed = Some(Placed { revision, wanted: wanted.clone(), owner: owner.clone(), exists });
        self.standing.change(|state| {
            (state.ok, state.settled, state.revision) = (placed != Put::Untrusted, true, revision);
            let Target { resource, name } = &self.target;
            state.says = match placed {
                Put::Right => format!("registered as {resource}/{name}"),
                Put::Untrusted => {
                    format!(
                        "registered as {resource}/{name}, without a caBundle: waiting until one is injected"
                    )
                }
                Put::Nothing => "not registered: no policy needs it".to_owned(),
            };
        });
        let seconds = self.timing.watch.as_secs().max(1);
        let list = self.target.list();
        let path = format!(
            "{list}&watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let lines = self.client.watch(&path, OBJECTS).await?;
        self.stand_by(lines, wanted, owner).await
    }

    /// Writes what is wanted unless it is there.
    async fn put_right(
        &self,
        held: Value<'_>,
        wanted: Value<'_>,
        owner: Option<&Owner>,
        is_new: bool,
    ) -> Result<Put, Trouble> {
        if !held.exists() {
            if wanted.get("webhooks").is_empty() {
                return Ok(Put::Nothing);
            }
            let object = compare::created(wanted, owner);
            let answer = self.client.apply(&self.target.path(), MANAGER, object).await?;
            self.written("webhook configuration created", &[]);
            return Ok(Put::of(parse(&answer)?.root()));
        }
        let wrong = differences(held, wanted, owner);
        if wrong.is_empty() && !(is_new && has_leftovers(held, wanted)) {
            return Ok(Put::of(held));
        }
        // Somebody changed it if it is not what this process left there, whatever it wants now.
        let changed = match &self.placed {
            Some(placed) => differences(held, parse(&placed.wanted)?.root(), placed.owner.as_ref()),
            None => Vec::new(),
        };
        let by = last_manager(held);
        if !changed.is_empty() && !by.is_empty() {
            let (resource, name, fields) = (self.target.resource, &self.target.name, changed.join(", "));
            tracing::warn!(resource, name, by, fields, "the webhook configuration was changed; reverting");
            self.standing.change(|state| {
                state.ok = false;
                state.says = format!("changed by {by} ({fields}); reverting");
            });
        }
        let patch = compare::patch(held, wanted, owner, !is_new);
        let answer = self.client.merge(&self.target.path(), MANAGER, patch).await?;
        // Another controller, or an admission plugin, may have the last word.
        let still = differences(parse(&answer)?.root(), wanted, owner);
        if !still.is_empty() {
            let message = format!("the API server accepted the change and still has: {}", still.join(", "));
            return Err(Trouble::Refused { code: 200, message });
        }
        self.written("webhook configuration updated", &wrong);
        Ok(Put::of(parse(&answer)?.root()))
    }

    fn written(&self, what: &str, fields: &[String]) {
        let (resource, name, fields) = (self.target.resource, &self.target.name, fields.join(", "));
        self.standing.change(|state| state.done += 1);
        tracing::info!(resource, name, fields, "{what}");
    }

    /// Returns when what is there, or what should be there, is no longer what was written.
    async fn stand_by(
        &mut self,
        mut lines: Lines,
        mut wanted: String,
        owner: Option<Owner>,
    ) -> Result<Round, Trouble> {
        let mut heard = Instant::now();
        let mut held = held_bundle(parse(&wanted)?.root());
        loop {
            let next = timeout(self.timing.look, lines.next());
            let Some(next) = unless_changed(&mut self.registration.revision, next).await else {
                return Ok(Round::Changed);
            };
            match next {
                Ok(Ok(Some(line))) => {
                    heard = Instant::now();
                    let event = parse(&line)?;
                    let object = event.root().get("object");
                    match event.root().get("type").str() {
                        "BOOKMARK" => {}
                        "ADDED" | "MODIFIED" => {
                            held = held_bundle(object);
                            wanted = self.with_bundle(&held)?;
                            let wrong = differences(object, parse(&wanted)?.root(), owner.as_ref());
                            if !wrong.is_empty() {
                                self.standing.change(|state| {
                                    state.ok = false;
                                    state.says = format!("changed: {}", wrong.join(", "));
                                });
                                return Ok(Round::Wrong);
                            }
                            if lacks_bundle(object) == self.standing.state().ok {
                                return Ok(Round::Changed);
                            }
                        }
                        // Whether somebody deleted it, or it went with its owner, shows in the next round.
                        "DELETED" => return Ok(Round::Again),
                        "ERROR" if object.get("code").int() == Some(410) => return Ok(Round::Again),
                        _ => {
                            let code = object.get("code").int().and_then(|code| u16::try_from(code).ok());
                            return Err(refusal(code.unwrap_or(500), &object.to_json()));
                        }
                    }
                }
                Ok(Ok(None)) => return Ok(Round::Again),
                Ok(Err(trouble)) => return Err(trouble),
                Err(_) if heard.elapsed() > self.timing.silence => {
                    return Err(Trouble::Unreachable("the watch is silent".to_owned()));
                }
                Err(_) => {}
            }
            // Our own certificates may have been renewed meanwhile, or the owner replaced.
            if self.with_bundle(&held)? != wanted || self.owner().await? != owner {
                return Ok(Round::Again);
            }
        }
    }

    /// The owner as it is now; `None` if there is none, or none was named.
    async fn owner(&self) -> Result<Option<Owner>, Trouble> {
        let Some(name) = &self.registration.owner else { return Ok(None) };
        match self.client.get(&format!("{ROLES}/{name}"), OBJECTS).await {
            Ok(text) => {
                let role = parse(&text)?;
                let uid = role.root().get("metadata").get("uid").str().to_owned();
                Ok(Some(Owner { name: name.clone(), uid }))
            }
            Err(trouble) if trouble.code() == 404 => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    fn with_bundle(&self, bundle: &str) -> Result<String, Trouble> {
        (self.registration.wanted)(bundle).map_err(|error| Trouble::Unreachable(format!("{error:#}")))
    }

    fn tell(&self, trouble: &Trouble) {
        let Target { resource, name } = &self.target;
        let hint = match trouble.code() {
            401 => "; check the credentials",
            403 => "; manifests/overlays/self-managed/rbac.yaml has the ClusterRole that is needed",
            _ => "",
        };
        tracing::warn!(resource, name, "webhook configuration not registered, trying again: {trouble}{hint}");
        self.standing.change(|state| {
            state.ok = false;
            state.failed += 1;
            state.says = format!("not registered: {trouble}{hint}");
        });
    }

    fn tell_missing_owner(&self, is_held: bool) {
        let Target { resource, name } = &self.target;
        let owner = self.registration.owner.as_deref().unwrap_or_default();
        let says = format!("not registered: ClusterRole {owner}, its owner, does not exist");
        if self.standing.state().says != says {
            tracing::warn!(
                resource,
                name,
                owner,
                "webhook configuration not registered: its owner does not exist"
            );
        }
        // Whom nobody calls is ready; who is called, and not trusted, is not.
        self.standing.change(|state| {
            (state.ok, state.says) = (false, says);
            state.settled |= !is_held;
        });
    }

    fn tell_deleted(&self) {
        let Target { resource, name } = &self.target;
        tracing::warn!(
            resource,
            name,
            "the webhook configuration was deleted; it is not created again until a restart"
        );
        self.standing.change(|state| {
            state.ok = false;
            "deleted by somebody; not registered again until a restart".clone_into(&mut state.says);
        });
    }
}

/// What the work gives, or `None` if what is wanted changes first. A sender that is gone changes nothing any more.
async fn unless_changed<T>(revision: &mut watch::Receiver<u64>, work: impl Future<Output = T>) -> Option<T> {
    let mut changed = pin!(revision.changed());
    let mut work = pin!(work);
    let mut is_gone = false;
    poll_fn(|context| {
        if !is_gone {
            match changed.as_mut().poll(context) {
                Poll::Ready(Ok(())) => return Poll::Ready(None),
                Poll::Ready(Err(_)) => is_gone = true,
                Poll::Pending => {}
            }
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

fn parse(text: &str) -> Result<doc::Doc<'_>, Trouble> {
    doc::parse(text)
        .map_err(|error| Trouble::Unreachable(format!("the answer is not JSON: {}", error.detail)))
}

/// Who else wrote to an object last, as far as it tells; empty if only this program and its replicas did.
fn last_manager(object: Value<'_>) -> String {
    let entries = object.get("metadata").get("managedFields").items();
    // Times are whole seconds: within one, it was somebody else.
    let last = entries.max_by_key(|entry| (entry.get("time").str(), entry.get("manager").str() != MANAGER));
    let manager = last.map_or("", |entry| entry.get("manager").str());
    if manager == MANAGER { String::new() } else { manager.to_owned() }
}
