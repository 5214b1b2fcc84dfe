//! The capabilities that the server announces in `initialize`, and those that it needs from the client.

use serde_json::value::RawValue;

use super::actions;
use super::text::Encoding;

/// The answer to `initialize`. Documents are sent as changes of ranges, which is `change` 2.
pub(super) fn initialize_result(encoding: Encoding) -> serde_json::Result<Box<RawValue>> {
    let (encoding, version) = (encoding.name(), env!("CARGO_PKG_VERSION"));
    let [quick_fix, fix_all] = actions::ACTION_KINDS;
    RawValue::from_string(format!(
        r#"{{"capabilities":{{"positionEncoding":"{encoding}","textDocumentSync":{{"openClose":true,"change":2,"save":true}},"hoverProvider":true,"completionProvider":{{"triggerCharacters":[":"," ","\"","("]}},"codeActionProvider":{{"codeActionKinds":["{quick_fix}","{fix_all}"]}}}},"serverInfo":{{"name":"tollgate","version":"{version}"}}}}"#
    ))
}

/// The parameters of `client/registerCapability`: the client watches files that policies and configuration can be in.
pub(super) fn watch_registration() -> serde_json::Result<&'static RawValue> {
    serde_json::from_str(
        r#"{"registrations":[{"id":"watched-files","method":"workspace/didChangeWatchedFiles","registerOptions":{"watchers":[{"globPattern":"**/*.{yaml,yml,json}"}]}}]}"#,
    )
}
