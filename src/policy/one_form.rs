//! One form of objects for expressions: v1alpha3 and v1beta1 write claims and slices differently from later versions.
//!
//! A user chooses the version of a request, and must not thereby choose what a policy sees. Requests get `exactly`, and
//! devices lose `basic`, as when the API server converts them. Everything else, `apiVersion` too, stays as it was sent.

use crate::api::view::Object;
use crate::doc::{Value, ValueKind};
use crate::gofmt::json_string;
use crate::profile::ApiKind;

/// The object in the form of v1, as JSON; `None` if it has this form.
pub(super) fn of(object: Object<'_>) -> Option<String> {
    let (path, convert): (&[&str], Convert) = match object.kind() {
        _ if !object.version.is_flat() => return None,
        ApiKind::ResourceClaim => (&["spec", "devices", "requests"], request),
        ApiKind::ResourceClaimTemplate => (&["spec", "spec", "devices", "requests"], request),
        ApiKind::ResourceSlice => (&["spec", "devices"], device),
        _ => return None,
    };
    let mut out = String::new();
    convert_list(object.value(), path, convert, &mut out);
    Some(out)
}

/// Writes an item of a list in the form of v1.
type Convert = fn(Value<'_>, &mut String);

/// Writes a value with the items of the list at that path converted.
fn convert_list(value: Value<'_>, path: &[&str], convert: Convert, out: &mut String) {
    match (path.split_first(), value.kind()) {
        (None, ValueKind::Array) => {
            out.push('[');
            for (index, item) in value.items().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                convert(item, out);
            }
            out.push(']');
        }
        (Some((first, rest)), ValueKind::Object) => {
            write_object(out, |members| {
                for (name, member) in value.members() {
                    members.start(name.text());
                    if name.text() == *first {
                        convert_list(member, rest, convert, members.out);
                    } else {
                        members.out.push_str(&member.to_json());
                    }
                }
            });
        }
        _ => out.push_str(&value.to_json()),
    }
}

/// `{name, deviceClassName, …}` becomes `{name, exactly: {deviceClassName, …}}`.
fn request(value: Value<'_>, out: &mut String) {
    let stays = |name: &str| matches!(name, "name" | "firstAvailable");
    // These versions have no `exactly`: the API server drops it.
    let moves = |name: &str| !stays(name) && name != "exactly";
    write_object(out, |members| {
        for (name, member) in value.members().filter(|(name, _)| stays(name.text())) {
            members.add(name.text(), member);
        }
        if value.members().any(|(name, _)| moves(name.text())) {
            members.start("exactly");
            write_object(members.out, |exactly| {
                for (name, member) in value.members().filter(|(name, _)| moves(name.text())) {
                    exactly.add(name.text(), member);
                }
            });
        }
    });
}

/// `{name, basic: {taints, …}}` becomes `{name, taints, …}`.
fn device(value: Value<'_>, out: &mut String) {
    write_object(out, |members| {
        for (name, member) in value.members() {
            match name.text() {
                "name" => members.add("name", member),
                // These versions have nothing else beside the name: the API server drops it.
                "basic" => member.members().for_each(|(name, member)| members.add(name.text(), member)),
                _ => {}
            }
        }
    });
}

/// The members of an object that is being written.
struct Members<'o> {
    out: &'o mut String,
    is_empty: bool,
}

impl Members<'_> {
    fn start(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
        json_string(self.out, name);
        self.out.push(':');
    }

    fn add(&mut self, name: &str, value: Value<'_>) {
        self.start(name);
        self.out.push_str(&value.to_json());
    }
}

fn write_object(out: &mut String, write: impl FnOnce(&mut Members<'_>)) {
    out.push('{');
    write(&mut Members { out, is_empty: true });
    out.push('}');
}
