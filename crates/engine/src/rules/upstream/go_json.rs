//! Values as Go's encoder prints the server's internal structs: Go's field names, nothing left out.
//!
//! Only the few that messages about slices show; each may end anywhere past `max_bytes` bytes. `null` and `[]` follow what was written. Release 1.33 prints these
//! with Go's `%#v`, addresses included, which nobody can repeat; it gets the same JSON.

use tollgate_api::profile::Profile;
use tollgate_api::view::{Attribute, List, NodeRequirement, NodeTerm, PodClaim, Strings, View as _};
use tollgate_document::doc::Value;
use tollgate_document::finding::BadValue;
use tollgate_formats::gofmt;

/// Returns a DeviceAttribute as JSON, with every field that the release has.
pub fn attribute_json(attribute: Attribute<'_>, profile: &Profile, max_bytes: usize) -> BadValue {
    let mut out = String::from("{");
    for (name, json) in
        [("IntValue", "int"), ("BoolValue", "bool"), ("StringValue", "string"), ("VersionValue", "version")]
    {
        write_key(&mut out, name);
        write_scalar(&mut out, attribute.json().get(json), max_bytes);
    }
    if profile.list_attributes {
        for (name, json) in [
            ("IntValues", "ints"),
            ("BoolValues", "bools"),
            ("StringValues", "strings"),
            ("VersionValues", "versions"),
        ] {
            write_key(&mut out, name);
            let zero = match json {
                "ints" => "0",
                "bools" => "false",
                _ => "\"\"",
            };
            write_list(&mut out, max_bytes, attribute.json().get(json), |out, item| {
                if item.is_null() { out.push_str(zero) } else { write_scalar(out, item, max_bytes) }
            });
        }
    }
    out.push('}');
    BadValue::Json(out.into())
}

/// Returns a PodResourceClaim as JSON.
pub fn pod_claim_json(claim: PodClaim<'_>, max_bytes: usize) -> BadValue {
    let mut out = String::from("{");
    write_key(&mut out, "Name");
    gofmt::json_string(&mut out, gofmt::head(claim.name(), max_bytes));
    for (name, json) in [
        ("ResourceClaimName", "resourceClaimName"),
        ("ResourceClaimTemplateName", "resourceClaimTemplateName"),
    ] {
        write_key(&mut out, name);
        write_scalar(&mut out, claim.json().get(json), max_bytes);
    }
    out.push('}');
    BadValue::Json(out.into())
}

/// Returns the terms of a node selector as JSON.
pub fn node_terms_json(terms: List<'_, NodeTerm<'_>>, max_bytes: usize) -> BadValue {
    let mut out = String::new();
    write_list(&mut out, max_bytes, terms.value(), |out, term| {
        let term = NodeTerm::of(term);
        out.push('{');
        for (name, requirements) in
            [("MatchExpressions", term.match_expressions()), ("MatchFields", term.match_fields())]
        {
            write_key(out, name);
            write_list(out, max_bytes, requirements.value(), |out, value| {
                write_requirement(out, value, max_bytes)
            });
        }
        out.push('}');
    });
    BadValue::Json(out.into())
}

/// Returns a list of strings as JSON.
pub fn strings_json(values: Strings<'_>, max_bytes: usize) -> BadValue {
    let mut out = String::new();
    write_list(&mut out, max_bytes, values.0, |out, item| {
        gofmt::json_string(out, gofmt::head(item.str(), max_bytes))
    });
    BadValue::Json(out.into())
}

/// Appends a node selector requirement.
fn write_requirement(out: &mut String, value: Value<'_>, max_bytes: usize) {
    let requirement = NodeRequirement::of(value);
    out.push('{');
    write_key(out, "Key");
    gofmt::json_string(out, gofmt::head(requirement.key(), max_bytes));
    write_key(out, "Operator");
    gofmt::json_string(out, gofmt::head(requirement.operator(), max_bytes));
    write_key(out, "Values");
    write_list(out, max_bytes, requirement.values().0, |out, item| {
        gofmt::json_string(out, gofmt::head(item.str(), max_bytes));
    });
    out.push('}');
}

/// Appends `"name":`, with a comma before it unless it is the first member.
fn write_key(out: &mut String, name: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    gofmt::json_string(out, name);
    out.push(':');
}

/// Appends a number, bool, null or string.
fn write_scalar(out: &mut String, value: Value<'_>, max_bytes: usize) {
    if let Some(number) = value.int() {
        out.push_str(&number.to_string());
    } else if value.bool().is_some() || value.is_null() {
        out.push_str(if value.is_null() { "null" } else { value.text() });
    } else {
        gofmt::json_string(out, gofmt::head(value.str(), max_bytes));
    }
}

/// Appends a list, whose items `item` writes; `null` if it is absent. The list may end anywhere past `max_bytes` bytes.
fn write_list(
    out: &mut String,
    max_bytes: usize,
    value: Value<'_>,
    mut item: impl FnMut(&mut String, Value<'_>),
) {
    if value.is_null() {
        return out.push_str("null");
    }
    out.push('[');
    for (index, element) in value.items().enumerate() {
        if out.len() > max_bytes {
            return;
        }
        if index > 0 {
            out.push(',');
        }
        item(out, element);
    }
    out.push(']');
}
