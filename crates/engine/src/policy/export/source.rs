//! A policy as the export reads it, and the tests whether it applies to a request and binds the user.

use std::collections::BTreeSet;

use super::super::Policy;
use super::KINDS;
use super::omission::{FieldTreatment, Omission, OmissionReason, field_treatment};
use super::text::{BoolExpr, cel_string_literal, matches_any_glob, matches_glob};
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::{self, Timestamp};

/// The label of every namespace that has its name as value.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// CEL expression for NAMESPACE/NAME of a service account, whose user name is `system:serviceaccount:NAMESPACE:NAME`.
const SERVICE_ACCOUNT_EXPRESSION: &str = "(request.userInfo.username.substring(22, request.userInfo.username.indexOf(':', 22)) + '/' \
     + request.userInfo.username.substring(request.userInfo.username.indexOf(':', 22) + 1))";

/// A policy while it is exported: its document, and the identifier for the names of its variables.
#[derive(Debug)]
pub(super) struct PolicyToExport<'s> {
    pub(super) policy: &'s Policy,
    pub(super) spec: Value<'s>,
    /// Identifier of the policy in variable names, unique in the set.
    pub(super) id: String,
    /// True if its allow entries count but it does not deny anything before its `enforceFrom`.
    pub(super) only_grants: bool,
}

impl<'s> PolicyToExport<'s> {
    /// Reads a policy, and lists the fields that the export leaves out. `earlier` are the policies that were read before,
    /// and `now` tells whether `enforceFrom` has passed.
    pub(super) fn read(
        policy: &'s Policy,
        document: Value<'s>,
        earlier: &[PolicyToExport<'_>],
        now: Timestamp,
        omissions: &mut BTreeSet<Omission>,
    ) -> PolicyToExport<'s> {
        let spec = document.get("spec");
        let mut source =
            PolicyToExport { policy, spec, id: variable_suffix(&policy.name, earlier), only_grants: false };
        for (field, _) in spec.members() {
            if let FieldTreatment::LeftOut(reason, message) =
                field_treatment(policy.spec.kind(), field.text())
            {
                omissions.insert(source.omission(format!("spec.{}", field.text()), reason, message));
            }
        }
        if let Some(from) = policy.future_deny_time(Some(now)) {
            source.only_grants = true;
            let message = format!(
                "the restrictions of the policy are left out, because expressions cannot read the time; export the policies \
                 again on {}",
                gotime::rfc3339(from)
            );
            omissions.insert(source.omission("spec.enforceFrom", OmissionReason::Time, message));
        }
        let others = spec.get("match").get("resources").items().map(Value::str);
        for kind in others.filter(|name| !KINDS.iter().any(|kind| kind.name() == *name)) {
            let message = format!("left out for {kind}: the export does not contain this kind");
            omissions.insert(source.omission("spec.match.resources", OmissionReason::Kind, message));
        }
        source
    }

    pub(super) fn omission(
        &self,
        field: impl Into<String>,
        reason: OmissionReason,
        message: impl Into<String>,
    ) -> Omission {
        Omission {
            policy: self.policy.title(),
            source: self.policy.source.to_string(),
            field: field.into(),
            reason,
            message: message.into(),
        }
    }

    /// Returns the message for a violation of this policy: what is wrong, the name of the policy, its contact
    /// and its docs.
    pub(super) fn violation_message(&self, what: &str) -> String {
        let policy = self.policy;
        let help = [("contact", &policy.contact), ("docs", &policy.docs)];
        let help =
            help.into_iter().filter_map(|(name, text)| Some(format!("; {name}: {}", text.as_deref()?)));
        one_line(&format!("{what} (policy {}{})", policy.name, help.collect::<String>()))
    }

    /// Returns the test whether `spec.match` includes the operation and namespace of a request for objects of that
    /// kind. Drivers are tested by [`Self::matches_driver`].
    pub(super) fn matches_scope(&self, kind: ApiKind) -> BoolExpr {
        let scope = self.spec.get("match");
        let names = texts(scope.get("operations"));
        let operations = match (scope.get("operations").exists(), names.contains(&"*")) {
            (false, _) | (true, true) => BoolExpr::Always,
            (true, false) if names.contains(&"CREATE") && names.contains(&"UPDATE") => BoolExpr::Always,
            (true, false) => BoolExpr::is_in("request.operation", &names),
        };
        if !kind.is_namespaced() {
            return operations;
        }
        let in_list = |field: &str| matches_any_glob(texts(scope.get(field)), "request.namespace");
        let included =
            if scope.get("namespaces").exists() { in_list("namespaces") } else { BoolExpr::Always };
        let excluded = in_list("excludeNamespaces");
        BoolExpr::all([operations, included, excluded.not(), self.matches_namespace_selector()])
    }

    /// Returns the test whether the labels of the namespace match `namespaceSelector`.
    fn matches_namespace_selector(&self) -> BoolExpr {
        let selector = self.spec.get("match").get("namespaceSelector");
        let labels = selector.get("matchLabels").members();
        let labels = labels.map(|(key, value)| namespace_meets_requirement(key.text(), "In", &[value.str()]));
        let expressions = selector.get("matchExpressions").items().map(|item| {
            let values = texts(item.get("values"));
            namespace_meets_requirement(item.get("key").str(), item.get("operator").str(), &values)
        });
        BoolExpr::all(labels.chain(expressions))
    }

    /// Returns the test whether the policy exempts the user.
    pub(super) fn exempts_user(&self) -> BoolExpr {
        let exempt = self.spec.get("exempt");
        let users = matches_any_glob(texts(exempt.get("users")), "request.userInfo.username");
        let groups = match matches_any_glob(texts(exempt.get("groups")), "g") {
            BoolExpr::Never => BoolExpr::Never,
            one => BoolExpr::from_call("has(request.userInfo.groups)")
                .and(BoolExpr::from_call(format!("request.userInfo.groups.exists(g, {})", one.text()))),
        };
        let accounts = texts(exempt.get("serviceAccounts")).into_iter();
        let accounts =
            BoolExpr::any(accounts.map(|pattern| matches_glob(pattern, SERVICE_ACCOUNT_EXPRESSION)));
        let accounts =
            BoolExpr::from_call("request.userInfo.username.matches('^system:serviceaccount:[^:]*:')")
                .and(accounts);
        BoolExpr::any([users, groups, accounts])
    }

    /// Returns the test whether `spec.match.drivers` includes a driver. `driver` is an expression for its name; if that
    /// can be empty, an empty name counts as every driver.
    pub(super) fn matches_driver(&self, driver: &str, can_be_empty: bool) -> BoolExpr {
        let drivers = self.spec.get("match").get("drivers");
        if !drivers.exists() {
            return BoolExpr::Always;
        }
        let empty = if can_be_empty { BoolExpr::equals_literal(driver, "") } else { BoolExpr::Never };
        empty.or(matches_any_glob(drivers.items().map(Value::str), driver))
    }
}

/// Returns the items of a list of strings.
fn texts(list: Value<'_>) -> Vec<&str> {
    list.items().map(Value::str).collect()
}

/// Returns the test whether the labels of the request's namespace meet a requirement of a label selector.
fn namespace_meets_requirement(key: &str, operator: &str, values: &[&str]) -> BoolExpr {
    let labels = "variables.namespaceLabels";
    let key_text = cel_string_literal(key);
    let (exists, listed) = if key == NAMESPACE_NAME_LABEL {
        (BoolExpr::Always, BoolExpr::is_in("request.namespace", values))
    } else {
        let exists = BoolExpr::from_comparison(format!("{key_text} in {labels}"));
        let listed = BoolExpr::is_in(&format!("{labels}[{key_text}]"), values);
        (exists, listed)
    };
    match operator {
        "In" => exists.and(listed),
        "NotIn" => exists.and(listed).not(),
        "Exists" => exists,
        _ => exists.not(),
    }
}

/// Returns a suffix for the names of a policy's variables, made from its name, that no other policy has.
fn variable_suffix(name: &str, others: &[PolicyToExport<'_>]) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
    let base: String = name.chars().take(40).map(letter).collect();
    let is_taken = |id: &String| others.iter().any(|other| other.id == *id);
    let numbered = (2..=others.len() + 1).map(|number| format!("{base}_{number}"));
    std::iter::once(base.clone()).chain(numbered).find(|id| !is_taken(id)).unwrap_or(base)
}

/// Returns a text without line breaks and other control characters, which the API server does not accept in a message.
pub(super) fn one_line(text: &str) -> String {
    text.split(char::is_control).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
