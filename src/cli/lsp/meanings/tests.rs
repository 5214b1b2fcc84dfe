//! The rows against the tables that documents are decoded by.

use std::collections::{BTreeMap, BTreeSet};

use super::{FIELD_MEANINGS, VALUE_MEANINGS, field_meaning};
use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::schema::{FieldType, StructSchema};

/// The structs and named types of the tables.
#[derive(Default)]
struct Types {
    visited: Vec<&'static StructSchema>,
    fields: BTreeMap<&'static str, BTreeSet<&'static str>>,
    named: BTreeSet<&'static str>,
}

impl Types {
    fn visit(&mut self, ty: &FieldType) {
        match ty {
            FieldType::Named(name) | FieldType::CoreNamed(name) => _ = self.named.insert(name),
            FieldType::List(item) => self.visit(item),
            FieldType::Map { value, .. } => self.visit(value),
            FieldType::Struct(ty) | FieldType::StringOr(ty) => self.visit_struct(ty),
            _ => {}
        }
    }

    fn visit_struct(&mut self, ty: &'static StructSchema) {
        if self.visited.iter().any(|known| std::ptr::eq(*known, ty)) {
            return;
        }
        self.visited.push(ty);
        self.fields.entry(ty.name).or_default().extend(ty.fields.iter().map(|field| field.json));
        for field in ty.fields {
            self.visit(&field.ty);
        }
    }
}

#[test]
fn rows_name_what_there_is_and_leave_out_nothing_about_taints_and_requests() {
    let mut types = Types::default();
    for kind in ApiKind::ALL {
        for version in Version::ALL {
            types.visit_struct(fields::root_struct(kind, version));
        }
    }
    let structs = &types.fields;
    for (owner, name, meaning) in FIELD_MEANINGS {
        let has = |fields: &BTreeSet<&str>| fields.contains(name);
        let is_known =
            if *owner == "*" { structs.values().any(has) } else { structs.get(owner).is_some_and(has) };
        assert!(is_known, "{owner}.{name}");
        assert!(meaning.ends_with('.') || meaning.ends_with(')'), "{owner}.{name}: {meaning}");
    }
    for (ty, word, _) in VALUE_MEANINGS {
        assert!(types.named.contains(ty), "{ty}: {word}");
    }
    for owner in [
        "DeviceTaint",
        "DeviceToleration",
        "SliceDeviceTaint",
        "DeviceTaintRuleSpec",
        "DeviceTaintSelector",
        "ResourceClaimSpec",
        "DeviceClaim",
        "DeviceRequest",
        "ExactDeviceRequest",
        "DeviceSubRequest",
        "DeviceConstraint",
        "DeviceClassSpec",
        "ResourceSliceSpec",
        "ResourcePool",
        "Device",
        "BasicDevice",
    ] {
        for name in &structs[owner] {
            // Fields of the ResourceClaimSpec of classic DRA have the same owner.
            let is_classic = owner == "ResourceClaimSpec" && *name != "devices";
            assert!(is_classic || !field_meaning(owner, name).is_empty(), "{owner}.{name} has no meaning");
        }
    }
}
