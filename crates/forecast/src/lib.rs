//! Who holds which device, what is left, and where pods that are evicted or created will go.
//!
//! [`State`] has the objects of a cluster; [`CelSelectors`] evaluates device selectors for the allocator. Everything is a
//! function of its input: no files, no clock, no threads; chance comes from a seed.

pub mod nodes;
mod selectors;
mod state;

pub use selectors::CelSelectors;
pub use state::{ObjectKind, Objects, State, StoredObject};
