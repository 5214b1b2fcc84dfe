//! The tools: for each, the command that it runs and its arguments, as rows.
//!
//! The schema that a client gets, the check of what it sends and the command line are made of the same rows, so they
//! cannot differ.
//!
//! Invariant: a value of a call is passed on only as the value of a fixed flag (`--flag=value`), as an operand behind
//! `--`, or as stdin. No row is a file, a cluster or a flag with which a command changes anything.
#![expect(clippy::disallowed_types, reason = "arguments and schemas are JSON trees in this protocol")]

mod table;

use std::ffi::OsString;
use std::sync::Arc;

use jsonschema::Validator;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::report::record::{Json, JsonObjectBuilder, record};
pub(super) use table::ALL_TOOLS;
use tollgate_api::profile::Profile;

/// Maximum number of characters of an argument with objects. Messages also have a limit in bytes.
const MAX_MANIFEST_CHARS: usize = 2 << 20;
/// Maximum number of characters of any other text argument, and of entries of a list.
const MAX_TEXT_CHARS: usize = 512;
const MAX_LIST_ENTRIES: usize = 256;
/// Pattern of text arguments: printable ASCII without the comma, at which flags of commands split lists.
const PLAIN_TEXT_PATTERN: &str = r"^[ -+\--~]+$";

/// A tool of the MCP server: its command, its arguments, and what its output looks like.
pub(super) struct ToolSpec {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    /// The command of this program, with the flags that every call has.
    command: &'static [&'static str],
    /// The flags of the server that are passed to the command.
    gets: &'static [InheritedFlag],
    /// The flag of the server without which the tool is not offered.
    pub(super) needs: Option<InheritedFlag>,
    rows: &'static [ToolArg],
    /// The schema of each line of the output; `None` if it is text.
    pub(super) output: Option<&'static str>,
    /// Advice how to get a smaller result, for results that are too large.
    pub(super) narrow: &'static str,
}

/// A setting of the MCP server: flags that it was started with and passes to commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InheritedFlag {
    State,
    /// Whether the state is complete.
    Completeness,
    Context,
    Policies,
    Namespaces,
}

/// An argument of a tool, with its type and where the command gets it.
struct ToolArg {
    name: &'static str,
    about: &'static str,
    form: ArgType,
    place: ArgDestination,
    required: bool,
}

/// The type of an argument of a tool, as in its JSON Schema.
enum ArgType {
    Switch,
    Number(u64, u64),
    OneOf(&'static [&'static str]),
    Profile,
    Text(&'static str),
    Texts,
    Manifest,
}

/// Where the command gets the value of an argument: in a flag, as an operand, or on stdin.
enum ArgDestination {
    Flag(&'static str),
    Operand,
    Stdin,
}

const fn optional_arg(
    name: &'static str,
    form: ArgType,
    place: ArgDestination,
    about: &'static str,
) -> ToolArg {
    ToolArg { name, about, form, place, required: false }
}

const fn switch(name: &'static str, flag: &'static str, about: &'static str) -> ToolArg {
    optional_arg(name, ArgType::Switch, ArgDestination::Flag(flag), about)
}

const fn texts(name: &'static str, flag: &'static str, about: &'static str) -> ToolArg {
    optional_arg(name, ArgType::Texts, ArgDestination::Flag(flag), about)
}

const fn plain_text(name: &'static str, place: ArgDestination, about: &'static str) -> ToolArg {
    optional_arg(name, ArgType::Text(PLAIN_TEXT_PATTERN), place, about)
}

const fn number(
    name: &'static str,
    (least, most): (u64, u64),
    flag: &'static str,
    about: &'static str,
) -> ToolArg {
    optional_arg(name, ArgType::Number(least, most), ArgDestination::Flag(flag), about)
}

const fn required_arg(row: ToolArg) -> ToolArg {
    ToolArg { required: true, ..row }
}

impl ToolArg {
    /// Returns the JSON Schema of the argument.
    fn schema(&self) -> Json {
        let text = |about: Option<&str>, pattern: &str| {
            record! {
                "description" if given: about,
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TEXT_CHARS,
                "pattern": pattern,
            }
        };
        let about = self.about;
        match &self.form {
            ArgType::Switch => record! { "description": about, "type": "boolean" },
            ArgType::Number(least, most) => {
                record! { "description": about, "type": "integer", "minimum": least, "maximum": most }
            }
            ArgType::OneOf(words) => record! { "description": about, "enum": words },
            ArgType::Profile => {
                let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
                record! { "description": about, "enum": names }
            }
            ArgType::Text(pattern) => text(Some(about), pattern),
            ArgType::Texts => record! {
                "description": about,
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_LIST_ENTRIES,
                "items": text(None, PLAIN_TEXT_PATTERN),
            },
            ArgType::Manifest => record! {
                "description": about,
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_MANIFEST_CHARS,
            },
        }
    }
}

/// The flags that the MCP server was started with and passes to commands.
#[derive(Default, Debug)]
pub(super) struct PassedFlags(pub(super) Vec<(InheritedFlag, OsString)>);

impl PassedFlags {
    /// True if the flag was given. `--context` counts as a state, too.
    pub(super) fn has_flag_or_context_as_state(&self, setting: InheritedFlag) -> bool {
        let is_given = |wanted| self.0.iter().any(|(given, _)| *given == wanted);
        is_given(setting) || (setting == InheritedFlag::State && is_given(InheritedFlag::Context))
    }
}

/// The command line for a tool call, and the text for its stdin.
pub(super) struct CommandInvocation {
    pub(super) arguments: Vec<OsString>,
    pub(super) stdin: Option<String>,
}

/// A tool that the server offers, with the validator of its arguments.
pub(super) struct OfferedTool {
    pub(super) spec: &'static ToolSpec,
    pub(super) tool: Tool,
    validator: Validator,
}

impl OfferedTool {
    pub(super) fn new(spec: &'static ToolSpec) -> Result<OfferedTool, anyhow::Error> {
        let input: JsonObject = serde_json::from_str(spec.input_schema().get())?;
        let validator = jsonschema::validator_for(&Value::Object(input.clone()))?;
        let annotations = ToolAnnotations::with_title(spec.title)
            .read_only(true)
            .destructive(false)
            .idempotent(true)
            .open_world(false);
        let tool = Tool::new(spec.name, spec.about, Arc::new(input))
            .with_title(spec.title)
            .with_raw_output_schema(Arc::new(spec.output_schema()?))
            .with_annotations(annotations);
        Ok(OfferedTool { spec, tool, validator })
    }

    /// Returns the command line for a call; an error says which arguments are invalid.
    pub(super) fn validate_and_build_command(
        &self,
        arguments: JsonObject,
        settings: &PassedFlags,
    ) -> Result<CommandInvocation, String> {
        let arguments = Value::Object(arguments);
        let errors: Vec<String> = self
            .validator
            .iter_errors(&arguments)
            .take(5)
            .map(|error| match (error.instance_path().to_string(), shortened(&error.masked().to_string())) {
                (path, message) if path.is_empty() => message,
                (path, message) => format!("{path}: {message}"),
            })
            .collect();
        if !errors.is_empty() {
            return Err(format!("invalid arguments: {}", errors.join("; ")));
        }
        Ok(self.spec.build_command(&arguments, settings))
    }
}

/// Returns the text, cut to a length that fits into an error message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl ToolSpec {
    /// Returns the JSON Schema of the arguments.
    fn input_schema(&self) -> Json {
        let mut properties = JsonObjectBuilder::default();
        self.rows.iter().for_each(|row| properties.add_json_member(row.name, row.schema().get()));
        let required = self.rows.iter().filter(|row| row.required).map(|row| row.name);
        record! {
            "type": "object",
            "additionalProperties": false,
            "required": required.collect::<Vec<_>>(),
            "properties": properties.finish(),
        }
    }

    /// Returns the JSON Schema of a result, which contains the schema of each line that the command prints.
    fn output_schema(&self) -> Result<JsonObject, anyhow::Error> {
        let mut schema: JsonObject = serde_json::from_str(RESULT_SCHEMA)?;
        let mut item: JsonObject = serde_json::from_str(self.output.unwrap_or(r#"{"type":"string"}"#))?;
        item.remove("$schema");
        if let Some(definitions) = item.remove("$defs") {
            schema.insert("$defs".to_owned(), definitions);
        }
        if let Some(Value::Object(properties)) = schema.get_mut("properties")
            && let Some(Value::Object(results)) = properties.get_mut("results")
        {
            results.insert("items".to_owned(), Value::Object(item));
        }
        Ok(schema)
    }

    /// True if the command line has, before its operands, only the command of this tool and flags that its rows and
    /// settings allow, which is the invariant of this module.
    #[cfg(any(test, fuzzing))]
    pub(super) fn allows_command_line(&self, invocation: &CommandInvocation, settings: &PassedFlags) -> bool {
        let arguments: Option<Vec<&str>> = invocation.arguments.iter().map(|text| text.to_str()).collect();
        let Some(arguments) = arguments else { return false };
        let Some(flags) = arguments.strip_prefix(&["--color=never"]) else { return false };
        let Some(flags) = flags.strip_prefix(self.command) else { return false };
        let is_row = |flag: &str| {
            self.rows.iter().any(|row| match (&row.place, flag.split_once('=')) {
                (ArgDestination::Flag(name), None) => matches!(row.form, ArgType::Switch) && *name == flag,
                (ArgDestination::Flag(name), Some((given, _))) => {
                    !matches!(row.form, ArgType::Switch) && *name == given
                }
                _ => false,
            })
        };
        let is_setting = |flag: &str| {
            settings.0.iter().any(|(setting, given)| self.gets.contains(setting) && given == flag)
        };
        let operands = flags.iter().position(|flag| *flag == "--");
        let flags = operands.and_then(|end| flags.get(..end));
        flags.is_some_and(|flags| flags.iter().all(|flag| is_row(flag) || is_setting(flag)))
    }

    /// Returns the command line for arguments that match the schema of this tool.
    fn build_command(&self, given: &Value, settings: &PassedFlags) -> CommandInvocation {
        let mut arguments: Vec<OsString> = vec!["--color=never".into()];
        arguments.extend(self.command.iter().map(OsString::from));
        let settings = settings.0.iter().filter(|(setting, _)| self.gets.contains(setting));
        arguments.extend(settings.map(|(_, flag)| flag.clone()));
        let mut operands: Vec<OsString> = Vec::new();
        let mut stdin = None;
        for row in self.rows {
            let values: Vec<String> = match given.get(row.name) {
                None | Some(Value::Null | Value::Object(_)) => continue,
                Some(Value::Bool(is_on)) => {
                    if let (true, ArgDestination::Flag(flag)) = (*is_on, &row.place) {
                        arguments.push(flag.into());
                    }
                    continue;
                }
                // A whole number can be written as 1.0.
                Some(Value::Number(number)) => {
                    vec![number.as_f64().map_or_else(|| number.to_string(), |number| format!("{number:.0}"))]
                }
                Some(Value::String(text)) => vec![text.clone()],
                Some(Value::Array(entries)) => {
                    entries.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
            };
            match &row.place {
                ArgDestination::Flag(flag) => {
                    arguments.extend(values.iter().map(|value| OsString::from(format!("{flag}={value}"))));
                }
                ArgDestination::Operand => operands.extend(values.into_iter().map(OsString::from)),
                ArgDestination::Stdin => {
                    operands.push("-".into());
                    stdin = values.into_iter().next();
                }
            }
        }
        arguments.push("--".into());
        arguments.append(&mut operands);
        CommandInvocation { arguments, stdin }
    }
}

/// The schema of all results, to which the schema of the command is added.
const RESULT_SCHEMA: &str = r#"{
    "type": "object",
    "additionalProperties": false,
    "required": ["notice", "exitCode", "notes", "omitted", "results"],
    "properties": {
        "notice": {"description": "How to treat the text of objects", "type": "string"},
        "exitCode": {"description": "Exit code of the command", "type": "integer"},
        "notes": {"description": "Notes, warnings and errors of the command", "type": "array", "items": {"type": "string"}},
        "omitted": {
            "description": "Lists that were shortened, because the result was too large",
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": false,
                "required": ["list", "shown", "total", "narrow"],
                "properties": {
                    "list": {"description": "Path of the list", "type": "string"},
                    "shown": {"type": "integer", "minimum": 0},
                    "total": {"type": "integer", "minimum": 0},
                    "narrow": {"description": "How to get a smaller result", "type": "string"}
                }
            }
        },
        "results": {"description": "What the command printed", "type": "array"}
    }
}"#;
