//! The objects of a cluster without the texts that they were read from: a state that several threads share.
//!
//! They are copies of the objects of a dump, or those that the watches of a running cluster keep.

#[cfg(feature = "cluster")]
use std::sync::Arc;

use super::objects::CopiedObject;
#[cfg(feature = "cluster")]
use crate::cluster::WatchedObject;
use tollgate_document::doc::Value;
use tollgate_engine::impact::{Snapshot, StoredDetails, UnreadableObject};
use tollgate_forecast::{ObjectKind, State};

/// Objects of a cluster, copied or shared with a watch, which outlive the texts that they were read from.
#[derive(Debug)]
pub(in crate::cli) struct OwnedObjects {
    copies: Vec<CopiedObject>,
    #[cfg(feature = "cluster")]
    watched: Vec<Arc<WatchedObject>>,
    /// The kinds of which all objects are known, even if there are none.
    listed: Vec<ObjectKind>,
}

impl OwnedObjects {
    /// Creates the objects from copies of those of a dump, and the kinds that it lists.
    pub(super) fn of_copies(copies: Vec<CopiedObject>, listed: Vec<ObjectKind>) -> OwnedObjects {
        OwnedObjects {
            copies,
            #[cfg(feature = "cluster")]
            watched: Vec::new(),
            listed,
        }
    }

    /// Creates the objects from those that watches keep, and the kinds that they could list.
    #[cfg(feature = "cluster")]
    pub(in crate::cli) fn of_watch(
        watched: Vec<Arc<WatchedObject>>,
        listed: Vec<ObjectKind>,
    ) -> OwnedObjects {
        OwnedObjects { copies: Vec::new(), watched, listed }
    }

    /// Returns the objects by kind, as forecasts read them.
    pub(in crate::cli) fn state(&self) -> State<'_> {
        let mut state = State::default();
        for (api_version, kind, object) in self.objects() {
            state.add_with_type(api_version, kind, object);
        }
        self.listed.iter().for_each(|kind| state.mark_listed(*kind));
        state
    }

    /// Returns a snapshot: the data of the objects from which impact is computed.
    pub(in crate::cli) fn snapshot(&self) -> Result<Snapshot, UnreadableObject> {
        let mut snapshot = Snapshot::with_details(StoredDetails { attributes: true, counters: true });
        for (api_version, kind, object) in self.objects() {
            snapshot.apply_as_type(api_version, kind, object)?;
        }
        Ok(snapshot)
    }

    /// The objects, each with its apiVersion and kind.
    fn objects(&self) -> impl Iterator<Item = (&str, &'static str, Value<'_>)> {
        let all = self.copies.iter().map(|copy| (&*copy.api_version, copy.kind, copy.object.root()));
        #[cfg(feature = "cluster")]
        let all = all.chain(
            self.watched.iter().map(|object| (&*object.api_version, object.kind.kind, object.object.root())),
        );
        all
    }
}
