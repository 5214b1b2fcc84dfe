//! Keeps a webhook configuration registered: created once, and as it should be for as long as we serve.
//!
//! What should be there is a function of the CA bundle that is there ([`Wanted`]): a new CA comes beside the old one,
//! and replicas that make CAs of their own add up instead of overwriting each other. Server-side apply owns only what
//! we write; the API server's defaults, and webhooks that others added, stay.
//!
//! Invariant: nothing is written before `ready`, nothing that is already right is written again, and a configuration
//! that somebody deleted stays deleted: deleting it is how an administrator breaks the glass.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::time::{Instant, sleep, timeout};

use super::ask::{Client, Lines, OBJECTS, Trouble, refusal};
use super::retry::{Backoff, Timing};
use super::{Cluster, Standing};
use crate::doc::{self, Kind, Value};

/// Our name among the managers of fields.
const MANAGER: &str = "tollgate";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
/// How often to ask whether we are ready.
const READY_PERIOD: Duration = Duration::from_millis(50);

/// From the CA certificates that are registered now (PEM, empty if none) to the whole configuration as JSON.
pub type Wanted = Arc<dyn Fn(&str) -> anyhow::Result<String> + Send + Sync>;

/// What is to be registered, and when.
#[derive(Clone)]
pub struct Registration {
    /// What should be there.
    pub wanted: Wanted,
    /// Nothing is written before this is true.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// A configuration that is not there yet waits this much longer: others must learn first that we are ready.
    pub delay: Duration,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration").field("delay", &self.delay).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Registers, and keeps it so.
    pub fn register(&self, registration: Registration) -> anyhow::Result<Arc<Standing>> {
        let target = Target::of(&(registration.wanted)("")?)?;
        let standing = Arc::new(Standing::default());
        standing.change(|state| "waiting until the server is ready".clone_into(&mut state.says));
        let keeper = Keeper {
            client: self.client.clone(),
            timing: self.timing,
            registration,
            target,
            standing: standing.clone(),
            right: None,
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

    /// A list of at most one: unlike the version of an old object, that of a list can always be watched from.
    fn list(&self) -> String {
        format!("{GROUP}/{}?fieldSelector=metadata.name%3D{}", self.resource, self.name)
    }
}

/// Why a round ended well.
enum Round {
    /// Something is to be looked at anew.
    Again,
    /// Somebody deleted it.
    Deleted,
}

struct Keeper {
    client: Client,
    timing: Timing,
    registration: Registration,
    target: Target,
    standing: Arc<Standing>,
    /// What was there and right the last time, if it ever was.
    right: Option<String>,
    /// The delay before it is created is over.
    waited: bool,
}

impl Keeper {
    async fn keep(mut self) {
        while !(self.registration.ready)() {
            sleep(READY_PERIOD).await;
        }
        let mut backoff = Backoff::new(self.timing);
        loop {
            let began = Instant::now();
            match self.round().await {
                Ok(Round::Again) => {}
                Ok(Round::Deleted) => return self.deleted(),
                Err(trouble) => self.tell(&trouble),
            }
            // Somebody who changes it back each time, or a watch that ends at once, must not make us spin.
            if began.elapsed() >= self.timing.stable {
                backoff.reset();
            } else {
                backoff.wait().await;
            }
        }
    }

    /// Looks, writes if need be, and returns when there is a reason to look again.
    async fn round(&mut self) -> Result<Round, Trouble> {
        let text = self.client.get(&self.target.list(), OBJECTS).await?;
        let list = parse(&text)?;
        let version = list.root().get("metadata").get("resourceVersion").str();
        let held = list.root().get("items").at(0);
        if !held.exists() {
            if self.right.is_some() {
                return Ok(Round::Deleted);
            }
            // Nobody calls us before it is there.
            self.standing.change(|state| state.settled = true);
            if !std::mem::replace(&mut self.waited, true) {
                sleep(self.registration.delay).await;
                return Ok(Round::Again);
            }
        }
        let wanted = self.with_bundle(&held_bundle(held))?;
        if !holds(held, parse(&wanted)?.root()) {
            self.write(held, &wanted).await?;
        }
        self.right = Some(wanted.clone());
        self.standing.change(|state| {
            (state.ok, state.settled) = (true, true);
            state.says = format!("registered as {}/{}", self.target.resource, self.target.name);
        });
        let seconds = self.timing.watch.as_secs().max(1);
        let list = self.target.list();
        let path = format!(
            "{list}&watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let lines = self.client.watch(&path, OBJECTS).await?;
        self.stand_by(lines, wanted).await
    }

    /// Returns when what is there, or what should be there, is no longer what was written.
    async fn stand_by(&self, mut lines: Lines, mut wanted: String) -> Result<Round, Trouble> {
        let mut heard = Instant::now();
        let mut held = held_bundle(parse(&wanted)?.root());
        loop {
            match timeout(self.timing.look, lines.next()).await {
                Ok(Ok(Some(line))) => {
                    heard = Instant::now();
                    let event = parse(&line)?;
                    let object = event.root().get("object");
                    match event.root().get("type").str() {
                        "BOOKMARK" => {}
                        "ADDED" | "MODIFIED" => {
                            held = held_bundle(object);
                            wanted = self.with_bundle(&held)?;
                            if !holds(object, parse(&wanted)?.root()) {
                                return Ok(Round::Again);
                            }
                        }
                        "DELETED" => return Ok(Round::Deleted),
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
            // Our own certificates may have been renewed meanwhile.
            if self.with_bundle(&held)? != wanted {
                return Ok(Round::Again);
            }
        }
    }

    async fn write(&self, held: Value<'_>, wanted: &str) -> Result<(), Trouble> {
        let Target { resource, name } = &self.target;
        // If what was right would still be, it is not we who want something else.
        if let Some(right) = &self.right
            && self.with_bundle(&held_bundle(parse(right)?.root()))? == *right
        {
            let by = last_manager(held);
            tracing::warn!(resource, name, by, "somebody changed the registration, it is put right");
        }
        self.client.apply(&format!("{GROUP}/{resource}/{name}"), MANAGER, wanted.to_owned()).await?;
        self.standing.change(|state| state.done += 1);
        tracing::info!(resource, name, created = !held.exists(), "registered");
        Ok(())
    }

    fn with_bundle(&self, bundle: &str) -> Result<String, Trouble> {
        (self.registration.wanted)(bundle).map_err(|error| Trouble::Unreachable(format!("{error:#}")))
    }

    fn tell(&self, trouble: &Trouble) {
        let Target { resource, name } = &self.target;
        let hint = match trouble.code() {
            401 => "; are the credentials still good?",
            403 => "; manifests/overlays/register has the ClusterRole: list, watch, create, patch",
            _ => "",
        };
        tracing::warn!(resource, name, "not registered, trying again: {trouble}{hint}");
        self.standing.change(|state| {
            state.ok = false;
            state.failed += 1;
            state.says = format!("{trouble}{hint}");
        });
    }

    fn deleted(&self) {
        let Target { resource, name } = &self.target;
        tracing::warn!(
            resource,
            name,
            "somebody deleted the registration; it is not made again until a restart"
        );
        self.standing.change(|state| {
            state.ok = false;
            "deleted by somebody; not registered again until a restart".clone_into(&mut state.says);
        });
    }
}

fn parse(text: &str) -> Result<doc::Doc<'_>, Trouble> {
    doc::parse(text)
        .map_err(|error| Trouble::Unreachable(format!("the answer is not JSON: {}", error.detail)))
}

/// The CA certificates of all webhooks, PEM, each text once.
fn held_bundle(configuration: Value<'_>) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for webhook in configuration.get("webhooks").items() {
        let bundle = webhook.get("clientConfig").get("caBundle").str();
        if !texts.contains(&bundle) {
            texts.push(bundle);
        }
    }
    let decoded = texts.iter().filter_map(|text| STANDARD.decode(text).ok());
    decoded.filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
}

/// Everything that is wanted is there. What else is there is the API server's or somebody else's.
fn holds(held: Value<'_>, wanted: Value<'_>) -> bool {
    match wanted.kind() {
        Kind::Object => {
            held.kind() == Kind::Object
                && wanted.members().all(|(name, value)| holds(held.get(name.text()), value))
        }
        // Webhooks are known by their names; other lists are what they are.
        Kind::Array if wanted.items().all(is_webhook) => wanted.items().all(|webhook| {
            let name = webhook.get("name").str();
            held.items().filter(|held| held.get("name").str() == name).any(|held| holds(held, webhook))
        }),
        Kind::Array => {
            held.len() == wanted.len()
                && held.items().zip(wanted.items()).all(|(held, wanted)| holds(held, wanted))
        }
        _ => held.kind() == wanted.kind() && held.text() == wanted.text(),
    }
}

fn is_webhook(value: Value<'_>) -> bool {
    value.get("name").exists() && value.get("clientConfig").exists()
}

/// Who wrote to an object last, as far as it tells.
fn last_manager(object: Value<'_>) -> String {
    let entries = object.get("metadata").get("managedFields").items();
    let others = entries.filter(|entry| entry.get("manager").str() != MANAGER);
    let last = others.max_by_key(|entry| entry.get("time").str());
    last.map_or("", |entry| entry.get("manager").str()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{held_bundle, holds};
    use crate::doc;

    #[test]
    fn what_is_wanted_is_looked_for_in_what_is_there() {
        let wanted = r#"{"metadata":{"name":"t"},"webhooks":[{"name":"a","clientConfig":{"url":"u"},"rules":[{"x":[1,2]}]}]}"#;
        let table = [
            (wanted, true),
            (
                r#"{"metadata":{"name":"t","uid":"u"},"webhooks":[{"name":"of others","clientConfig":{}},
                   {"name":"a","clientConfig":{"url":"u","caBundle":""},"rules":[{"x":[1,2],"scope":"*"}],"matchPolicy":"Exact"}]}"#,
                true,
            ),
            (r#"{"metadata":{"name":"t"},"webhooks":[]}"#, false),
            (r#"{"metadata":{"name":"t"}}"#, false),
            (
                r#"{"metadata":{"name":"t"},"webhooks":[{"name":"a","clientConfig":{"url":"v"},"rules":[{"x":[1,2]}]}]}"#,
                false,
            ),
            (
                r#"{"metadata":{"name":"t"},"webhooks":[{"name":"a","clientConfig":{"url":"u"},"rules":[{"x":[1,2]},{}]}]}"#,
                false,
            ),
            (
                r#"{"metadata":{"name":"t"},"webhooks":[{"name":"a","clientConfig":{"url":"u"},"rules":[{"x":[1,"2"]}]}]}"#,
                false,
            ),
            ("null", false),
        ];
        let wanted = doc::parse(wanted).unwrap();
        for (held, expected) in table {
            assert_eq!(holds(doc::parse(held).unwrap().root(), wanted.root()), expected, "{held}");
        }
    }

    #[test]
    fn the_bundles_of_all_webhooks_are_read() {
        let held = doc::parse(
            r#"{"webhooks":[{"clientConfig":{"caBundle":"QQ=="}},{"clientConfig":{"caBundle":"QQ=="}},
                {"clientConfig":{"caBundle":"Qg=="}},{"clientConfig":{}},{"clientConfig":{"caBundle":"?"}}]}"#,
        )
        .unwrap();
        assert_eq!(held_bundle(held.root()), "AB");
    }
}
