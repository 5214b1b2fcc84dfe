//! Runs the command of a call in a separate process, so that a timeout, a cancelled call or a crash ends only that
//! process, and its memory is freed.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::result::CommandOutput;
use super::tools::CommandInvocation;

/// Maximum number of commands that run at the same time; further calls wait.
const MAX_RUNNING_COMMANDS: usize = 2;
/// Maximum number of bytes that are read of stdout and stderr of a command.
const MAX_STDOUT_BYTES: usize = 64 << 20;
const MAX_STDERR_BYTES: usize = 256 << 10;

/// Runs the commands of tools as processes, within a timeout.
pub(super) struct Runner {
    program: CommandProgram,
    timeout: Duration,
    running: Semaphore,
}

enum CommandProgram {
    File(PathBuf),
    /// A function that replaces the program in tests and for a fuzzer, which start no processes.
    #[cfg(any(test, fuzzing))]
    Function(fn(CommandInvocation) -> CommandOutput),
}

impl Runner {
    /// Runs the commands of this program as processes, each for at most `timeout`.
    pub(super) fn new(timeout: Duration) -> std::io::Result<Runner> {
        let program = CommandProgram::File(std::env::current_exe()?);
        Ok(Runner { program, timeout, running: Semaphore::new(MAX_RUNNING_COMMANDS) })
    }

    /// Calls a function instead of starting a process.
    #[cfg(any(test, fuzzing))]
    pub(super) fn with_function(function: fn(CommandInvocation) -> CommandOutput) -> Runner {
        let program = CommandProgram::Function(function);
        Runner { program, timeout: Duration::from_mins(1), running: Semaphore::new(MAX_RUNNING_COMMANDS) }
    }

    /// Runs a command. If the returned future is dropped, the command is killed.
    pub(super) async fn run(&self, invocation: CommandInvocation) -> Result<CommandOutput, String> {
        let _permit = self.running.acquire().await.map_err(|_closed| "the server is stopping".to_owned())?;
        let seconds = self.timeout.as_secs_f32();
        match tokio::time::timeout(self.timeout, self.run_to_end(invocation)).await {
            Ok(output) => output,
            Err(_) => Err(format!(
                "stopped after {seconds} s; ask for less, or start the server with a larger --timeout"
            )),
        }
    }

    async fn run_to_end(&self, invocation: CommandInvocation) -> Result<CommandOutput, String> {
        let cannot = |error: std::io::Error| format!("cannot run the command: {error}");
        #[allow(clippy::infallible_destructuring_match, reason = "the other variant exists only in tests")]
        let program = match &self.program {
            CommandProgram::File(program) => program,
            #[cfg(any(test, fuzzing))]
            CommandProgram::Function(function) => return Ok(function(invocation)),
        };
        let mut command = Command::new(program);
        // A variable that sets a flag of another command has no effect here. Those that this command reads are passed on
        // as flags.
        let names = std::env::vars_os().map(|(name, _)| name);
        names.filter(|name| name.as_encoded_bytes().starts_with(b"TOLLGATE_")).for_each(|name| {
            command.env_remove(name);
        });
        let mut child = command
            .args(&invocation.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input to the end says why.
                _ = stdin.write_all(invocation.stdin.unwrap_or_default().as_bytes()).await;
            }
        };
        let ((), stdout, stderr) = tokio::join!(
            feed,
            read_up_to_limit_and_whether_whole(stdout, MAX_STDOUT_BYTES),
            read_up_to_limit_and_whether_whole(stderr, MAX_STDERR_BYTES)
        );
        let ((stdout, is_whole), (stderr, _)) = (stdout.map_err(cannot)?, stderr.map_err(cannot)?);
        if !is_whole {
            return Err(format!("the output is larger than {} MiB; ask for less", MAX_STDOUT_BYTES >> 20));
        }
        let status = child.wait().await.map_err(cannot)?;
        match status.code() {
            Some(4) | None => Err(format!("internal error ({status}); please report it\n{stderr}")),
            Some(exit_code) => Ok(CommandOutput { exit_code, stdout, stderr }),
        }
    }
}

/// Reads a stream up to `limit` bytes. Returns the bytes, and false if the stream is longer.
async fn read_up_to_limit_and_whether_whole(
    stream: Option<impl AsyncRead + Unpin>,
    limit: usize,
) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    let Some(stream) = stream else { return Ok((String::new(), true)) };
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    stream.take(most).read_to_end(&mut bytes).await?;
    let is_whole = bytes.len() <= limit;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_whole))
}
