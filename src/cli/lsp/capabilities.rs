//! What the server can do, as `initialize` answers it, and what it asks the client for.

use serde::Serialize;

use super::actions;
use super::text::Encoding;

/// Documents are sent as changes of ranges.
const INCREMENTAL: u8 = 2;

/// The answer to `initialize`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    capabilities: Capabilities,
    server_info: ServerInfo,
}

#[derive(Serialize)]
struct ServerInfo {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    position_encoding: &'static str,
    text_document_sync: TextDocumentSync,
    hover_provider: bool,
    completion_provider: CompletionProvider,
    code_action_provider: CodeActionProvider,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeActionProvider {
    code_action_kinds: [&'static str; 2],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompletionProvider {
    trigger_characters: [&'static str; 4],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextDocumentSync {
    open_close: bool,
    change: u8,
    save: bool,
}

/// The answer to `initialize`.
pub(super) fn result(encoding: Encoding) -> InitializeResult {
    InitializeResult {
        capabilities: Capabilities {
            position_encoding: encoding.name(),
            text_document_sync: TextDocumentSync { open_close: true, change: INCREMENTAL, save: true },
            hover_provider: true,
            completion_provider: CompletionProvider { trigger_characters: [":", " ", "\"", "("] },
            code_action_provider: CodeActionProvider { code_action_kinds: actions::KINDS },
        },
        server_info: ServerInfo { name: "tollgate", version: env!("CARGO_PKG_VERSION") },
    }
}

/// Asks the client to watch files that policies and configuration can be in.
#[derive(Serialize)]
pub(super) struct Registrations {
    registrations: [Registration; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Registration {
    id: &'static str,
    method: &'static str,
    register_options: Watchers,
}

#[derive(Serialize)]
struct Watchers {
    watchers: [Watcher; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Watcher {
    glob_pattern: &'static str,
}

/// The parameters of `client/registerCapability`.
pub(super) fn watched_files() -> Registrations {
    let watchers = [Watcher { glob_pattern: "**/*.{yaml,yml,json}" }];
    Registrations {
        registrations: [Registration {
            id: "watched-files",
            method: "workspace/didChangeWatchedFiles",
            register_options: Watchers { watchers },
        }],
    }
}
