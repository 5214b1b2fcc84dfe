//! The fields of `.tollgate.yaml`: data. `tollgate schema config` prints the same rows; `docs/reference/configuration.md` has
//! examples.

use super::levels::LevelSetting;
use tollgate_api::profile::Gate;
use tollgate_engine::policy::{Struct, Ty, field, required};
use tollgate_engine::rules::{self, Origin};

const STRING_LIST: Ty = Ty::List(&Ty::NonEmptyStr);
const RELEASE_NAMES: Ty = Ty::AnyOf(&[Ty::Word, Ty::List(&Ty::Word)]);
const STRING_OR_STRINGS: Ty = Ty::AnyOf(&[Ty::NonEmptyStr, STRING_LIST]);
const LEVEL: Ty =
    Ty::OneOf(&[LevelSetting::Deny.name(), LevelSetting::Warn.name(), LevelSetting::Allow.name()]);
const LEVELS: Ty =
    Ty::MapOf { keys: rules_and_origins, hint: "`tollgate explain` lists the rules", values: &LEVEL };
const GATES: Ty = Ty::AnyOf(&[
    Ty::NonEmptyStr,
    Ty::MapOf {
        keys: gate_names,
        hint: "`tollgate profiles 1.37` lists the feature gates",
        values: &Ty::Bool,
    },
]);

/// Schema of a configuration file.
pub(crate) static CONFIG_SCHEMA: Struct = Struct {
    name: "Config",
    fields: &[
        field("kubernetes", RELEASE_NAMES, "Releases or drafts to check against (default: `kep-5055`)"),
        field(
            "featureGates",
            GATES,
            "Feature gates of the API server: `default`, `all`, or a map of those that differ from the defaults",
        ),
        field("policies", STRING_OR_STRINGS, "Policy files or folders, relative to this file"),
        field(
            "namespaces",
            Ty::NonEmptyStr,
            "YAML or JSON file with Namespace objects, relative to this file",
        ),
        field(
            "classes",
            STRING_OR_STRINGS,
            "Files or folders with the ResourceClasses (KEP-3063) of the cluster, relative to this file",
        ),
        field("levels", LEVELS, "Levels by rule or origin; only the levels of lints can be lowered"),
        field(
            "failOn",
            Ty::OneOf(&["deny", "warn"]),
            "Lowest level that causes exit code 1 (default: `deny`)",
        ),
        field("exclude", STRING_OR_STRINGS, "Paths to skip in folders, as .gitignore patterns"),
        field(
            "baseline",
            Ty::NonEmptyStr,
            "Baseline file written by `--write-baseline`, relative to this file",
        ),
        field("overrides", Ty::List(&Ty::Struct(&OVERRIDE_SCHEMA)), "Levels for specific paths or objects"),
    ],
};

static OVERRIDE_SCHEMA: Struct = Struct {
    name: "Override",
    fields: &[
        field("paths", STRING_OR_STRINGS, "Paths, as .gitignore patterns (default: all)"),
        field(
            "objects",
            Ty::List(&Ty::Struct(&OBJECT_PATTERN_SCHEMA)),
            "Objects, as patterns of which at least one must match (default: all)",
        ),
        required("levels", LEVELS, "Levels by rule or origin; only the levels of lints can be lowered"),
        required("reason", Ty::NonEmptyStr, "Reason for the override, shown in reports"),
    ],
};

static OBJECT_PATTERN_SCHEMA: Struct = Struct {
    name: "ObjectPattern",
    fields: &[
        field("kind", Ty::NonEmptyStr, "Kind, as a glob (default: any)"),
        field("namespace", Ty::NonEmptyStr, "Namespace, as a glob (default: any)"),
        field("name", Ty::NonEmptyStr, "Name, as a glob (default: any)"),
    ],
};

/// Returns the names of all origins and rules, which levels can be set for.
pub(crate) fn rules_and_origins() -> Vec<&'static str> {
    Origin::ALL.iter().map(|origin| origin.name()).chain(rules::all().map(|rule| rule.id)).collect()
}

fn gate_names() -> Vec<&'static str> {
    Gate::ALL.iter().map(|gate| gate.name()).collect()
}
