//! What requests are judged by, replaced while we serve: the whole set or nothing, the last good one kept.
//!
//! Where policies come from is the business of whoever gives [`Look`]; here it is asked again after every event, its
//! answer is swapped in under running requests, and what is wrong is told (log, metric, `readyz?verbose`). A request
//! sees one [`Judging`] from start to end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;

use super::clock;
use super::metrics::Metrics;
use crate::engine::{Engine, Labels, NamespaceLookup as _, Namespaces};

/// What requests are judged by.
#[derive(Clone, Debug)]
pub struct Judging {
    /// Profiles, rules and policies.
    pub engine: Engine,
    /// What is known of namespaces; nothing without it.
    pub namespaces: Option<Arc<Namespaces>>,
}

impl From<Engine> for Judging {
    fn from(engine: Engine) -> Judging {
        Judging { engine, namespaces: None }
    }
}

impl Judging {
    /// What is known of the labels of a namespace.
    pub(super) fn labels(&self, namespace: &str) -> Labels<'_> {
        self.namespaces.as_ref().map_or(Labels::Unknown, |all| all.labels(namespace))
    }
}

/// What a look at the files showed.
#[derive(Debug)]
pub struct Seen {
    /// What became of them.
    pub what: What,
    /// Where the next change shows.
    pub directories: Vec<PathBuf>,
}

/// What became of the files since the last look.
#[derive(Debug)]
pub enum What {
    /// They are what they were, good or bad.
    Same,
    /// They changed and are good.
    New(Box<Judging>),
    /// They changed and are not: everything that is wrong, with file, line and column.
    Bad(Vec<String>),
}

/// Changes an engine.
pub(super) type Adapt = Box<dyn Fn(&mut Engine) + Send + Sync>;

/// Who must know of a new engine: `before` it answers the first request, and `after`.
pub struct ReloadHooks {
    /// Called with the engine that is about to be used; requests are answered by the old one until it returns.
    pub before: Box<dyn Fn(&Engine) + Send + Sync>,
    /// Called with the engine that is in use now.
    pub after: Box<dyn Fn(&Engine) + Send + Sync>,
}

/// Looks at the files.
pub type Look = Box<dyn FnMut() -> Seen + Send>;

/// What is being judged by, and how it stands.
pub(super) struct Policies {
    current: ArcSwap<Judging>,
    look: Option<Mutex<Look>>,
    /// What is done to every engine before it is used. Held while one is put to use.
    adapt: Mutex<Option<Adapt>>,
    /// Set once, by whoever registers the webhook.
    hooks: OnceLock<ReloadHooks>,
    /// Why the files as they are now are not in use.
    fault: Mutex<Option<String>>,
    metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policies").field("current", &self.current).finish_non_exhaustive()
    }
}

impl Policies {
    /// Starts with what was loaded already; without `look` it stays so.
    pub(super) fn new(judging: Judging, look: Option<Look>, metrics: Arc<Metrics>) -> Policies {
        metrics.policies_loaded(&judging.engine, look.is_some().then(clock::unix));
        tell(&judging);
        let look = look.map(Mutex::new);
        let current = ArcSwap::from_pointee(judging);
        Policies {
            current,
            look,
            adapt: Mutex::default(),
            hooks: OnceLock::new(),
            fault: Mutex::default(),
            metrics,
        }
    }

    /// Changes the engine in use and each one that is loaded later.
    pub(super) fn adapt(&self, change: Adapt) {
        let mut adapt = self.adapt.lock().unwrap_or_else(PoisonError::into_inner);
        let mut judging = Judging::clone(&self.current.load());
        change(&mut judging.engine);
        self.current.store(Arc::new(judging));
        *adapt = Some(change);
        drop(adapt);
        if let Some(hooks) = self.hooks.get() {
            (hooks.after)(&self.current.load().engine);
        }
    }

    /// Calls these with every engine that is loaded from now on; the first call counts.
    pub(super) fn hook(&self, hooks: ReloadHooks) {
        (hooks.after)(&self.current.load().engine);
        let _ = self.hooks.set(hooks);
    }

    /// What a request is judged by.
    pub(super) fn current(&self) -> arc_swap::Guard<Arc<Judging>> {
        self.current.load()
    }

    /// Why the files as they are now are not in use.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks again, and uses what is new and good. `asked`: somebody waits to hear that nothing changed.
    /// Returns where the next change shows.
    pub(super) fn reload(&self, asked: bool) -> Vec<PathBuf> {
        let Some(look) = &self.look else { return Vec::new() };
        let mut look = look.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread that looks also looks after certificates: it must outlive a bug in here.
        let seen = catch_unwind(AssertUnwindSafe(&mut **look));
        let Seen { what, directories } = seen.unwrap_or_else(|_| {
            let faults = vec!["internal error while loading the policies: please report it".to_owned()];
            Seen { what: What::Bad(faults), directories: Vec::new() }
        });
        match what {
            What::Same if asked => tracing::info!("asked to reload: the policies have not changed"),
            What::Same => {}
            What::New(mut judging) => {
                if let Some(hooks) = self.hooks.get() {
                    (hooks.before)(&judging.engine);
                }
                let adapt = self.adapt.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(adapt) = &*adapt {
                    adapt(&mut judging.engine);
                }
                let judging = Arc::from(judging);
                // In this order: what is told is in use.
                self.current.store(Arc::clone(&judging));
                drop(adapt);
                if let Some(hooks) = self.hooks.get() {
                    (hooks.after)(&judging.engine);
                }
                self.metrics.policies_loaded(&judging.engine, Some(clock::unix()));
                tell(&judging);
                *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            What::Bad(faults) => {
                let count = faults.len();
                let fault = faults.join("; ");
                self.metrics.policies_refused();
                tracing::warn!(
                    errors = fault.as_str(),
                    count,
                    "policies not usable, the last good set stays"
                );
                *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
            }
        }
        directories
    }
}

fn tell(judging: &Judging) {
    let policies = &judging.engine.policies;
    if !policies.is_empty() {
        tracing::info!(digest = policies.digest(), policies = policies.len(), "policies in use");
    }
}
