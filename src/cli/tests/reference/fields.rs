//! Fields of the files that Tollgate reads, from the rows they are read by.

use std::fmt::Write as _;

use super::generated::{cell, table};
use crate::config::CONFIG_SCHEMA;
use tollgate_engine::policy::{FieldType, ObjectSchema, PolicyKind, TEST_FILE};

pub(super) fn policies() -> String {
    of_files(&PolicyKind::ALL.map(PolicyKind::document_schema))
}

pub(super) fn policy_tests() -> String {
    of_files(&[&TEST_FILE])
}

pub(super) fn configuration() -> String {
    of_files(&[&CONFIG_SCHEMA])
}

/// A section for each struct, in the order in which a reader meets it.
fn of_files(files: &[&'static ObjectSchema]) -> String {
    let mut structs: Vec<&'static ObjectSchema> = files.to_vec();
    let mut at = 0;
    let mut out = String::new();
    while let Some(described) = structs.get(at).copied() {
        let rows: Vec<Vec<String>> = described
            .fields
            .iter()
            .map(|field| {
                let required = if field.required { "yes" } else { "" };
                vec![format!("`{}`", field.name), type_name(&field.ty), required.to_owned(), cell(field.doc)]
            })
            .collect();
        let table = table(&["field", "type", "required", "meaning"], &rows);
        _ = write!(out, "### {}\n\n{table}\n", described.name);
        for field in described.fields {
            collect(&field.ty, &mut structs);
        }
        at += 1;
    }
    out
}

fn collect(ty: &FieldType, found: &mut Vec<&'static ObjectSchema>) {
    match ty {
        FieldType::Object(inner) if !found.iter().any(|known| known.name == inner.name) => found.push(inner),
        FieldType::List(item) | FieldType::NonEmptyList(item) | FieldType::MapOf { values: item, .. } => {
            collect(item, found)
        }
        FieldType::AnyOf(types) => types.iter().for_each(|ty| collect(ty, found)),
        _ => {}
    }
}

fn type_name(ty: &FieldType) -> String {
    let mut names = Vec::new();
    alternatives(ty, &mut names);
    if names.len() <= 2 {
        return names.join(" or ");
    }
    let last = names.pop().unwrap_or_default();
    format!("{}, or {last}", names.join(", "))
}

/// The types that a field can have, flattened.
fn alternatives(ty: &FieldType, names: &mut Vec<String>) {
    let name = match ty {
        FieldType::NonEmptyStr | FieldType::Str | FieldType::Text(_) => "string".to_owned(),
        FieldType::Word => return names.extend(["string", "number"].map(str::to_owned)),
        FieldType::OneOf(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        FieldType::Int(i64::MIN) => "integer".to_owned(),
        FieldType::Int(least) => format!("integer ≥ {least}"),
        FieldType::IntOrPercent => return names.extend(["integer ≥ 0", "percentage"].map(str::to_owned)),
        FieldType::Bool => "boolean".to_owned(),
        FieldType::Time => "time (RFC 3339)".to_owned(),
        FieldType::AnyObject => "object".to_owned(),
        FieldType::Any => "any".to_owned(),
        FieldType::List(item) | FieldType::NonEmptyList(item) => format!("list{}", elements(item)),
        FieldType::StrMap => "map of strings".to_owned(),
        FieldType::MapOf { values, .. } => format!("map{}", elements(values)),
        FieldType::AnyOf(types) => return types.iter().for_each(|ty| alternatives(ty, names)),
        FieldType::Object(inner) => format!("[{}](#{})", inner.name, inner.name.to_lowercase()),
    };
    names.push(name);
}

/// ` of strings`, after a list or a map.
fn elements(ty: &FieldType) -> String {
    match ty {
        FieldType::NonEmptyStr | FieldType::Str | FieldType::Text(_) => " of strings".to_owned(),
        FieldType::Word => " of strings or numbers".to_owned(),
        FieldType::Bool => " of booleans".to_owned(),
        FieldType::Any => String::new(),
        FieldType::AnyObject => " of objects".to_owned(),
        ty => format!(" of {}", type_name(ty)),
    }
}
