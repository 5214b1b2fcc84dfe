//! The keys and values that can be written at a position, from the tables with which documents are decoded.
//!
//! Invariant: nothing is offered that decoding would not accept in one of the profiles.

use super::cursor::{Container, Cursor, Step};
use super::judge::is_config;
use super::meanings;
use crate::config::CONFIG_SCHEMA;
use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Availability, Profile, Version};
use tollgate_api::schema;
use tollgate_engine::policy::{self, PolicyKind, TEST_FILE};

/// The API version of policies.
const POLICY_API_VERSION: &str = "tollgate.dev/v1alpha1";

/// The type of a value: of the Kubernetes API, or of a file of Tollgate, such as a policy.
#[derive(Clone, Copy)]
pub(super) enum ValueType {
    Api(schema::FieldType),
    Policy(policy::FieldType),
}

/// A field that may be written in the container at the cursor, with its type and meaning.
pub(super) struct AllowedField {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) is_required: bool,
    /// True if the value is an object or a list, which starts on the next line.
    pub(super) is_container: bool,
    /// The type for display, such as `list of DeviceToleration`.
    pub(super) ty: String,
}

impl AllowedField {
    fn new(name: &'static str, meaning: &'static str, is_required: bool, shape: ValueType) -> AllowedField {
        let (ty, is_container) = type_name_and_is_container(shape);
        AllowedField { name, meaning, is_required, is_container, ty }
    }
}

/// The field names and values that the selected profiles accept.
pub(super) struct Vocabulary<'a> {
    pub(super) profiles: &'a [&'static Profile],
}

impl Vocabulary<'_> {
    fn availability_in_any_profile(&self) -> Availability {
        let none = Availability(0);
        self.profiles.iter().fold(none, |all, profile| all.or(profile.fields))
    }

    /// Returns the type of the container that the cursor is in; `None` if it is unknown. Test files and
    /// configuration files are recognized by the name `file`.
    pub(super) fn container_type_at(&self, cursor: &Cursor<'_>, file: &str) -> Option<ValueType> {
        let containers = &cursor.containers;
        let known = containers.iter().enumerate().rev().find_map(|(depth, container)| {
            root_type_by_api_version_and_kind(container).map(|shape| (depth, shape))
        });
        let by_name = match (policy::is_test_file(file), is_config(file)) {
            (true, _) => Some(&TEST_FILE),
            (_, true) => Some(&CONFIG_SCHEMA),
            _ => None,
        };
        let by_name = || by_name.map(|ty| (0, ValueType::Policy(policy::FieldType::Object(ty))));
        let (depth, shape) = known.or_else(by_name)?;
        let steps = containers.iter().skip(depth + 1).filter_map(|container| container.step);
        steps.into_iter().try_fold(shape, |shape, step| self.type_of_child(shape, step))
    }

    /// Returns the type of a member or item of a type; `None` if it is unknown.
    pub(super) fn type_of_child(&self, shape: ValueType, step: Step<'_>) -> Option<ValueType> {
        match (shape, step) {
            (
                ValueType::Api(schema::FieldType::Struct(ty) | schema::FieldType::StringOr(ty)),
                Step::Key(key),
            ) => ty.field(key, self.availability_in_any_profile()).map(|(_, field)| ValueType::Api(field.ty)),
            (ValueType::Api(schema::FieldType::List(item)), Step::Item) => Some(ValueType::Api(*item)),
            (ValueType::Api(schema::FieldType::Map { value, .. }), Step::Key(_)) => {
                Some(ValueType::Api(*value))
            }
            (ValueType::Policy(policy::FieldType::Object(ty)), Step::Key(key)) => {
                ty.fields.iter().find(|field| field.name == key).map(|field| ValueType::Policy(field.ty))
            }
            (
                ValueType::Policy(policy::FieldType::List(item) | policy::FieldType::NonEmptyList(item)),
                Step::Item,
            ) => Some(ValueType::Policy(*item)),
            (ValueType::Policy(policy::FieldType::MapOf { values, .. }), Step::Key(_)) => {
                Some(ValueType::Policy(*values))
            }
            (ValueType::Policy(policy::FieldType::AnyOf(types)), step) => {
                types.iter().find_map(|ty| self.type_of_child(ValueType::Policy(*ty), step))
            }
            _ => None,
        }
    }

    /// Returns the fields of a struct that the profiles have; empty for other types.
    pub(super) fn fields(&self, shape: ValueType) -> Vec<AllowedField> {
        match shape {
            ValueType::Api(schema::FieldType::Struct(ty) | schema::FieldType::StringOr(ty)) => {
                let available = self.availability_in_any_profile();
                let known = ty.fields.iter().filter(|field| field.known.overlaps(available));
                let row = |field: &schema::Field| {
                    let meaning = meanings::field_meaning(ty.name, field.json);
                    AllowedField::new(field.json, meaning, field.always, ValueType::Api(field.ty))
                };
                known.map(row).collect()
            }
            ValueType::Policy(policy::FieldType::Object(ty)) => {
                let row = |field: &policy::FieldSchema| {
                    AllowedField::new(field.name, field.doc, field.required, ValueType::Policy(field.ty))
                };
                ty.fields.iter().map(row).collect()
            }
            ValueType::Policy(policy::FieldType::MapOf { keys, values, .. }) => {
                let row = |name| AllowedField::new(name, "", false, ValueType::Policy(*values));
                keys().into_iter().map(row).collect()
            }
            ValueType::Policy(policy::FieldType::AnyOf(types)) => {
                types.iter().flat_map(|ty| self.fields(ValueType::Policy(*ty))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the values that a field of this type accepts, with their meanings; empty if it accepts any value.
    pub(super) fn accepted_values(&self, shape: ValueType) -> Vec<(&'static str, &'static str)> {
        match shape {
            ValueType::Api(schema::FieldType::Named(name) | schema::FieldType::CoreNamed(name)) => {
                let serves = |word: &str| {
                    name != "DeviceTaintEffect"
                        || self.profiles.iter().any(|profile| profile.effects.contains(&word))
                };
                meanings::value_meanings(name).filter(|(word, _)| serves(word)).collect()
            }
            ValueType::Policy(policy::FieldType::OneOf(words)) => {
                words.iter().map(|word| (*word, "")).collect()
            }
            ValueType::Policy(policy::FieldType::AnyOf(types)) => {
                types.iter().flat_map(|ty| self.accepted_values(ValueType::Policy(*ty))).collect()
            }
            ValueType::Api(schema::FieldType::Bool) | ValueType::Policy(policy::FieldType::Bool) => {
                vec![("true", ""), ("false", "")]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the pairs of `apiVersion` and `kind` that the profiles serve, and those of policies.
    pub(super) fn served_and_policy_type_metas(&self) -> Vec<(String, &'static str)> {
        let mut found = Vec::new();
        for kind in ApiKind::ALL {
            let mut versions: Vec<Version> =
                self.profiles.iter().flat_map(|profile| profile.versions(kind)).copied().collect();
            // The newest first.
            versions.sort_unstable_by(|one, other| other.cmp(one));
            versions.dedup();
            for version in versions {
                let group = kind.group();
                let slash = if group.is_empty() { "" } else { "/" };
                found.push((format!("{group}{slash}{}", version.name()), kind.name()));
            }
        }
        found.extend(PolicyKind::ALL.map(|kind| (POLICY_API_VERSION.to_owned(), kind.name())));
        found
    }
}

/// Returns the type of the kind that the container's own apiVersion and kind name; `None` if they are missing, as in
/// nested mappings, or unknown.
fn root_type_by_api_version_and_kind(container: &Container<'_>) -> Option<ValueType> {
    if container.api_version == POLICY_API_VERSION {
        let kind = PolicyKind::parse(container.kind)?;
        return Some(ValueType::Policy(policy::FieldType::Object(kind.document_schema())));
    }
    let (group, version) = container.api_version.rsplit_once('/').unwrap_or(("", container.api_version));
    let kind = ApiKind::from_group_and_name(group, container.kind)?;
    let version = Version::parse(version)?;
    Some(ValueType::Api(schema::FieldType::Struct(fields::root_struct(kind, version))))
}

/// Returns the type in a few words, such as `list of DeviceToleration`, and whether it is an object or a list.
fn type_name_and_is_container(shape: ValueType) -> (String, bool) {
    let name_of = |shape| type_name_and_is_container(shape).0;
    let (name, is_container) = match shape {
        ValueType::Api(ty) => match ty {
            schema::FieldType::Str | schema::FieldType::Uid => ("string", false),
            schema::FieldType::Named(name) | schema::FieldType::CoreNamed(name) => (name, false),
            schema::FieldType::Int => ("integer", false),
            schema::FieldType::Bool => ("boolean", false),
            schema::FieldType::Quantity => ("quantity", false),
            schema::FieldType::Time => ("time", false),
            schema::FieldType::Raw => ("any value", false),
            schema::FieldType::Struct(ty) => (ty.name, true),
            schema::FieldType::StringOr(ty) => (ty.name, false),
            schema::FieldType::List(item) => {
                return (format!("list of {}", name_of(ValueType::Api(*item))), true);
            }
            schema::FieldType::Map { value, .. } => {
                return (format!("map of {}", name_of(ValueType::Api(*value))), true);
            }
        },
        ValueType::Policy(ty) => match ty {
            policy::FieldType::NonEmptyStr
            | policy::FieldType::Str
            | policy::FieldType::Text(_)
            | policy::FieldType::Word => ("string", false),
            policy::FieldType::OneOf(words) => return (words.join(" | "), false),
            policy::FieldType::Int(_) => ("integer", false),
            policy::FieldType::IntOrPercent => ("integer or percentage", false),
            policy::FieldType::Bool => ("boolean", false),
            policy::FieldType::Time => ("time", false),
            policy::FieldType::AnyObject => ("object", true),
            policy::FieldType::Any => ("any value", false),
            policy::FieldType::StrMap => ("map of string", true),
            policy::FieldType::Object(ty) => (ty.name, true),
            policy::FieldType::List(item) | policy::FieldType::NonEmptyList(item) => {
                return (format!("list of {}", name_of(ValueType::Policy(*item))), true);
            }
            policy::FieldType::MapOf { values, .. } => {
                return (format!("map of {}", name_of(ValueType::Policy(*values))), false);
            }
            policy::FieldType::AnyOf(types) => {
                let names: Vec<String> = types.iter().map(|ty| name_of(ValueType::Policy(*ty))).collect();
                return (names.join(" or "), false);
            }
        },
    };
    (name.to_owned(), is_container)
}
