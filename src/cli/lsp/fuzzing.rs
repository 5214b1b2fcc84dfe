//! A session whose messages come from a fuzzer. It uses one thread, so that the same input always has the same result.
#![allow(clippy::expect_used, clippy::panic, reason = "a fuzz target fails by a panic")]

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use clap::{Args as _, FromArgMatches as _};

use super::Arguments;
use super::frame::{Frame, FrameReader};
use super::judge::DocumentCheckers;
use super::session::Session;
use super::worker::CheckQueue;

/// The flags of the command. The command line is parsed once: it takes longer than most sessions.
static LSP_ARGUMENTS: LazyLock<Arguments> = LazyLock::new(|| {
    let command = Arguments::augment_args(clap::Command::new("lsp"));
    let matches = command.try_get_matches_from(["lsp", "--no-config"]).expect("valid flags");
    Arguments::from_arg_matches(&matches).expect("valid flags")
});

/// Plays the messages of an editor: every message is handled without an internal error, and what is sent back can be
/// read by an editor.
pub(in crate::cli) fn fuzz_session(data: &[u8]) {
    let judges = DocumentCheckers::new(&LSP_ARGUMENTS).unwrap_or_else(|_| panic!("the default rules"));
    let queue = Arc::new(CheckQueue::default());
    let mut output = Vec::new();
    let mut session = Session::new(&mut output, judges, Arc::clone(&queue));
    let mut frames = FrameReader::new(data);
    let mut cancelled = BTreeSet::new();
    while let Ok(Some(frame)) = frames.next() {
        if let Some(message) = session.receive(frame).expect("memory")
            && session.handle(&message, &mut cancelled).expect("memory").is_break()
        {
            break;
        }
        while let Some(checked) = queue.check_oldest_job() {
            assert!(checked.problems.is_some(), "checking panicked");
            session.publish_checked_unless_outdated(checked).expect("memory");
        }
    }
    drop(session);
    let mut sent = FrameReader::new(output.as_slice());
    while let Some(frame) = sent.next().expect("memory") {
        let Frame::Body(body) = frame else { panic!("a frame that cannot be read") };
        let text = String::from_utf8(body).expect("UTF-8");
        let message = tollgate_document::doc::parse(&text).expect("JSON");
        let code = message.root().get("error").get("code");
        assert_ne!(code.int(), Some(-32603), "an internal error: {text}");
    }
}
