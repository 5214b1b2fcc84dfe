//! The pages of `tollgate ui`: passes the state on to the `LivePageStore` that renders them, and answers their
//! questions in a thread.
//!
//! Invariant: one question is answered at a time. A newer one takes the place of one that waits, and ends one that is
//! being answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use super::known::KnownState;
use super::question::{CommandParts, WhatIfQuestion};
use super::related::devices_sharing_counters;
use crate::cli::clock;
use crate::cli::forecast::{StopFn, run_until_stopped};
use crate::cli::outcome::Failure;
use tollgate_forecast::ClassMatchCache;
use tollgate_ui::{Answer, Bytes, LivePageStore, Query, Site, WhatIfAnswer, oneshot, watch};

/// Maximum time to compute an answer.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(100);

/// The pages of `tollgate ui`, and the thread that answers their questions.
pub(super) struct UiPages {
    shared: Arc<SharedUiData>,
    memory: Mutex<ClassMatchCache>,
}

/// The state and the waiting question, shared by the server of the pages and the thread that answers questions.
struct SharedUiData {
    board: Arc<LivePageStore>,
    state: RwLock<Arc<KnownState>>,
    waiting: Mutex<Option<WaitingQuestion>>,
    asked: Condvar,
    /// The number of the newest question.
    newest: AtomicU64,
    commands: CommandParts,
}

struct WaitingQuestion {
    number: u64,
    json: Bytes,
    answer: oneshot::Sender<Answer>,
}

impl UiPages {
    /// Publishes the first state, and starts the thread that answers questions.
    pub(super) fn start(
        board: Arc<LivePageStore>,
        first: KnownState,
        commands: CommandParts,
    ) -> Result<UiPages, Failure> {
        let mut memory = ClassMatchCache::default();
        publish_state(&board, &first, &mut memory);
        let shared = Arc::new(SharedUiData {
            board,
            state: RwLock::new(Arc::new(first)),
            waiting: Mutex::default(),
            asked: Condvar::new(),
            newest: AtomicU64::new(0),
            commands,
        });
        let of_thread = shared.clone();
        let answer = move || loop {
            of_thread.answer_next();
        };
        thread::Builder::new().name("answers".to_owned()).spawn(answer).map_err(anyhow::Error::from)?;
        Ok(UiPages { shared, memory: Mutex::new(memory) })
    }

    /// Publishes a new state on the pages.
    pub(super) fn set_state(&self, state: KnownState) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        publish_state(&self.shared.board, &state, &mut memory);
        *self.shared.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }
}

fn publish_state(board: &LivePageStore, state: &KnownState, memory: &mut ClassMatchCache) {
    board.publish(state.devices_report(memory), &state.taken, state.trouble.clone());
}

impl SharedUiData {
    fn state(&self) -> Arc<KnownState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Parses a question, and turns picked devices into targets. Ignores devices that no longer exist.
    fn parse_question_and_resolve_devices(&self, json: &[u8]) -> Result<WhatIfQuestion, Failure> {
        let mut question = WhatIfQuestion::parse(json)?;
        let devices = std::mem::take(&mut question.devices);
        let known = devices.iter().filter_map(|id| self.board.device_of_cell(id));
        question.targets.extend(known.map(|device| device.driver_pool_device()));
        if !devices.is_empty() && question.targets.is_empty() {
            return Err(Failure::Input("the picked devices are gone".to_owned()));
        }
        Ok(question)
    }

    /// Waits for a question and answers it.
    fn answer_next(self: &Arc<Self>) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = self.asked.wait_while(waiting, |waiting| waiting.is_none());
        let question = waiting.unwrap_or_else(PoisonError::into_inner).take();
        let Some(WaitingQuestion { number, json, answer }) = question else { return };
        let (start, shared) = (clock::monotonic(), self.clone());
        let stop: StopFn = Arc::new(move || {
            start.elapsed() > MAX_ANSWER_TIME || shared.newest.load(Ordering::Acquire) != number
        });
        let (state, is_stopped) = (self.state(), stop.clone());
        let work = || match self.parse_question_and_resolve_devices(&json) {
            Ok(question) => question.answer(&state, &self.commands),
            Err(failure) => WhatIfAnswer { errors: vec![failure.message()], ..WhatIfAnswer::default() },
        };
        // A bug in one answer must not be the end of all others. The hook has reported it.
        let answered =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_until_stopped(stop, work)));
        let failed = |why: &str| WhatIfAnswer { errors: vec![why.to_owned()], ..WhatIfAnswer::default() };
        let found = match answered {
            Ok(Some(found)) => found,
            Ok(None) if start.elapsed() > MAX_ANSWER_TIME => {
                failed("the answer takes too long; use the command line, or ask about fewer devices")
            }
            // The sender is dropped, which says that a newer question took its place.
            Ok(None) => return,
            Err(_) => failed("internal error; please report it and attach the state and the rule"),
        };
        if !is_stopped() || !found.errors.is_empty() {
            // The page may be gone.
            _ = answer.send(found.to_json_answer());
        }
    }
}

impl Site for UiPages {
    fn get(&self, path: &str, query: &Query) -> Option<Answer> {
        if path != "/device" {
            return self.shared.board.get(path);
        }
        let id = query.get("id")?;
        let related = devices_sharing_counters(&self.shared.state(), &self.shared.board.device_of_cell(id)?);
        self.shared.board.device_details(id, &related)
    }

    fn revision(&self) -> watch::Receiver<u64> {
        self.shared.board.revision()
    }

    fn changes_since(&self, revision: u64) -> Answer {
        self.shared.board.changes_since(revision)
    }

    fn ask_replacing_earlier_question(&self, json: Bytes) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let number = self.shared.newest.fetch_add(1, Ordering::AcqRel) + 1;
        let question = WaitingQuestion { number, json, answer };
        *self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
        self.shared.asked.notify_one();
        receiver
    }
}
