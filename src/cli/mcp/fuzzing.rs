//! A session whose messages come from a fuzzer. No command runs: a function stands in for the program, which checks the
//! command line and returns what it got on stdin.
#![allow(clippy::expect_used, clippy::panic, reason = "a fuzz target fails by a panic")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, LazyLock, Mutex};

use clap::CommandFactory as _;
use rmcp::service::serve_directly;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use super::McpServer;
use super::result::CommandOutput;
use super::run::Runner;
use super::stdio::{MAX_QUEUED_MESSAGES, StdioTransport, id_of_message, read_line};
use super::tools::{ALL_TOOLS, CommandInvocation, InheritedFlag, PassedFlags};
use tollgate_document::doc;

/// A server with every tool. The files do not exist, and nothing opens them.
static SERVER: LazyLock<Arc<McpServer>> = LazyLock::new(|| {
    let server = McpServer::new(settings(), Runner::with_function(run_stub_command))
        .unwrap_or_else(|_| panic!("valid tools"));
    assert_eq!(server.tools.len(), ALL_TOOLS.len(), "some tools are not offered");
    Arc::new(server)
});

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// The command line of the program. It is large, so it is made once.
static PROGRAM: LazyLock<Mutex<clap::Command>> =
    LazyLock::new(|| Mutex::new(super::super::Arguments::command()));

fn settings() -> PassedFlags {
    let flag = |setting, text: &str| (setting, OsString::from(text));
    PassedFlags(vec![
        flag(InheritedFlag::State, "--state=state.yaml"),
        flag(InheritedFlag::Policies, "--policy=policies"),
        flag(InheritedFlag::Namespaces, "--namespaces=namespaces.yaml"),
    ])
}

/// Stands in for a command: its command line is one that a tool allows, and the program reads it as that command.
fn run_stub_command(invocation: CommandInvocation) -> CommandOutput {
    let settings = settings();
    let shown = &invocation.arguments;
    assert!(
        ALL_TOOLS.iter().any(|tool| tool.allows_command_line(&invocation, &settings)),
        "not the command of a tool: {shown:?}"
    );
    let arguments = std::iter::once(OsString::from("tollgate")).chain(invocation.arguments.iter().cloned());
    let parsed = PROGRAM.lock().expect("one thread").try_get_matches_from_mut(arguments);
    let exit_code = match &parsed {
        Ok(matches) => {
            let command = matches.subcommand_name().unwrap_or_default();
            let is_asked = |argument: &OsString| argument == command;
            assert!(invocation.arguments.iter().take(2).any(is_asked), "runs {command}: {shown:?}");
            0
        }
        Err(error) => error.exit_code(),
    };
    let stderr = parsed.err().map(|error| error.to_string()).unwrap_or_default();
    CommandOutput { exit_code, stdout: invocation.stdin.unwrap_or_default(), stderr }
}

/// Plays the messages of a client: only JSON is written, every request that is not cancelled gets one response with its
/// ID, and none is an internal error.
pub(in crate::cli) fn fuzz_messages(data: &[u8]) {
    let (sender, lines) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let (out, mut written) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let transport = StdioTransport::new(lines, out);
    let requests = transport.requests.clone();
    let session = async { serve_directly(Arc::clone(&SERVER), transport, None).waiting().await };
    let client = async {
        let mut input = data;
        while let Ok(Some(line)) = read_line(&mut input) {
            sender.send(line).await.expect("the server reads to the end");
        }
        // The input ends after the last answer: a server whose input has ended waits for its commands by the clock.
        let mut turns = 0;
        while sender.capacity() < MAX_QUEUED_MESSAGES || !requests.is_empty() {
            turns += 1;
            assert!(turns < 100_000, "a request is not answered");
            tokio::task::yield_now().await;
        }
        drop(sender);
    };
    let answers = async {
        let mut answers = Vec::new();
        while let Some(answer) = written.recv().await {
            answers.push(answer);
        }
        answers
    };
    let (ended, (), answers) = RUNTIME.block_on(async { tokio::join!(session, client, answers) });
    ended.expect("the session ends without a panic");
    let mut sent: BTreeMap<String, usize> = BTreeMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        if let Some(id) = id_of_message(line) {
            *sent.entry(id.get().to_owned()).or_default() += 1;
        }
    }
    for answer in answers {
        let message = doc::parse(&answer).expect("JSON");
        assert_eq!(message.root().get("jsonrpc").text(), "2.0", "{answer}");
        let code = message.root().get("error").get("code");
        assert_ne!(code.int(), Some(-32603), "an internal error: {answer}");
        if let Some(id) = id_of_message(answer.as_bytes()) {
            let left = sent.get_mut(id.get()).unwrap_or_else(|| panic!("nobody asked: {answer}"));
            *left = left.checked_sub(1).unwrap_or_else(|| panic!("answered twice: {answer}"));
        }
    }
}
