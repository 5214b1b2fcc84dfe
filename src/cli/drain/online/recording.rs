//! A drain as a file: every request with its answer, every change that the watches showed, and the times.
//!
//! `--record FILE` writes it, for whoever wants to know afterwards what a drain did and saw. The tests replay
//! recordings of real clusters with it. One JSON object per line; a line with `at` ends what belongs to one call of a
//! [`Server`].
//!
//! [`Server`]: super::server::Server

use std::io::Write;

use serde_json::value::RawValue;

use super::server::{ObjectKey, ObjectStore, ServerResponse};
use super::time::micro_time;
use crate::cli::state::OwnedObject;
use crate::cluster::{ApiError, DrainApiRequest};
use crate::report::record::{Json, record};
use tollgate_formats::gotime::Timestamp;

/// Writes the recording of a drain (`--record`): each request with its answer, and each change that the watches
/// show.
pub(super) struct Recorder {
    out: Box<dyn Write + Send>,
}

impl Recorder {
    /// A recorder that writes to `out`.
    pub(super) fn new(out: Box<dyn Write + Send>) -> Recorder {
        Recorder { out }
    }

    /// Writes a line. An error is ignored, because a recording that cannot be written must not end a drain.
    fn write_json_line(&mut self, line: &Json) {
        _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }

    /// Records that an object has changed, or was deleted if `object` is `None`.
    pub(super) fn record_change(&mut self, key: &ObjectKey, object: Option<&OwnedObject>) {
        let (kind, namespace, name) = key;
        self.write_json_line(&record! {
            "kind": kind.name(),
            "apiVersion": object.map_or("", |stored| &*stored.api_version),
            "namespace": namespace,
            "name": name,
            "object": object.and_then(|stored| RawValue::from_string(stored.object.root().to_json()).ok()),
        });
    }

    /// Records the end of a call of the server that sends no write request: `connect`, `refresh`, `claims` or
    /// `pause`.
    pub(super) fn record_call<T>(&mut self, at: Timestamp, call: &str, result: &Result<T, String>) {
        let problem = result.as_ref().err();
        self.write_json_line(&record! { "at": micro_time(at), "call": call, "problem" if given: problem });
    }

    /// Records a request with its answer.
    pub(super) fn record_request(
        &mut self,
        at: Timestamp,
        request: &DrainApiRequest,
        answer: &Result<ServerResponse, ApiError>,
    ) {
        let (method, path) = request.method_and_path();
        let (code, text) = match answer {
            Ok(answer) => (Some(answer.code), answer.body.clone()),
            Err(error) => (None, error.to_string()),
        };
        self.write_json_line(&record! {
            "at": micro_time(at),
            "send": format!("{method} {path}"),
            "body" if given: request.body(),
            "code" if given: code,
            "answer": text,
        });
    }

    /// Records the result of listing the claims.
    pub(super) fn record_claims(&mut self, at: Timestamp, result: &Result<ObjectStore, String>) {
        for (api_version, claim) in result.iter().flat_map(ObjectStore::claims) {
            let claim = RawValue::from_string(claim.to_json()).ok();
            self.write_json_line(&record! { "claim": claim, "apiVersion": api_version });
        }
        self.record_call(at, "claims", result);
    }
}
