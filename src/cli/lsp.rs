//! `tollgate lsp`: a language server on stdin and stdout, for editors.
//!
//! Implements only the protocol: documents are checked by `check`, as in every other command. One thread reads
//! messages, one checks documents, and this one handles messages.
//!
//! Invariant: only protocol messages go to stdout, an unreadable message does not affect later ones, and memory is
//! limited.

mod actions;
mod capabilities;
mod completion;
mod cursor;
mod document;
mod frame;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod hover;
mod judge;
mod meanings;
mod message;
mod problems;
mod session;
mod text;
mod vocabulary;
mod worker;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::config::ConfigArgs;
use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use super::shared::EngineArgs;
use frame::{Frame, FrameReader};
use judge::DocumentCheckers;
use message::Message;
use session::{Phase, Session};
use worker::{CheckQueue, CheckedDocument};

/// Maximum number of events between the reading or checking thread and the one that handles them.
const MAX_QUEUED_EVENTS: usize = 4;
/// Maximum number of messages that wait to be handled; more are not read from the editor.
const MAX_WAITING_MESSAGES: usize = 64;
const MAX_WAITING_BYTES: usize = 32 << 20;
/// Interval for checking whether the editor is still running, in case it leaves stdin open.
const PARENT_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Run the language server for editors
///
/// Implements the Language Server Protocol on stdin and stdout. Editors start this command.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// YAML or JSON file with Namespace objects
    ///
    /// Namespaces that are not in the file are treated as having no labels other than kubernetes.io/metadata.name.
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    engine: EngineArgs,

    /// Accepted for editors that pass it; stdio is the only transport
    #[arg(long, hide = true)]
    stdio: bool,
}

/// A message of the editor, a finished check, or the end of the input.
enum Event {
    Arrived(Frame),
    /// The input ended, or cannot be read.
    Ended(InputEndError),
    Checked(CheckedDocument),
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        // Files that do not load are shown in the editor, once it listens.
        let judges = DocumentCheckers::new(self)?;
        let queue = Arc::new(CheckQueue::default());
        let (sender, events) = sync_channel(MAX_QUEUED_EVENTS);
        start_reader(sender.clone());
        let checks = Arc::clone(&queue);
        std::thread::spawn(move || {
            checks.run_check_loop(|checked| sender.send(Event::Checked(checked)).is_ok())
        });
        let mut session = Session::new(&mut *console, judges, queue);
        let ended = run_session(&mut session, &events)?;
        let is_clean = session.phase == Phase::ShutDown;
        match ended {
            Some(error) => Err(Failure::Input(format!("cannot read messages from the client: {error}"))),
            None if is_clean => Ok(ExitCounts::default()),
            None => Err(Failure::Session("the client disconnected without `shutdown`".to_owned())),
        }
    }
}

/// Starts a thread that sends each message from stdin as an event, until the input ends. It lives as long as the
/// process, because a read cannot be interrupted.
fn start_reader(sender: SyncSender<Event>) {
    std::thread::spawn(move || {
        let mut reader = FrameReader::new(io::stdin().lock());
        loop {
            let event = match reader.next() {
                Ok(Some(frame)) => Event::Arrived(frame),
                Ok(None) => Event::Ended(None),
                Err(error) => Event::Ended(Some(error)),
            };
            let is_end = matches!(event, Event::Ended(_));
            if sender.send(event).is_err() || is_end {
                return;
            }
        }
    });
}

/// Handles events until the session ends. Returns the error with which the input ended, if it did.
fn run_session(
    session: &mut Session<'_, &mut Console>,
    events: &Receiver<Event>,
) -> Result<InputEndError, Failure> {
    let mut inbox = PendingEvents::default();
    loop {
        if inbox.is_empty() {
            match events.recv_timeout(PARENT_CHECK_INTERVAL) {
                Ok(event) => inbox.queue_event_or_answer_bad_input(event, session)?,
                Err(RecvTimeoutError::Timeout) if session.parent.is_some_and(|id| !process_may_exist(id)) => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
        // All that is there: a request may be cancelled by then, and a text changed again.
        while inbox.has_room()
            && let Ok(event) = events.try_recv()
        {
            inbox.queue_event_or_answer_bad_input(event, session)?;
        }
        if let Some(message) = inbox.messages.pop_front() {
            if session.handle(&message, &mut inbox.cancelled)?.is_break() {
                return Ok(None);
            }
        } else if let Some(checked) = inbox.checked.pop_front() {
            session.publish_checked_unless_outdated(checked)?;
        } else if let Some(ended) = inbox.ended.take() {
            return Ok(ended);
        }
        if session.client.output.is_stdout_closed() {
            return Ok(None);
        }
    }
}

/// How the input of the language server ended: with an error, or normally (`None`).
type InputEndError = Option<io::Error>;

/// Events that were received and not handled yet: messages of the editor, and finished checks.
#[derive(Default)]
struct PendingEvents {
    messages: VecDeque<Message>,
    checked: VecDeque<CheckedDocument>,
    /// Ids of waiting requests that were cancelled.
    cancelled: BTreeSet<String>,
    ended: Option<InputEndError>,
}

impl PendingEvents {
    /// True if nothing waits to be handled.
    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.checked.is_empty() && self.ended.is_none()
    }

    /// True if more messages may be taken from the reading thread.
    fn has_room(&self) -> bool {
        let bytes: usize = self.messages.iter().map(Message::len).sum();
        self.messages.len() < MAX_WAITING_MESSAGES && bytes < MAX_WAITING_BYTES
    }

    /// Adds an event to the queue. Bad input is answered immediately, and a cancelled request is marked.
    fn queue_event_or_answer_bad_input(
        &mut self,
        event: Event,
        session: &mut Session<'_, &mut Console>,
    ) -> io::Result<()> {
        match event {
            Event::Ended(error) => self.ended = Some(error),
            Event::Checked(checked) => self.checked.push_back(checked),
            Event::Arrived(frame) => match session.receive(frame)? {
                Some(message) if message.method == "$/cancelRequest" => {
                    let id = message.with_params(|params| params.get("id").to_json());
                    if self.messages.iter().any(|waiting| waiting.id.as_ref() == Some(&id)) {
                        self.cancelled.insert(id);
                    }
                }
                message => self.messages.extend(message),
            },
        }
        Ok(())
    }
}

/// True if the process with this id exists; always true on systems without `/proc`, where only the end of stdin
/// ends the session.
fn process_may_exist(id: i64) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(id.to_string()).exists()
}
