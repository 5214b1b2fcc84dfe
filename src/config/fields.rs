//! The fields of `.tollgate.yaml`: data. `tollgate schema config` prints the same rows;
//! `docs/reference/configuration.md` has examples.

use super::levels::LevelSetting;
use tollgate_api::profile::Gate;
use tollgate_engine::policy::{FieldType, ObjectSchema, optional_field, required_field};
use tollgate_engine::rules::{self, RuleOrigin};

const STRING_LIST: FieldType = FieldType::List(&FieldType::NonEmptyStr);
const RELEASE_NAMES: FieldType = FieldType::AnyOf(&[FieldType::Word, FieldType::List(&FieldType::Word)]);
const STRING_OR_STRINGS: FieldType = FieldType::AnyOf(&[FieldType::NonEmptyStr, STRING_LIST]);
const LEVEL_TYPE: FieldType =
    FieldType::OneOf(&[LevelSetting::Deny.name(), LevelSetting::Warn.name(), LevelSetting::Allow.name()]);
const LEVELS_MAP_TYPE: FieldType = FieldType::MapOf {
    keys: rule_and_origin_names,
    hint: "`tollgate explain` lists the rules",
    values: &LEVEL_TYPE,
};
const FEATURE_GATES_TYPE: FieldType = FieldType::AnyOf(&[
    FieldType::NonEmptyStr,
    FieldType::MapOf {
        keys: gate_names,
        hint: "`tollgate profiles 1.37` lists the feature gates",
        values: &FieldType::Bool,
    },
]);

/// Schema of a configuration file.
pub(crate) static CONFIG_SCHEMA: ObjectSchema = ObjectSchema {
    name: "Config",
    fields: &[
        optional_field(
            "kubernetes",
            RELEASE_NAMES,
            "Releases or drafts to check against (default: `kep-5055`)",
        ),
        optional_field(
            "featureGates",
            FEATURE_GATES_TYPE,
            "Feature gates of the API server: `default`, `all`, or a map of those that differ from the defaults",
        ),
        optional_field("policies", STRING_OR_STRINGS, "Policy files or folders, relative to this file"),
        optional_field(
            "namespaces",
            FieldType::NonEmptyStr,
            "YAML or JSON file with Namespace objects, relative to this file",
        ),
        optional_field(
            "classes",
            STRING_OR_STRINGS,
            "Files or folders with the ResourceClasses (KEP-3063) of the cluster, relative to this file",
        ),
        optional_field(
            "levels",
            LEVELS_MAP_TYPE,
            "Levels by rule or origin; only the levels of lints can be lowered",
        ),
        optional_field(
            "failOn",
            FieldType::OneOf(&["deny", "warn"]),
            "Lowest level that causes exit code 1 (default: `deny`)",
        ),
        optional_field("exclude", STRING_OR_STRINGS, "Paths to skip in folders, as .gitignore patterns"),
        optional_field(
            "baseline",
            FieldType::NonEmptyStr,
            "Baseline file written by `--write-baseline`, relative to this file",
        ),
        optional_field(
            "overrides",
            FieldType::List(&FieldType::Object(&OVERRIDE_SCHEMA)),
            "Levels for specific paths or objects",
        ),
    ],
};

static OVERRIDE_SCHEMA: ObjectSchema = ObjectSchema {
    name: "Override",
    fields: &[
        optional_field("paths", STRING_OR_STRINGS, "Paths, as .gitignore patterns (default: all)"),
        optional_field(
            "objects",
            FieldType::List(&FieldType::Object(&OBJECT_PATTERN_SCHEMA)),
            "Objects, as patterns of which at least one must match (default: all)",
        ),
        required_field(
            "levels",
            LEVELS_MAP_TYPE,
            "Levels by rule or origin; only the levels of lints can be lowered",
        ),
        required_field("reason", FieldType::NonEmptyStr, "Reason for the override, shown in reports"),
    ],
};

static OBJECT_PATTERN_SCHEMA: ObjectSchema = ObjectSchema {
    name: "ObjectPattern",
    fields: &[
        optional_field("kind", FieldType::NonEmptyStr, "Kind, as a glob (default: any)"),
        optional_field("namespace", FieldType::NonEmptyStr, "Namespace, as a glob (default: any)"),
        optional_field("name", FieldType::NonEmptyStr, "Name, as a glob (default: any)"),
    ],
};

/// Returns the names of all origins and rules, which levels can be set for.
pub(crate) fn rule_and_origin_names() -> Vec<&'static str> {
    RuleOrigin::ALL.iter().map(|origin| origin.name()).chain(rules::all().map(|rule| rule.id)).collect()
}

fn gate_names() -> Vec<&'static str> {
    Gate::ALL.iter().map(|gate| gate.name()).collect()
}
