//! The pages of `tollgate ui`: passes the state on to the `LivePageStore` that renders them, and answers their
//! questions in a thread.
//!
//! Of a device, they show the devices that share its counters: its partitions, and the devices that it is a partition
//! of.
//!
//! Invariant: one question is answered at a time, in the order of the pages. A page's newer question takes the place of
//! its earlier one, whether that waits or is being answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use super::KnownState;
use super::page_report::devices_report;
use super::question::{CommandParts, WhatIfQuestion};
use crate::cli::clock;
use crate::cli::forecast::{StopFn, run_until_stopped};
use crate::cli::outcome::Failure;
use tollgate_engine::impact::target::{DeviceNameSelector, with_partitions};
use tollgate_engine::impact::{DetailsToStore, Snapshot};
use tollgate_forecast::{ClassMatchCache, ObjectKind};
use tollgate_ui::{
    Answer, Bytes, DeviceName, DevicesSharingCounters, LivePageStore, Query, Site, WhatIfAnswer, oneshot,
    watch,
};

/// Maximum number of questions that wait. More are refused.
const MAX_WAITING_QUESTIONS: usize = 16;

/// Maximum time to compute an answer.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(100);

/// The pages of `tollgate ui`: the state and the questions, which the server of the pages shares with the thread that
/// answers questions.
pub(super) struct UiPages {
    board: Arc<LivePageStore>,
    memory: Mutex<ClassMatchCache>,
    state: RwLock<Arc<KnownState>>,
    questions: Mutex<Questions>,
    asked: Condvar,
    commands: CommandParts,
}

/// The questions that wait, oldest first, and the one that is being answered.
#[derive(Default)]
struct Questions {
    waiting: VecDeque<WaitingQuestion>,
    /// The page of the question that is being answered, and a flag that a newer question of this page sets.
    current: Option<(String, Arc<AtomicBool>)>,
}

struct WaitingQuestion {
    page: String,
    /// The question, or why it cannot be read.
    question: Result<WhatIfQuestion, Failure>,
    answer: oneshot::Sender<Answer>,
}

impl UiPages {
    /// Publishes the first state, and starts the thread that answers questions.
    pub(super) fn start(
        board: Arc<LivePageStore>,
        first: KnownState,
        commands: CommandParts,
    ) -> Result<Arc<UiPages>, Failure> {
        let pages = Arc::new(UiPages {
            board,
            memory: Mutex::default(),
            state: RwLock::new(Arc::new(first)),
            questions: Mutex::default(),
            asked: Condvar::new(),
            commands,
        });
        pages.publish_state(&pages.state());
        let of_thread = pages.clone();
        let answer = move || loop {
            of_thread.answer_next();
            of_thread.questions.lock().unwrap_or_else(PoisonError::into_inner).current = None;
        };
        thread::Builder::new().name("answers".to_owned()).spawn(answer).map_err(anyhow::Error::from)?;
        Ok(pages)
    }

    /// Publishes a new state on the pages.
    pub(super) fn set_state(&self, state: KnownState) {
        self.publish_state(&state);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    fn publish_state(&self, state: &KnownState) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        self.board.publish(devices_report(state, &mut memory), &state.taken, state.trouble.clone());
    }

    fn state(&self) -> Arc<KnownState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Turns the picked devices of a question into targets. Ignores devices that no longer exist.
    fn resolve_devices(&self, mut question: WhatIfQuestion) -> Result<WhatIfQuestion, Failure> {
        let devices = std::mem::take(&mut question.devices);
        let known = devices.iter().filter_map(|id| self.board.device_of_cell(id));
        question.targets.extend(known.map(|device| device.driver_pool_device()));
        if !devices.is_empty() && question.targets.is_empty() {
            return Err(Failure::Input("the picked devices are gone".to_owned()));
        }
        Ok(question)
    }

    /// Waits for a question and answers it.
    fn answer_next(&self) {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        let questions = self.asked.wait_while(questions, |questions| questions.waiting.is_empty());
        let mut questions = questions.unwrap_or_else(PoisonError::into_inner);
        let Some(WaitingQuestion { page, question, answer }) = questions.waiting.pop_front() else { return };
        // The request has timed out: nobody waits for the answer.
        if answer.is_closed() {
            return;
        }
        let is_superseded = Arc::new(AtomicBool::new(false));
        questions.current = Some((page, is_superseded.clone()));
        drop(questions);
        let (start, asked) = (clock::monotonic(), is_superseded.clone());
        let stop: StopFn =
            Arc::new(move || start.elapsed() > MAX_ANSWER_TIME || asked.load(Ordering::Acquire));
        let state = self.state();
        let failed = |why: &str| WhatIfAnswer { errors: vec![why.to_owned()], ..WhatIfAnswer::default() };
        let work = || match question.and_then(|question| self.resolve_devices(question)) {
            Ok(question) => question.answer(&state, &self.commands),
            Err(failure) => failed(&failure.message()),
        };
        // A bug in one answer must not be the end of all others. The hook has reported it.
        let answered =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_until_stopped(stop, work)));
        let found = match answered {
            Ok(Some(found)) => found,
            Ok(None) if start.elapsed() > MAX_ANSWER_TIME => {
                failed("the answer takes too long; use the command line, or ask about fewer devices")
            }
            // The sender is dropped, which says that a newer question took its place.
            Ok(None) => return,
            Err(_) => failed("internal error; please report it and attach the state and the rule"),
        };
        if !is_superseded.load(Ordering::Acquire) {
            // The page may be gone.
            _ = answer.send(found.to_json_answer());
        }
    }
}

impl Site for UiPages {
    fn get(&self, path: &str, query: &Query) -> Option<Answer> {
        if path != "/device" {
            return self.board.get(path);
        }
        let id = query.get("id")?;
        let related = devices_sharing_counters(&self.state(), &self.board.device_of_cell(id)?);
        self.board.device_details(id, &related)
    }

    fn revision(&self) -> watch::Receiver<u64> {
        self.board.revision()
    }

    fn changes_since(&self, revision: u64) -> Answer {
        self.board.changes_since(revision)
    }

    fn ask_replacing_earlier_question(&self, json: Bytes) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let question = WhatIfQuestion::parse(&json);
        let page = question.as_ref().map_or_else(|_| String::new(), |question| question.page.clone());
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, is_superseded)) = questions.current.as_ref().filter(|(asking, _)| *asking == page) {
            is_superseded.store(true, Ordering::Release);
        }
        questions.waiting.retain(|waiting| waiting.page != page);
        // Without its sender, a question is refused, and its page asks again later.
        if questions.waiting.len() < MAX_WAITING_QUESTIONS {
            questions.waiting.push_back(WaitingQuestion { page, question, answer });
            self.asked.notify_one();
        }
        receiver
    }
}

/// In pools with more devices, the devices that a device is a partition of are not determined, because that takes
/// too long.
const MAX_POOL_DEVICES: usize = 2_000;

/// Returns the devices that share counters with a device: its partitions, and the devices that it is a partition
/// of.
fn devices_sharing_counters(known: &KnownState, wanted: &DeviceName) -> DevicesSharingCounters {
    let mut snapshot = Snapshot::with_details(DetailsToStore { attributes: false, counters: true });
    let mut others = Vec::new();
    let state = known.objects.state();
    for slice in state.objects_of_kind(ObjectKind::ResourceSlice).iter() {
        let spec = slice.value.get("spec");
        let is_same_pool =
            spec.get("driver").str() == wanted.driver && spec.get("pool").get("name").str() == wanted.pool;
        let api_version = format!("resource.k8s.io/{}", slice.version.name());
        let kind = ObjectKind::ResourceSlice.name();
        if !is_same_pool || snapshot.apply_as_type(&api_version, kind, slice.value).is_err() {
            continue;
        }
        let names = spec.get("devices").items().map(|device| device.get("name").str());
        others.extend(names.filter(|name| *name != wanted.device).map(ToOwned::to_owned));
    }
    let partitions_of = |device: &str| -> Vec<String> {
        let names = DeviceNameSelector {
            driver: Some(wanted.driver.clone()),
            pool: Some(wanted.pool.clone()),
            device: Some(device.to_owned()),
        };
        let found = with_partitions(vec![names], &snapshot).into_iter().skip(1);
        found.filter_map(|names| names.device).collect()
    };
    let wholes = if others.len() > MAX_POOL_DEVICES {
        Vec::new()
    } else {
        others.into_iter().filter(|other| partitions_of(other).contains(&wanted.device)).collect()
    };
    DevicesSharingCounters { partitions: partitions_of(&wanted.device), wholes }
}
