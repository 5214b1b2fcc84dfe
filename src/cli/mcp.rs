//! `tollgate mcp`: a read-only server of the Model Context Protocol on stdin and stdout, for programs that ask before
//! they act.
//!
//! The SDK implements the protocol; the streams (`stdio`) and the limits are implemented here. Each call runs a command
//! of this program in a separate process (`run`), so an answer is the command's own JSON (`result`). The files and the
//! cluster to read are fixed when the server starts.
//!
//! Invariant: no call and no flag changes anything, a call cannot name files or clusters, and no message, call or
//! command ends the server.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod result;
mod run;
mod stdio;
mod tools;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, serve_directly};
use rmcp::{RoleServer, ServerHandler};

use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use super::shared::{ContextArgs, PolicyArgs};
use super::units::parse_duration_at_least_10ms;
use run::Runner;
use stdio::StdioTransport;
use tools::{InheritedFlag, OfferedTool, PassedFlags};

/// Run an MCP server, which programs and AI assistants ask about manifests, devices and drains
///
/// Implements the Model Context Protocol on stdin and stdout; clients start this command. All tools are read-only. The
/// tools devices, impact, forecast and drain_plan require --state or --context, and policy_check requires --policy.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// File or folder with the cluster state; can be repeated
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    /// Treat the dump as complete: if it contains no objects of a kind, assume that the cluster has none
    #[arg(long, hide_short_help = true)]
    assume_complete: bool,

    #[command(flatten)]
    context: ContextArgs,

    #[command(flatten)]
    policies: PolicyArgs,

    /// YAML or JSON file with Namespace objects
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    /// Maximum time for a call
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration_at_least_10ms)]
    timeout: Duration,
}

impl Arguments {
    pub(super) fn run(&self, _: &mut Console) -> Result<ExitCounts, Failure> {
        let server = McpServer::new(self.passed_flags()?, Runner::new(self.timeout)?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (transport, writer) = StdioTransport::open();
        let ended = runtime.block_on(async { serve_directly(server, transport, None).waiting().await });
        // Commands that still run are killed; answers that are ready are written.
        drop(runtime);
        let written = writer.join();
        match (ended, written) {
            (Ok(_), Ok(())) => Ok(ExitCounts::default()),
            _ => Err(Failure::Internal(anyhow::anyhow!("the session ended with an internal error"))),
        }
    }

    /// Returns the flags that the server was started with and passes on to the commands of tools.
    fn passed_flags(&self) -> Result<PassedFlags, Failure> {
        let mut settings = Vec::new();
        let mut add = |setting: InheritedFlag, flag: &str, path: &Path| {
            let mut text = OsString::from(flag);
            text.push("=");
            text.push(path);
            settings.push((setting, text));
        };
        if self.state.iter().any(|path| path.as_os_str() == "-") {
            return Err(Failure::Usage("--state: stdin is used for the protocol; specify a file".to_owned()));
        }
        self.state.iter().for_each(|path| add(InheritedFlag::State, "--state", path));
        self.policies.paths.iter().for_each(|path| add(InheritedFlag::Policies, "--policy", path));
        self.namespaces.iter().for_each(|path| add(InheritedFlag::Namespaces, "--namespaces", path));
        let context = self.context.context_flags().into_iter().map(|flag| (InheritedFlag::Context, flag));
        if self.state.is_empty() {
            settings.extend(context);
        } else if self.context.has_context_flag() {
            return Err(Failure::Usage("--state and --context cannot be used together".to_owned()));
        }
        if self.assume_complete {
            settings.push((InheritedFlag::Completeness, "--assume-complete".into()));
        }
        Ok(PassedFlags(settings))
    }
}

/// The MCP server: the tools that it offers, and the runner of their commands.
struct McpServer {
    tools: Vec<OfferedTool>,
    settings: PassedFlags,
    runner: Runner,
}

impl McpServer {
    fn new(settings: PassedFlags, runner: Runner) -> Result<McpServer, Failure> {
        let is_offered = |needs: Option<InheritedFlag>| {
            needs.is_none_or(|setting| settings.has_flag_or_context_as_state(setting))
        };
        let tools = tools::ALL_TOOLS.iter().filter(|spec| is_offered(spec.needs)).map(OfferedTool::new);
        Ok(McpServer { tools: tools.collect::<Result<_, _>>()?, runner, settings })
    }

    /// Returns the instructions that an MCP client gets when it connects.
    fn instructions(&self) -> String {
        let mut text = format!(
            "Tollgate checks and forecasts Kubernetes device taints and tolerations (dynamic resource allocation). All \
             tools are read-only. In each result, `results` is the output of the command, `notes` are its messages, and \
             `omitted` lists what was left out because the result was too large. {}",
            result::UNTRUSTED_TEXT_NOTICE
        );
        if !self.settings.has_flag_or_context_as_state(InheritedFlag::State) {
            text.push_str(
                " The server was started without --state and --context, so it has no tools for devices, impact, \
                 forecasts and drains.",
            );
        }
        if !self.settings.has_flag_or_context_as_state(InheritedFlag::Policies) {
            text.push_str(" The server was started without --policy, so it cannot check policies.");
        }
        text
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("tollgate", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions())
    }

    /// Agrees on the version of the protocol. Only 2025-03-26 requires batches, which the transport does not accept;
    /// its clients get the version before it.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if request.protocol_version == ProtocolVersion::V_2025_03_26 {
            request.protocol_version = ProtocolVersion::V_2024_11_05;
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params("unknown cursor; all tools are on the first page", None));
        }
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(|offered| offered.tool.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offered) = self.tools.iter().find(|offered| offered.spec.name == request.name) else {
            return Err(ErrorData::invalid_params("unknown tool; use one that tools/list returns", None));
        };
        let spec = offered.spec;
        let answer =
            match offered.validate_and_build_command(request.arguments.unwrap_or_default(), &self.settings) {
                Err(message) => Err(message),
                Ok(invocation) => {
                    let output = tokio::select! {
                        output = self.runner.run(invocation) => output,
                        // Nobody gets this answer.
                        () = context.ct.cancelled() => Err("cancelled".to_owned()),
                    };
                    output.and_then(|output| result::result_json(&output, spec.output.is_some(), spec.narrow))
                }
            };
        let result = match answer {
            Err(message) => CallToolResult::error(
                [message.as_str(), result::UNTRUSTED_TEXT_NOTICE].map(ContentBlock::text).to_vec(),
            ),
            Ok(text) => match serde_json::from_str(&text) {
                Ok(structured) => {
                    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                    result.structured_content = Some(structured);
                    result
                }
                Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
            },
        };
        Ok(result.into())
    }

    /// Answers requests that the library could not decode: those with unknown methods, and others whose parameters
    /// are missing or have the wrong types.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let expected = match request.method.as_str() {
            "tools/call" => "`name` must be a string, and `arguments` an object",
            "tools/list" => "`cursor` must be a string",
            "initialize" => "`protocolVersion`, `capabilities` and `clientInfo` are required",
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        };
        Err(ErrorData::invalid_params(expected, None))
    }
}
