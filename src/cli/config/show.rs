//! Rows of `tollgate config`: each key, its value, and where the value comes from.

use serde::Serialize;

use super::super::given::{GivenFlags, flag_or_variable_name};
use super::super::levels::LevelArgs;
use super::super::shared::FailOn;
use super::lookup::FoundConfig;
use super::settings::MergedSettings;
use crate::config::{ConfigFile, LevelOverride, LocatedSetting, StringListWithPositions};
use tollgate_api::profile;

/// A row of the printed configuration: a key with its value and source.
#[derive(Debug, Serialize)]
pub(super) struct SettingRow {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) from: String,
}

fn row(key: impl Into<String>, value: impl Into<String>, from: impl Into<String>) -> SettingRow {
    SettingRow { key: key.into(), value: value.into(), from: from.into() }
}

const DEFAULT_SOURCE: &str = "default";

/// Returns every setting with its value and its source.
pub(super) fn setting_rows(
    given: &GivenFlags,
    levels: &LevelArgs,
    settings: &MergedSettings,
    config: Option<&FoundConfig>,
) -> Vec<SettingRow> {
    let none = ConfigFile::default();
    let file = config.map_or(&none, |config| &config.file);
    let at = |line: usize| format!("{}:{line}", file.name);
    let key = |name: &str, flag: &str, in_file: Option<(String, usize)>, usual: &str| match (
        given.get(flag),
        in_file,
    ) {
        (Some(given), _) => row(name, given.value.clone(), given.source.clone()),
        (None, Some((value, line))) => row(name, value, at(line)),
        (None, None) => row(name, usual, DEFAULT_SOURCE),
    };
    let gates = "all, with a warning for each field that an API server with the default feature gates drops";
    let fail_on = file.fails_on_warn.as_ref().map(|set| {
        let level = if set.value { FailOn::Warn } else { FailOn::Deny };
        (level.name().to_owned(), set.line)
    });
    let mut rows = vec![
        key("kubernetes", "kubernetes", values_and_line(file.kubernetes.as_ref()), profile::DEFAULT.name),
        key("featureGates", "feature_gates", value_and_line(file.feature_gates.as_ref()), gates),
        key("policies", "policy", values_and_line(file.policies.as_ref()), "none"),
        key("namespaces", "namespaces", value_and_line(file.namespaces.as_ref()), "none"),
        key("classes", "classes", values_and_line(file.classes.as_ref()), "none"),
        key("failOn", "fail_on", fail_on, FailOn::Deny.name()),
        key("baseline", "baseline", value_and_line(file.baseline.as_ref()), "none"),
        key("exclude", "exclude", values_and_line(file.exclude.as_ref()), "none"),
    ];
    rows.extend(level_rows(levels, settings, file, &at));
    for (index, item) in file.overrides.iter().enumerate() {
        rows.push(row(format!("overrides[{index}]"), describe_override(item), at(item.line)));
    }
    rows
}

/// Returns the rows of the levels: first those of the configuration file that no flag replaces, then those of
/// flags.
fn level_rows(
    levels: &LevelArgs,
    settings: &MergedSettings,
    file: &ConfigFile,
    at: &dyn Fn(usize) -> String,
) -> Vec<SettingRow> {
    let mut rows: Vec<SettingRow> = Vec::new();
    for level in &file.levels {
        let (target, setting) = level.value;
        if settings.flag_levels.explicit_setting(target).is_none() {
            rows.push(row(
                format!("levels.{}", target.rule_or_origin_name()),
                setting.name(),
                at(level.line),
            ));
        }
    }
    for (position, given) in levels.given.iter().enumerate() {
        let name = given.target.rule_or_origin_name();
        let mut later = levels.given.iter().skip(position + 1);
        if !later.any(|other| other.target.rule_or_origin_name() == name) {
            let source = flag_or_variable_name(given.setting.name(), given.is_from_environment);
            rows.push(row(format!("levels.{name}"), given.setting.name(), source));
        }
    }
    if rows.is_empty() {
        rows.push(row("levels", "as listed by `tollgate explain`", DEFAULT_SOURCE));
    }
    rows
}

/// The value of a setting and its line.
fn value_and_line(string: Option<&LocatedSetting<String>>) -> Option<(String, usize)> {
    string.map(|string| (string.value.clone(), string.line))
}

/// The values of a list, joined with commas, and its line.
fn values_and_line(strings: Option<&StringListWithPositions>) -> Option<(String, usize)> {
    let strings = strings?;
    let values: Vec<&str> = strings.value.iter().map(|item| item.value.as_str()).collect();
    Some((values.join(","), strings.line))
}

/// Returns an override on one line: `paths charts/**; objects ResourceClaim ml/*; blanket-toleration: allow; not
/// ours`.
fn describe_override(item: &LevelOverride) -> String {
    let mut parts = Vec::new();
    if !item.paths.is_empty() {
        let paths: Vec<&str> = item.paths.iter().map(|path| path.value.as_str()).collect();
        parts.push(format!("paths {}", paths.join(",")));
    }
    if !item.objects.is_empty() {
        let any = |glob: &str| if glob.is_empty() { "*".to_owned() } else { glob.to_owned() };
        let objects = item.objects.iter();
        let objects = objects
            .map(|object| format!("{} {}/{}", any(&object.kind), any(&object.namespace), any(&object.name)));
        parts.push(format!("objects {}", objects.collect::<Vec<_>>().join(", ")));
    }
    let levels = item.levels.entries().map(|(name, setting)| format!("{name}: {}", setting.name()));
    parts.extend(levels);
    parts.push(format!("reason: {}", item.reason));
    parts.join("; ")
}
