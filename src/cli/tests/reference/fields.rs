//! Fields of the files that Tollgate reads, from the rows they are read by.

use std::fmt::Write as _;

use super::generated::{cell, table};
use crate::config::CONFIG_SCHEMA;
use tollgate_engine::policy::{PolicyKind, Struct, TEST_FILE, Ty};

pub(super) fn policies() -> String {
    of_files(&PolicyKind::ALL.map(PolicyKind::schema))
}

pub(super) fn policy_tests() -> String {
    of_files(&[&TEST_FILE])
}

pub(super) fn configuration() -> String {
    of_files(&[&CONFIG_SCHEMA])
}

/// A section for each struct, in the order in which a reader meets it.
fn of_files(files: &[&'static Struct]) -> String {
    let mut structs: Vec<&'static Struct> = files.to_vec();
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

fn collect(ty: &Ty, found: &mut Vec<&'static Struct>) {
    match ty {
        Ty::Struct(inner) if !found.iter().any(|known| known.name == inner.name) => found.push(inner),
        Ty::List(item) | Ty::NonEmptyList(item) | Ty::MapOf { values: item, .. } => collect(item, found),
        Ty::AnyOf(types) => types.iter().for_each(|ty| collect(ty, found)),
        _ => {}
    }
}

fn type_name(ty: &Ty) -> String {
    let mut names = Vec::new();
    alternatives(ty, &mut names);
    if names.len() <= 2 {
        return names.join(" or ");
    }
    let last = names.pop().unwrap_or_default();
    format!("{}, or {last}", names.join(", "))
}

/// The types that a field can have, flattened.
fn alternatives(ty: &Ty, names: &mut Vec<String>) {
    let name = match ty {
        Ty::NonEmptyStr | Ty::Str | Ty::Text(_) => "string".to_owned(),
        Ty::Word => return names.extend(["string", "number"].map(str::to_owned)),
        Ty::OneOf(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Ty::Int(i64::MIN) => "integer".to_owned(),
        Ty::Int(least) => format!("integer ≥ {least}"),
        Ty::IntOrPercent => return names.extend(["integer ≥ 0", "percentage"].map(str::to_owned)),
        Ty::Bool => "boolean".to_owned(),
        Ty::Time => "time (RFC 3339)".to_owned(),
        Ty::Schema => "JSON Schema".to_owned(),
        Ty::Any => "any".to_owned(),
        Ty::List(item) | Ty::NonEmptyList(item) => format!("list{}", elements(item)),
        Ty::StrMap => "map of strings".to_owned(),
        Ty::MapOf { values, .. } => format!("map{}", elements(values)),
        Ty::AnyOf(types) => return types.iter().for_each(|ty| alternatives(ty, names)),
        Ty::Struct(inner) => format!("[{}](#{})", inner.name, inner.name.to_lowercase()),
    };
    names.push(name);
}

/// ` of strings`, after a list or a map.
fn elements(ty: &Ty) -> String {
    match ty {
        Ty::NonEmptyStr | Ty::Str | Ty::Text(_) => " of strings".to_owned(),
        Ty::Word => " of strings or numbers".to_owned(),
        Ty::Bool => " of booleans".to_owned(),
        Ty::Any => String::new(),
        ty => format!(" of {}", type_name(ty)),
    }
}
