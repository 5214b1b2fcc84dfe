//! The objects of a cluster, kind by kind and page by page, with progress on stderr and a record of what is missing.
//!
//! Read-only. A list that fails does not end the run: it is reported on stderr, and the caller sets the exit code.

use super::ConnectedServer;
use crate::cli::console::Console;
use crate::cli::progress::ProgressBar;
use crate::cluster::{ApiError, KeptFieldsAndSizeLimit, ListEvent, ListOutcome, ListedKind};
use tollgate_api::profile::{ApiKind, Version};
use tollgate_document::doc::Value;
use tollgate_formats::count::count_with_noun;

/// The objects of a cluster that were not read, as messages.
#[derive(Clone, Default, Debug)]
pub(in crate::cli) struct UnreadObjectMessages {
    /// Messages about lists and objects that could not be read.
    pub(in crate::cli) failures: Vec<String>,
    /// Messages about optional kinds that the user may not list.
    pub(in crate::cli) not_permitted: Vec<String>,
    /// Resources that the API server does not serve, each with its group.
    pub(in crate::cli) not_served: Vec<String>,
}

impl UnreadObjectMessages {
    /// Adds the omissions of another reader.
    pub(in crate::cli) fn extend(&mut self, other: UnreadObjectMessages) {
        self.failures.extend(other.failures);
        self.not_permitted.extend(other.not_permitted);
        self.not_served.extend(other.not_served);
    }

    /// Adds a failure and prints it to stderr.
    pub(in crate::cli) fn print_and_add_failure(&mut self, failure: String, console: &mut Console) {
        console.error(&failure);
        self.failures.push(failure);
    }
}

/// Maximum number of unreadable objects of a list that are named; the others are counted.
const MAX_NAMED_OBJECTS: usize = 10;

/// Objects that could not be read, or do not fit into memory. The first ones are named, the others are counted.
#[derive(Clone, Default, Debug)]
pub(in crate::cli) struct MissingObjects {
    pub(super) named: Vec<String>,
    pub(super) more: usize,
}

impl MissingObjects {
    /// Adds an object; `what` describes it and is called only for the first ones.
    pub(in crate::cli) fn add_description_or_only_count(&mut self, what: impl FnOnce() -> String) {
        if self.named.len() < MAX_NAMED_OBJECTS {
            self.named.push(what());
        } else {
            self.more += 1;
        }
    }

    /// Prints the objects to stderr and adds them to the failures.
    pub(in crate::cli) fn print_and_add_to(
        self,
        omissions: &mut UnreadObjectMessages,
        console: &mut Console,
    ) {
        for error in self.named {
            omissions.print_and_add_failure(error, console);
        }
        if self.more > 0 {
            omissions.print_and_add_failure(
                format!("{} cannot be read", count_with_noun(self.more, "more object")),
                console,
            );
        }
    }
}

/// Lists objects of a cluster, and collects what could not be read.
#[derive(Debug)]
pub(in crate::cli) struct ClusterLister<'a> {
    asked: &'a ConnectedServer,
    /// Only this namespace.
    namespace: Option<&'a str>,
    pub(in crate::cli) omissions: UnreadObjectMessages,
}

impl<'a> ClusterLister<'a> {
    /// Reads objects of all namespaces, or of one.
    pub(in crate::cli) fn new(asked: &'a ConnectedServer, namespace: Option<&'a str>) -> ClusterLister<'a> {
        ClusterLister { asked, namespace, omissions: UnreadObjectMessages::default() }
    }

    /// Calls `each` with every object of a kind and its apiVersion. Objects that are too large are reported as
    /// failures. Returns the apiVersion that was listed; `None` if the kind is not served. The error says why the list
    /// is not complete. It was printed: as a note if the user may not list a kind that is not needed, else as a failure.
    pub(in crate::cli) fn list_objects(
        &mut self,
        kind: &ListedKind,
        is_needed: bool,
        limits: KeptFieldsAndSizeLimit,
        console: &mut Console,
        each: &mut dyn FnMut(&str, Value<'_>, &mut Console),
    ) -> Result<Option<String>, String> {
        self.try_list_objects(kind, limits, console, each).map_err(|(why, is_forbidden)| {
            if is_forbidden && !is_needed {
                console.note(&why);
                self.omissions.not_permitted.push(why.clone());
            } else {
                self.omissions.print_and_add_failure(why.clone(), console);
            }
            why
        })
    }

    /// Lists the objects of a kind with progress on stderr, and calls `each` with every one. Returns the
    /// apiVersion that was listed; `None` if the kind is not served. The error says why the list is not complete, and
    /// whether because the user lacks the permission.
    fn try_list_objects(
        &mut self,
        kind: &ListedKind,
        limits: KeptFieldsAndSizeLimit,
        console: &mut Console,
        each: &mut dyn FnMut(&str, Value<'_>, &mut Console),
    ) -> Result<Option<String>, (String, bool)> {
        // An optional group has resources of the same name as resource.k8s.io.
        let resource =
            if kind.is_optional_api() { kind.kubectl_resource_name() } else { kind.resource.to_owned() };
        let failed =
            |why: &dyn std::fmt::Display, code| (format!("cannot list {resource}: {why}"), code == 403);
        let versions =
            self.versions_to_request(kind).map_err(|error| failed(&error, error.http_status_or_zero()))?;
        let mut progress = ProgressBar::with_total(0);
        let mut missing = MissingObjects::default();
        let listed =
            self.asked.cluster.list(kind, &versions, self.namespace, limits, &mut |event| match event {
                ListEvent::Object { api_version, object } => each(api_version, object, console),
                ListEvent::LeftOut { namespace, name, why } => missing.add_description_or_only_count(|| {
                    let slash = if namespace.is_empty() { "" } else { "/" };
                    format!("{} {namespace}{slash}{name} {why}; it is not read, to limit memory", kind.kind)
                }),
                ListEvent::Page { count, remaining } => {
                    progress.count_items(count, remaining);
                    progress.draw_bar_if_due(format_args!("{resource}"));
                }
            });
        progress.erase_bar();
        missing.print_and_add_to(&mut self.omissions, console);
        match listed {
            Ok(ListOutcome::All { api_version, caveat }) => {
                if let Some(caveat) = caveat {
                    console.note(&format!(
                        "{resource}: {caveat}; the objects may be from different points in time"
                    ));
                }
                Ok(Some(api_version))
            }
            Ok(ListOutcome::NotServed) => {
                self.omissions.not_served.push(kind.kubectl_resource_name());
                if !kind.is_optional_api() {
                    console.note(&format!("this API server does not serve {resource}"));
                }
                Ok(None)
            }
            // The beginning of a list is not a list that is not permitted.
            Err(list) => {
                Err(failed(&list, if list.after == 0 { list.error.http_status_or_zero() } else { 0 }))
            }
        }
    }

    /// Returns the versions in which to list a kind: those that discovery says are served, or all if it could not
    /// be read. A version that is not served is not requested, because a user without permission would get an
    /// error 403 instead of 404.
    fn versions_to_request(&self, kind: &ListedKind) -> Result<Vec<&'static str>, ApiError> {
        if kind.is_optional_api() {
            return self.asked.cluster.served_versions(kind);
        }
        let served = self.asked.info.live.served.as_ref().ok();
        Ok(match (ApiKind::from_group_and_name(kind.group, kind.kind), served) {
            (Some(known), Some(served)) if known.only_version_if_profile_independent().is_none() => {
                let is_served = |version: &&&str| {
                    Version::parse(version).is_some_and(|version| served.has(known, version))
                };
                kind.versions.iter().filter(is_served).copied().collect()
            }
            _ => kind.versions.to_vec(),
        })
    }
}
