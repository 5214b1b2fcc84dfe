//! A session with an editor: the allowed messages in each phase, and their effects.
//!
//! Messages are handled one at a time, in their order. Documents are checked by `worker`; what it finds is published
//! when nothing else waits, and only for the newest state.
//!
//! Invariant: every request is answered once, whatever it says; nothing that arrives ends the session but `exit` and
//! the end of the input.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::actions::CodeActionDocument;
use super::capabilities;
use super::completion;
use super::document::{OpenDocument, parse_position, path_of_uri, replaces_whole_text};
use super::frame::Frame;
use super::hover;
use super::judge::DocumentCheckers;
use super::message::{EditorOutput, ErrorCode, Message, UnhandledMessage};
use super::text::{Encoding, Text};
use super::worker::{CheckJob, CheckQueue, CheckedDocument};
use crate::report::record::{Json, collect_records, record, to_raw_json};
use tollgate_document::doc::Value;

/// The phase of a session, which determines the allowed requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Only `initialize` is allowed.
    Started,
    Running,
    /// Only `exit` is allowed.
    ShutDown,
}

/// The state of a session with an editor: open documents and settings.
pub(super) struct Session<'a, W> {
    pub(super) client: EditorOutput<W>,
    judges: DocumentCheckers<'a>,
    queue: Arc<CheckQueue>,
    pub(super) phase: Phase,
    pub(super) encoding: Encoding,
    /// True if the client can watch files for changes.
    can_watch: bool,
    /// True if the client compares the version of a document before it applies edits.
    checks_version: bool,
    /// The process that started the server, if it was given.
    pub(super) parent: Option<i64>,
    pub(super) documents: BTreeMap<String, OpenDocument>,
    /// URIs of open documents whose text is not known, after a change that could not be applied.
    lost: BTreeSet<String>,
    generation: u64,
}

/// A request that cannot be answered.
pub(super) struct RequestError(pub(super) ErrorCode, pub(super) String);

impl<'a, W: Write> Session<'a, W> {
    pub(super) fn new(output: W, judges: DocumentCheckers<'a>, queue: Arc<CheckQueue>) -> Session<'a, W> {
        Session {
            client: EditorOutput::new(output),
            judges,
            queue,
            phase: Phase::Started,
            encoding: Encoding::Utf16,
            can_watch: false,
            checks_version: false,
            parent: None,
            documents: BTreeMap::new(),
            lost: BTreeSet::new(),
            generation: 0,
        }
    }

    /// Returns the message in a frame. Answers bad input; `None` for that, and for responses, which need no answer.
    pub(super) fn receive(&mut self, frame: Frame) -> io::Result<Option<Message>> {
        let bad = match frame {
            Frame::Bad(reason) => (None, ErrorCode::ParseError, reason),
            Frame::Body(body) => match Message::parse(body) {
                Ok(message) => return Ok(Some(message)),
                Err(UnhandledMessage::Response) => return Ok(None),
                Err(UnhandledMessage::Bad { id, code, message }) => (id, code, message),
            },
        };
        self.client.reply_error(bad.0.as_deref(), bad.1, &bad.2)?;
        Ok(None)
    }

    /// Handles a message. A request whose id is in `cancelled` is answered with an error. Breaks if the client sent
    /// `exit`.
    pub(super) fn handle(
        &mut self,
        message: &Message,
        cancelled: &mut BTreeSet<String>,
    ) -> io::Result<ControlFlow<()>> {
        let Some(id) = &message.id else { return self.handle_notification(message) };
        if cancelled.remove(id) {
            self.client.reply_error(Some(id), ErrorCode::RequestCancelled, "cancelled")?;
            return Ok(ControlFlow::Continue(()));
        }
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer_request(message)));
        let answer = answer.unwrap_or_else(|_| {
            Err(RequestError(ErrorCode::InternalError, "internal error; please report it".to_owned()))
        });
        match answer {
            Ok(result) => self.client.reply(id, result)?,
            Err(RequestError(code, text)) => self.client.reply_error(Some(id), code, &text)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Handles a request and returns its result.
    fn answer_request(&mut self, message: &Message) -> Result<Json, RequestError> {
        let method = message.method.as_str();
        match (self.phase, method) {
            (Phase::Started, "initialize") => {
                self.phase = Phase::Running;
                message.with_params(|params| self.initialize(params));
                capabilities::initialize_result(self.encoding)
                    .map_err(|error| RequestError(ErrorCode::InternalError, error.to_string()))
            }
            (Phase::Started, _) => Err(RequestError(
                ErrorCode::ServerNotInitialized,
                format!("received {method} before initialize"),
            )),
            (Phase::Running, "shutdown") => {
                self.phase = Phase::ShutDown;
                Ok(to_raw_json(&()))
            }
            (Phase::ShutDown, _) => {
                Err(RequestError(ErrorCode::InvalidRequest, format!("received {method} after shutdown")))
            }
            (Phase::Running, "initialize") => {
                Err(RequestError(ErrorCode::InvalidRequest, "initialize was already received".to_owned()))
            }
            (Phase::Running, "textDocument/hover") => {
                let hover = message.with_params(|params| self.call_at_position(params, hover::hover_at))?;
                Ok(to_raw_json(&hover.flatten()))
            }
            (Phase::Running, "textDocument/completion") => {
                let complete = completion::completion_items_at;
                let items = message.with_params(|params| self.call_at_position(params, complete))?;
                Ok(to_raw_json(&items.unwrap_or_default()))
            }
            (Phase::Running, "textDocument/codeAction") => {
                message.with_params(|params| self.code_actions(params)).map(|actions| to_raw_json(&actions))
            }
            (Phase::Running, _) => {
                Err(RequestError(ErrorCode::MethodNotFound, format!("{method} is not supported")))
            }
        }
    }

    /// Calls `call` with the document and byte that the parameters name; `None` if the document is not open.
    fn call_at_position<T>(
        &self,
        params: Value<'_>,
        call: impl FnOnce(&OpenDocument, usize, Encoding) -> T,
    ) -> Result<Option<T>, RequestError> {
        let Some(position) = parse_position(params.get("position")) else {
            return Err(RequestError(ErrorCode::InvalidParams, "the position is missing".to_owned()));
        };
        let document = self.documents.get(params.get("textDocument").get("uri").str());
        let call_at = |document: &OpenDocument| {
            call(document, document.text.offset(position, self.encoding), self.encoding)
        };
        Ok(document.map(call_at))
    }

    fn code_actions(&mut self, params: Value<'_>) -> Result<Vec<Json>, RequestError> {
        let range = params.get("range");
        let (Some(start), Some(end)) = (parse_position(range.get("start")), parse_position(range.get("end")))
        else {
            return Err(RequestError(ErrorCode::InvalidParams, "the range is missing".to_owned()));
        };
        let uri = params.get("textDocument").get("uri").str();
        let Some(document) = self.documents.get_mut(uri) else { return Ok(Vec::new()) };
        let judge = &document.judge;
        // Asked for before the check is done: what is offered must fit the text as it is now.
        let problems =
            document.problems.get_or_insert_with(|| judge.check(&document.file, document.text.as_str()));
        let (start, end) =
            (document.text.offset(start, self.encoding), document.text.offset(end, self.encoding));
        let target = CodeActionDocument {
            uri,
            version: document.version,
            text: &document.text,
            encoding: self.encoding,
            checks_version: self.checks_version,
        };
        let only = params.get("context").get("only");
        let is_wanted = |kind: &str| {
            let covers = |asked: &str| {
                kind.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            only.is_empty() || only.items().any(|asked| covers(asked.str()))
        };
        let fix_all = || judge.text_with_all_safe_fixes(&document.file, document.text.as_str());
        Ok(target.actions(&(start.min(end)..start.max(end)), problems, is_wanted, fix_all))
    }

    fn initialize(&mut self, params: Value<'_>) {
        let capabilities = params.get("capabilities");
        let offered = capabilities.get("general").get("positionEncodings");
        let wanted = offered.items().find_map(|name| Encoding::parse(name.str()));
        self.encoding = wanted.unwrap_or(Encoding::Utf16);
        let watching = capabilities.get("workspace").get("didChangeWatchedFiles");
        self.can_watch = watching.get("dynamicRegistration").bool() == Some(true);
        let edits = capabilities.get("workspace").get("workspaceEdit");
        self.checks_version = edits.get("documentChanges").bool() == Some(true);
        // One that is not to be seen lives elsewhere, as outside of a container.
        self.parent = params.get("processId").int().filter(|id| super::process_may_exist(*id));
    }

    fn handle_notification(&mut self, message: &Message) -> io::Result<ControlFlow<()>> {
        match (self.phase, message.method.as_str()) {
            (_, "exit") => return Ok(ControlFlow::Break(())),
            (Phase::Running, "initialized") => {
                if self.can_watch {
                    self.client.request_ignoring_response(
                        "client/registerCapability",
                        capabilities::watch_registration()?,
                    )?;
                }
                // Files that did not load at the start are mentioned now: before, nothing may be sent.
                self.reload_and_recheck()?;
            }
            (Phase::Running, "textDocument/didOpen") => {
                message.with_params(|params| self.open_document(params))?
            }
            (Phase::Running, "textDocument/didChange") => {
                message.with_params(|params| self.change_document(params))?
            }
            (Phase::Running, "textDocument/didClose") => {
                let uri =
                    message.with_params(|params| params.get("textDocument").get("uri").str().to_owned());
                self.lost.remove(&uri);
                if self.documents.remove(&uri).is_some() {
                    self.publish_diagnostics(&uri, None, &[])?;
                }
            }
            (
                Phase::Running,
                "textDocument/didSave"
                | "workspace/didChangeConfiguration"
                | "workspace/didChangeWatchedFiles",
            ) => self.reload_and_recheck()?,
            // Others, and everything that comes too early or too late, are ignored, as the protocol asks.
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn open_document(&mut self, params: Value<'_>) -> io::Result<()> {
        let document = params.get("textDocument");
        let uri = document.get("uri").str();
        self.insert_document(uri, document.get("version").int(), document.get("text").str())?;
        self.queue_check(uri);
        Ok(())
    }

    /// Adds an open document, and shows why its configuration does not load, if so.
    fn insert_document(&mut self, uri: &str, version: Option<i64>, text: &str) -> io::Result<()> {
        let path = path_of_uri(uri);
        let (judge, failure) = self.judges.checker_for(path.as_deref(), None);
        let file = path.map_or_else(|| uri.to_owned(), |path| path.display().to_string());
        let text = Text::new(text.to_owned());
        let opened = OpenDocument { version, generation: 0, file, text, judge, problems: None };
        self.lost.remove(uri);
        self.documents.insert(uri.to_owned(), opened);
        failure.map_or(Ok(()), |failure| self.show_config_failure(&failure))
    }

    fn change_document(&mut self, params: Value<'_>) -> io::Result<()> {
        let document = params.get("textDocument");
        let uri = document.get("uri").str();
        let (encoding, changes) = (self.encoding, params.get("contentChanges"));
        // A range of a text that is not known means nothing; a whole text makes it known again.
        if self.lost.contains(uri) && replaces_whole_text(changes) {
            self.insert_document(uri, None, "")?;
        }
        let Some(open) = self.documents.get_mut(uri) else { return Ok(()) };
        if open.apply_changes(changes, encoding) {
            open.version = document.get("version").int();
            self.queue_check(uri);
            return Ok(());
        }
        // The text is no longer known: it is not checked until the client sends it whole.
        self.documents.remove(uri);
        self.lost.insert(uri.to_owned());
        self.publish_diagnostics(uri, None, &[])?;
        self.show_error(&format!("tollgate: cannot apply a change to {uri}; reopen the file"))
    }

    /// Queues the current state of a document to be checked.
    fn queue_check(&mut self, uri: &str) {
        self.generation += 1;
        let Some(document) = self.documents.get_mut(uri) else { return };
        document.generation = self.generation;
        document.problems = None;
        self.queue.push_or_replace_same_document(CheckJob {
            uri: uri.to_owned(),
            generation: self.generation,
            file: document.file.clone(),
            text: document.text.as_str().into(),
            judge: Arc::clone(&document.judge),
        });
    }

    /// Loads configurations and policies again, and checks all documents. Keeps the old ones if the new ones do not
    /// load.
    fn reload_and_recheck(&mut self) -> io::Result<()> {
        self.judges.loaded.clear();
        let mut failures = BTreeSet::new();
        // That of the working folder, too: a mistake in a flag shows before a document is opened.
        failures.extend(self.judges.checker_for(None, None).1);
        let open: Vec<String> = self.documents.keys().cloned().collect();
        for uri in &open {
            if let Some(document) = self.documents.get_mut(uri) {
                let (judge, failure) =
                    self.judges.checker_for(path_of_uri(uri).as_deref(), Some(&document.judge));
                document.judge = judge;
                failures.extend(failure);
            }
            self.queue_check(uri);
        }
        failures.iter().try_for_each(|failure| self.show_config_failure(failure))
    }

    fn show_config_failure(&mut self, failure: &str) -> io::Result<()> {
        self.show_error(&format!("tollgate: {failure}\nThe last valid configuration stays in use."))
    }

    /// Publishes the problems that a check found, unless the document has changed since.
    pub(super) fn publish_checked_unless_outdated(&mut self, checked: CheckedDocument) -> io::Result<()> {
        let CheckedDocument { uri, generation, problems } = checked;
        let encoding = self.encoding;
        let Some(document) = self.documents.get_mut(&uri) else { return Ok(()) };
        if document.generation != generation {
            return Ok(());
        }
        let problems = document.problems.insert(problems.unwrap_or_default());
        let diagnostics =
            problems.iter().map(|problem| problem.to_diagnostic(&uri, &document.text, encoding));
        let (diagnostics, version) = (collect_records(diagnostics), document.version);
        self.publish_diagnostics(&uri, version, &diagnostics)
    }

    fn publish_diagnostics(
        &mut self,
        uri: &str,
        version: Option<i64>,
        diagnostics: &[Json],
    ) -> io::Result<()> {
        let has_version = version.is_some();
        let params = record! { "uri": uri, "version" if has_version: version, "diagnostics": diagnostics };
        self.client.notify("textDocument/publishDiagnostics", params)
    }

    /// Shows an error to the user.
    fn show_error(&mut self, message: &str) -> io::Result<()> {
        self.client.notify("window/showMessage", record! { "type": 1, "message": message })
    }
}
