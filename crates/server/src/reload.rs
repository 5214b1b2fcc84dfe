//! The configuration that requests are evaluated with, reloaded while the server runs: completely or not at all.
//!
//! Policies are loaded by the caller's [`Reloader`]. It is called after every event; a valid configuration is swapped
//! in under running requests, errors are reported (log, metric, `readyz?verbose`) and the last good one stays in use.
//! So it does while a new configuration waits for the namespace labels that its policies need. A request uses one
//! [`ServingConfig`] from start to end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;

use super::background::NamespaceLabelCache;
use super::clock;
use super::metrics::Metrics;
use tollgate_engine::engine::{Engine, LabelsIfKnown, LoadedNamespaces, NamespaceLabelLookup as _};

/// Warning if [`ServingConfig::policies_lack_label_source`] is true: policies need namespace labels that are not
/// available.
pub(super) const NO_LABELS_MESSAGE: &str = "a policy depends on namespace labels, which are not available, so requests to which the \
    policy might apply fail with an error; set --cluster, --cluster=labels or --namespaces FILE";

/// The engine and namespace labels with which requests are evaluated.
#[derive(Clone, Debug)]
pub struct ServingConfig {
    /// Profiles, rules and policies.
    pub engine: Engine,
    /// Namespaces loaded from a file.
    pub namespaces: Option<Arc<LoadedNamespaces>>,
    /// Policies of some source are not known yet. Requests fail with an error, because what those policies deny must
    /// not be admitted.
    pub awaits_policies: bool,
}

impl From<Engine> for ServingConfig {
    fn from(engine: Engine) -> ServingConfig {
        ServingConfig { engine, namespaces: None, awaits_policies: false }
    }
}

impl ServingConfig {
    /// True if policies need namespace labels, which are neither watched nor loaded from a file.
    pub(super) fn policies_lack_label_source(&self, watched: Option<&dyn NamespaceLabelCache>) -> bool {
        self.engine.policies.needs_namespace_labels() && self.namespaces.is_none() && watched.is_none()
    }

    /// Logs a warning if policies need namespace labels that are neither watched nor loaded from a file: requests will
    /// fail.
    pub(super) fn warn_if_labels_are_missing(&self, watched: Option<&dyn NamespaceLabelCache>) {
        if self.policies_lack_label_source(watched) {
            tracing::warn!("{NO_LABELS_MESSAGE}");
        }
    }

    /// The labels of a namespace from the file, if one is loaded.
    pub(super) fn labels_from_file(&self, namespace: &str) -> LabelsIfKnown<'_> {
        self.namespaces.as_ref().map_or(LabelsIfKnown::Unknown, |all| all.labels(namespace))
    }
}

/// The result of loading the configuration again, and the directories to watch.
#[derive(Debug)]
pub struct ReloadResult {
    /// Whether the configuration changed, and the new one if it did.
    pub outcome: ReloadOutcome,
    /// Directories to watch for the next change.
    pub directories: Vec<PathBuf>,
}

/// The result of loading policies and namespace labels again.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// The files did not change since the last load, whether they were valid then or not.
    Unchanged,
    /// The files changed and are valid; this is the new configuration.
    Loaded(Box<ServingConfig>),
    /// Something other than the files changed, and the files are invalid. The new configuration contains the last valid
    /// files; the texts are the errors of the current ones.
    LoadedWithLastFiles(Box<ServingConfig>, Vec<String>),
    /// The files changed and are invalid. Contains all errors, with file, line and column.
    Invalid(Vec<String>),
}

/// Changes an engine after it is loaded, such as setting the source of its cluster state.
pub(super) type EngineChange = Box<dyn Fn(&mut Engine) + Send + Sync>;

/// Functions that are called with a new engine: `before` it answers its first request, and `after`.
pub struct ReloadHooks {
    /// Called with the new engine; the old one answers requests until it returns.
    pub before: Box<dyn Fn(&Engine) + Send + Sync>,
    /// Called with the engine that is now in use.
    pub after: Box<dyn Fn(&Engine) + Send + Sync>,
}

/// Loads the policies and namespace labels again.
pub type Reloader = Box<dyn FnMut() -> ReloadResult + Send>;

/// The configuration in use and the state of its reloads.
pub(super) struct ReloadableConfig {
    current: ArcSwap<ServingConfig>,
    reloader: Option<Mutex<Reloader>>,
    /// Applied to every engine before it is used. Locked while an engine is replaced.
    customize: Mutex<Option<EngineChange>>,
    /// Functions called when an engine is replaced; set once, by the registration.
    hooks: OnceLock<ReloadHooks>,
    /// Why the current files are not in use; `None` if they are.
    error: Mutex<Option<String>>,
    /// A valid configuration that waits for the namespace labels that it needs.
    waiting: Mutex<Option<Box<ServingConfig>>>,
    metrics: Arc<Metrics>,
}

impl ReloadableConfig {
    /// Starts with a loaded configuration; without a `reloader` it never changes.
    pub(super) fn new(
        config: ServingConfig,
        reloader: Option<Reloader>,
        metrics: Arc<Metrics>,
    ) -> ReloadableConfig {
        metrics.record_policies_loaded(&config.engine, reloader.is_some().then(clock::unix_seconds));
        log_policies(&config);
        let reloader = reloader.map(Mutex::new);
        let current = ArcSwap::from_pointee(config);
        ReloadableConfig {
            current,
            reloader,
            customize: Mutex::default(),
            hooks: OnceLock::new(),
            error: Mutex::default(),
            waiting: Mutex::default(),
            metrics,
        }
    }

    /// Changes the engine in use and every engine loaded later.
    pub(super) fn customize_current_and_later_engines(&self, change: EngineChange) {
        let mut customize = self.customize.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = ServingConfig::clone(&self.current.load());
        change(&mut config.engine);
        self.current.store(Arc::new(config));
        *customize = Some(change);
        drop(customize);
        if let Some(hooks) = self.hooks.get() {
            (hooks.after)(&self.current.load().engine);
        }
    }

    /// Sets the hooks for every engine loaded from now on, and calls `after` with the engine in use. Later calls are
    /// ignored, except that they call `after` once.
    pub(super) fn set_hooks_once_and_call_after_hook(&self, hooks: ReloadHooks) {
        (hooks.after)(&self.current.load().engine);
        let _ = self.hooks.set(hooks);
    }

    /// Returns the configuration in use.
    pub(super) fn current(&self) -> arc_swap::Guard<Arc<ServingConfig>> {
        self.current.load()
    }

    /// Returns why the current files are not in use; `None` if they are.
    pub(super) fn reload_error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if a new configuration waits for namespace labels.
    pub(super) fn has_config_waiting_for_labels(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Reloads the files and uses them if they changed and are valid, as soon as the labels they need are `watched`. If
    /// `requested`, logs also that nothing changed. Returns the directories to watch.
    pub(super) fn reload_returning_directories_to_watch(
        &self,
        requested: bool,
        watched: Option<&dyn NamespaceLabelCache>,
    ) -> Vec<PathBuf> {
        let Some(reloader) = &self.reloader else { return Vec::new() };
        let mut reloader = reloader.lock().unwrap_or_else(PoisonError::into_inner);
        // This thread also reloads certificates: it must survive a bug in the reloader.
        let reload = catch_unwind(AssertUnwindSafe(&mut **reloader));
        let ReloadResult { outcome, directories } = reload.unwrap_or_else(|_| {
            let errors = vec!["internal error while loading the policies; please report it".to_owned()];
            ReloadResult { outcome: ReloadOutcome::Invalid(errors), directories: Vec::new() }
        });
        match outcome {
            ReloadOutcome::Unchanged if requested => {
                tracing::info!("reload requested; the policies have not changed")
            }
            ReloadOutcome::Unchanged => {}
            ReloadOutcome::Loaded(config) => {
                self.use_when_ready(config, watched);
                *self.error.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
            ReloadOutcome::LoadedWithLastFiles(config, errors) => {
                self.use_when_ready(config, watched);
                self.record_errors(&errors);
            }
            ReloadOutcome::Invalid(errors) => {
                *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.record_errors(&errors);
            }
        }
        directories
    }

    /// Replaces the configuration in use, as soon as the namespace labels that it needs are `watched`.
    fn use_when_ready(&self, config: Box<ServingConfig>, watched: Option<&dyn NamespaceLabelCache>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
        if self.still_waits_after_apply_attempt(watched) {
            self.metrics.record_policy_reload_pending();
            tracing::info!(
                "new policies are not used until the namespaces are listed; the last valid policies stay in use"
            );
        }
    }

    /// Reports files that are invalid. The same errors are logged once.
    fn record_errors(&self, errors: &[String]) {
        let (count, error) = (errors.len(), errors.join("; "));
        self.metrics.count_failed_policy_reload();
        let mut known = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_deref() != Some(error.as_str()) {
            tracing::warn!(
                errors = error.as_str(),
                count,
                "cannot use the new policies; the last valid policies stay in use"
            );
        }
        *known = Some(error);
    }

    /// Uses the configuration that waits, if the labels it needs are known now. True if it still waits; false also if
    /// none waits.
    pub(super) fn still_waits_after_apply_attempt(&self, watched: Option<&dyn NamespaceLabelCache>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut config) = waiting.take() else { return false };
        if let Some(watched) = watched.filter(|_| config.engine.policies.needs_namespace_labels()) {
            watched.start_label_watch_if_not_running();
            if !watched.is_synced() {
                *waiting = Some(config);
                return true;
            }
        }
        drop(waiting);
        if let Some(hooks) = self.hooks.get() {
            (hooks.before)(&config.engine);
        }
        let customize = self.customize.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(customize) = &*customize {
            customize(&mut config.engine);
        }
        let config = Arc::from(config);
        // Stored first: what is logged is in use.
        self.current.store(Arc::clone(&config));
        drop(customize);
        if let Some(hooks) = self.hooks.get() {
            (hooks.after)(&config.engine);
        }
        self.metrics.record_policies_loaded(&config.engine, Some(clock::unix_seconds()));
        log_policies(&config);
        config.warn_if_labels_are_missing(watched);
        false
    }
}

fn log_policies(config: &ServingConfig) {
    let policies = &config.engine.policies;
    if !policies.is_empty() {
        tracing::info!(digest = policies.digest(), policies = policies.len(), "policies in use");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Metrics, ReloadOutcome, ReloadResult, ReloadableConfig, Reloader, ServingConfig};
    use tollgate_engine::engine::Engine;
    use tollgate_engine::rules::RuleSet;

    fn engine(rules: &str) -> Engine {
        Engine::new(Vec::new(), RuleSet::parse(rules).expect("rules"))
    }

    #[test]
    fn a_reload_that_fails_keeps_the_configuration_in_use() {
        let mut calls = 0;
        let reloader: Reloader = Box::new(move || {
            calls += 1;
            let outcome = match calls {
                1 => ReloadOutcome::Invalid(vec!["a.yaml:1:1: one".to_owned(), "b.yaml:1:1: two".to_owned()]),
                2 => panic!("a bug"),
                3 => ReloadOutcome::Unchanged,
                _ => ReloadOutcome::Loaded(Box::new(ServingConfig::from(engine("lint")))),
            };
            ReloadResult { outcome, directories: vec!["watched".into()] }
        });
        let config =
            ReloadableConfig::new(engine("upstream").into(), Some(reloader), Arc::new(Metrics::new()));
        let before = Arc::as_ptr(&config.current());
        let in_use = || Arc::as_ptr(&config.current()) == before;
        assert_eq!(
            config.reload_returning_directories_to_watch(false, None),
            [std::path::PathBuf::from("watched")]
        );
        assert_eq!(config.reload_error().as_deref(), Some("a.yaml:1:1: one; b.yaml:1:1: two"));
        assert!(in_use());
        assert!(
            config.reload_returning_directories_to_watch(false, None).is_empty(),
            "nothing is known after a panic"
        );
        assert!(in_use() && config.reload_error().is_some_and(|error| error.contains("please report it")));
        config.reload_returning_directories_to_watch(true, None);
        assert!(in_use() && config.reload_error().is_some(), "unchanged files are as invalid as before");
        config.reload_returning_directories_to_watch(false, None);
        assert!(!in_use() && config.reload_error().is_none());
    }
}
