//! What `--register` keeps registered: which configurations, with which entries and CA bundle, following every reload.
//!
//! Invariant: while policies are replaced, the registration is wide enough for the old set and for the new one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::watch;

use crate::cli::clock;
use crate::cli::manifests;
use crate::cluster::{ManifestFn, SharedStatus};
use crate::registration::{Api, Destination, Entries};
use crate::server::{ReloadHooks, SelfSignedCerts};
use crate::source;

/// Whose CA goes into the bundle.
#[derive(Clone, Debug)]
pub(super) enum Authorities {
    /// Ours.
    Own(Arc<SelfSignedCerts>),
    /// Somebody keeps it in a file.
    File(PathBuf),
    /// Somebody else fills the bundle in.
    Others,
}

impl Authorities {
    /// PEM.
    fn bundle(&self, in_use: &str) -> anyhow::Result<Option<String>> {
        Ok(match self {
            Authorities::Own(made) => Some(made.merged_bundle(in_use, clock::unix())),
            Authorities::File(file) => {
                let bytes = manifests::read(file).map_err(|failure| anyhow::anyhow!(failure.message()))?;
                Some(String::from_utf8(bytes).with_context(|| format!("{} is not PEM", file.display()))?)
            }
            Authorities::Others => None,
        })
    }
}

/// The entries of the base configurations that should be registered, and how often that changed.
pub(super) struct Desired {
    entries: Mutex<Entries>,
    revision: watch::Sender<u64>,
}

impl Desired {
    pub(super) fn new(entries: Entries) -> Desired {
        Desired { entries: Mutex::new(entries), revision: watch::Sender::new(1) }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn entries(&self) -> Entries {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The revision to wait for, if this changes anything.
    fn set(&self, entries: Entries) -> Option<u64> {
        let mut held = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if *held == entries {
            return None;
        }
        *held = entries;
        self.revision.send_modify(|revision| *revision += 1);
        Some(*self.revision.borrow())
    }
}

/// New policies wait this often, and this long each time, for a registration that is wide enough: 5 s.
const WIDEN_TRIES: usize = 250;
const WIDEN_PERIOD: Duration = Duration::from_millis(20);

/// Registers what new policies need before they answer, and gives up what they do not need after that.
pub(super) fn follow(desired: Arc<Desired>, statuses: Vec<Arc<SharedStatus>>) -> ReloadHooks {
    let after = desired.clone();
    ReloadHooks {
        before: Box::new(move |engine| {
            let needed = Entries::needed_by(engine);
            let Some(revision) = desired.set(desired.entries().union(&needed)) else { return };
            let is_late = |status: &Arc<SharedStatus>| {
                let state = status.get();
                // One that fails is reported on its own; new policies do not wait for it.
                state.ok && state.revision < revision
            };
            for _ in 0..WIDEN_TRIES {
                if !statuses.iter().any(is_late) {
                    return;
                }
                std::thread::sleep(WIDEN_PERIOD);
            }
            tracing::warn!(
                "the webhook configurations were not widened in time: the new policies are in use, and the API server \
                 does not send every object they are about yet"
            );
        }),
        after: Box::new(move |engine| {
            after.set(Entries::needed_by(engine));
        }),
    }
}

/// One of the webhook configurations that are kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Configuration {
    /// Validating, mutating.
    Base(usize),
    /// The same of another API.
    Other(Api, usize),
}

impl Configuration {
    pub(super) fn all(with: &[Api]) -> Vec<Configuration> {
        let mut all = vec![Configuration::Base(0), Configuration::Base(1)];
        for api in Api::ALL.into_iter().filter(|api| with.contains(api)) {
            all.push(Configuration::Other(api, 0));
            if matches!(api, Api::ClassicDra | Api::Kep5055R1) {
                all.push(Configuration::Other(api, 1));
            }
        }
        all
    }

    /// In metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Configuration::Base(0) => "validating",
            Configuration::Base(_) => "mutating",
            Configuration::Other(Api::Pods, _) => "pods-validating",
            Configuration::Other(Api::Foundationdb, _) => "foundationdb-validating",
            Configuration::Other(Api::ClassicDra, 0) => "classic-dra-validating",
            Configuration::Other(Api::ClassicDra, _) => "classic-dra-mutating",
            Configuration::Other(Api::Kep5055R1, 0) => "kep-5055-r1-validating",
            Configuration::Other(Api::Kep5055R1, _) => "kep-5055-r1-mutating",
        }
    }

    /// In `/readyz?verbose`.
    pub(super) fn job(self) -> &'static str {
        match self {
            Configuration::Base(0) => "validating-registration",
            Configuration::Base(_) => "mutating-registration",
            other @ Configuration::Other(..) => other.label(),
        }
    }

    pub(super) fn manifest_fn(
        self,
        here: Destination,
        authorities: Authorities,
        desired: Arc<Desired>,
    ) -> ManifestFn {
        Arc::new(move |in_use| {
            let bundle = authorities.bundle(in_use)?.map(|bundle| STANDARD.encode(bundle));
            let bundle = bundle.as_deref();
            let text = match self {
                Configuration::Base(index) => here.base(&desired.entries(), bundle).into_iter().nth(index),
                Configuration::Other(api, index) => here.other(api, bundle).into_iter().nth(index),
            };
            let text = text.unwrap_or_default();
            let mut documents = source::documents(&text);
            let document = documents.next().and_then(Result::ok).context("the manifest is YAML")?;
            Ok(document.doc.root().to_json())
        })
    }
}
