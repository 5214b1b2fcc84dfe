//! The fields of `.tollgate.yaml`: data. `tollgate schema config` prints the same rows; `docs/reference/configuration.md` has
//! examples.

use super::levels::LevelSetting;
use tollgate_api::profile::Gate;
use tollgate_engine::policy::{Struct, Ty, field, required};
use tollgate_engine::rules::{self, Origin};

const STRINGS: Ty = Ty::List(&Ty::NonEmptyStr);
const RELEASES: Ty = Ty::AnyOf(&[Ty::Word, Ty::List(&Ty::Word)]);
const ONE_OR_MORE: Ty = Ty::AnyOf(&[Ty::NonEmptyStr, STRINGS]);
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
pub(crate) static CONFIG: Struct = Struct {
    name: "Config",
    fields: &[
        field("kubernetes", RELEASES, "Releases or drafts to check against (default: `kep-5055`)"),
        field(
            "featureGates",
            GATES,
            "Feature gates of the API server: `default`, `all`, or a map of those that differ from the defaults",
        ),
        field("policies", ONE_OR_MORE, "Policy files or folders, relative to this file"),
        field(
            "namespaces",
            Ty::NonEmptyStr,
            "YAML or JSON file with Namespace objects, relative to this file",
        ),
        field(
            "classes",
            ONE_OR_MORE,
            "Files or folders with the ResourceClasses (KEP-3063) of the cluster, relative to this file",
        ),
        field("levels", LEVELS, "Levels by rule or origin; only the levels of lints can be lowered"),
        field(
            "failOn",
            Ty::OneOf(&["deny", "warn"]),
            "Lowest level that causes exit code 1 (default: `deny`)",
        ),
        field("exclude", ONE_OR_MORE, "Paths to skip in folders, as .gitignore patterns"),
        field(
            "baseline",
            Ty::NonEmptyStr,
            "Baseline file written by `--write-baseline`, relative to this file",
        ),
        field("overrides", Ty::List(&Ty::Struct(&OVERRIDE)), "Levels for specific paths or objects"),
    ],
};

static OVERRIDE: Struct = Struct {
    name: "Override",
    fields: &[
        field("paths", ONE_OR_MORE, "Paths, as .gitignore patterns (default: all)"),
        field(
            "objects",
            Ty::List(&Ty::Struct(&OBJECT)),
            "Objects, as patterns of which at least one must match (default: all)",
        ),
        required("levels", LEVELS, "Levels by rule or origin; only the levels of lints can be lowered"),
        required("reason", Ty::NonEmptyStr, "Reason for the override, shown in reports"),
    ],
};

static OBJECT: Struct = Struct {
    name: "ObjectPattern",
    fields: &[
        field("kind", Ty::NonEmptyStr, "Kind, as a glob (default: any)"),
        field("namespace", Ty::NonEmptyStr, "Namespace, as a glob (default: any)"),
        field("name", Ty::NonEmptyStr, "Name, as a glob (default: any)"),
    ],
};

/// The names of all origins and rules.
pub(crate) fn rules_and_origins() -> Vec<&'static str> {
    Origin::ALL.iter().map(|origin| origin.name()).chain(rules::all().map(|rule| rule.id)).collect()
}

fn gate_names() -> Vec<&'static str> {
    Gate::ALL.iter().map(|gate| gate.name()).collect()
}
