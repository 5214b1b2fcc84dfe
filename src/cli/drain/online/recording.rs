//! A drain as a file: every request with its answer, every change that the watches showed, and the times.
//!
//! `--record FILE` writes it, for whoever wants to know afterwards what a drain did and saw. The tests replay recordings of
//! real clusters with it. One JSON object per line; a line with `at` ends what belongs to one call of a [`Server`].
//!
//! [`Server`]: super::server::Server

use std::io::Write;

use serde::Serialize;
use serde_json::value::RawValue;

use super::server::{Answer, ObjectKey, ObjectStore, StoredDoc};
use super::time::micro_time;
use crate::cluster::{ApiError, WriteRequest};
use tollgate_formats::gotime::Timestamp;

/// Writes a recording.
pub(super) struct Recorder {
    out: Box<dyn Write + Send>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// A line of a recording.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Line<'l> {
    /// An object has changed; without an object, it was deleted.
    Change {
        kind: &'l str,
        api_version: &'l str,
        namespace: &'l str,
        name: &'l str,
        object: Option<Box<RawValue>>,
    },
    /// A claim of a list.
    Claim { claim: Option<Box<RawValue>>, api_version: &'l str },
    /// A request with its answer.
    Exchange {
        at: String,
        send: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<u16>,
        answer: String,
    },
    /// The end of a call without an answer: `refresh`, `claims` or `pause`.
    Ended {
        at: String,
        call: &'l str,
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<&'l str>,
    },
}

impl Recorder {
    /// Writes to that file.
    pub(super) fn new(out: Box<dyn Write + Send>) -> Recorder {
        Recorder { out }
    }

    /// A recording that cannot be written does not end a drain.
    fn write(&mut self, line: &Line<'_>) {
        if let Ok(text) = serde_json::to_string(line) {
            _ = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        }
    }

    pub(super) fn change(&mut self, key: &ObjectKey, object: Option<&StoredDoc>) {
        let (kind, namespace, name) = key;
        self.write(&Line::Change {
            kind: kind.name(),
            api_version: object.map_or("", |stored| stored.api_version.as_str()),
            namespace,
            name,
            object: object.and_then(|stored| RawValue::from_string(stored.object.root().to_json()).ok()),
        });
    }

    pub(super) fn refreshed(&mut self, at: Timestamp, result: &Result<(), String>) {
        self.write(&Line::Ended {
            at: micro_time(at),
            call: "refresh",
            problem: result.as_ref().err().map(String::as_str),
        });
    }

    pub(super) fn connected(&mut self, at: Timestamp) {
        self.write(&Line::Ended { at: micro_time(at), call: "connect", problem: None });
    }

    pub(super) fn pause(&mut self, at: Timestamp) {
        self.write(&Line::Ended { at: micro_time(at), call: "pause", problem: None });
    }

    pub(super) fn exchange(
        &mut self,
        at: Timestamp,
        request: &WriteRequest,
        answer: &Result<Answer, ApiError>,
    ) {
        let (method, path) = request.method_and_path();
        let (code, text) = match answer {
            Ok(answer) => (Some(answer.code), answer.body.clone()),
            Err(error) => (None, error.to_string()),
        };
        self.write(&Line::Exchange {
            at: micro_time(at),
            send: format!("{method} {path}"),
            body: request.body(),
            code,
            answer: text,
        });
    }

    pub(super) fn claims(&mut self, at: Timestamp, result: &Result<ObjectStore, String>) {
        for (api_version, claim) in result.iter().flat_map(ObjectStore::claims) {
            self.write(&Line::Claim { claim: RawValue::from_string(claim.to_json()).ok(), api_version });
        }
        self.write(&Line::Ended {
            at: micro_time(at),
            call: "claims",
            problem: result.as_ref().err().map(String::as_str),
        });
    }
}
