//! No fix may let a toleration or a selector match more than an API server would read from the text before the fix.
//!
//! Exceptions: a fix of apiVersion or kind, and a fix of an error that API servers reject, which may match more in the
//! fields that it edits, because no server accepted them before. The second does not apply to an empty toleration or
//! selector, which matches as much as it can.
//!
//! Invariant: findings that some server accepts (documented limits, lints, policies) have no fix that matches more.

use super::verdict::{self, CheckedFinding};
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::view::Object;
use tollgate_document::doc::Value;
use tollgate_document::field::{FieldPath, PathAudience};
use tollgate_document::finding::Edit;
use tollgate_document::source::{documents, list};
use tollgate_engine::rules::RuleOrigin;
use tollgate_engine::rules::widening::{self, WidenedTolerationOrSelector};

/// True if the fixes in `applied`, which turn `before` into `after`, make a selector or toleration match more
/// than before, where that is not the correction of an error.
pub(super) fn widens_selector_or_toleration_match(
    before: &str,
    after: &str,
    applied: &[&CheckedFinding],
) -> bool {
    documents(before).zip(documents(after)).any(|pair| {
        let (Ok(before), Ok(after)) = pair else { return false };
        let applied = || applied.iter().filter(|finding| finding.document == after.index);
        let mut old = list::objects(before.doc.root());
        list::objects(after.doc.root()).any(|new| {
            let old = old.next();
            let was = old.as_ref().and_then(|old| decode_leniently(old.typed_value()));
            let Some(now) = decode_leniently(new.typed_value()) else { return false };
            widening::find_widened_tolerations_and_selectors(was, now).iter().any(|widened| {
                let at = new.path_in_document(widened.at.clone());
                !applied().any(|finding| permits_wider_match_at(finding, widened, &at))
            })
        })
    })
}

/// The object as an API server decodes it without strict field validation; `None` for an unknown kind or version.
fn decode_leniently(value: Value<'_>) -> Option<Object<'_>> {
    let (group, version) = value.get("apiVersion").str().rsplit_once('/')?;
    let kind = ApiKind::from_group_and_name(group, value.get("kind").str())?;
    Some(Object::from_value(kind, Version::parse(version)?, value))
}

/// True if the fix of `finding` is allowed to make a selector or toleration at `at` match more: it corrects what an API
/// server rejects and edits this field, or it edits `apiVersion` or `kind`.
fn permits_wider_match_at(
    finding: &CheckedFinding,
    widened: &WidenedTolerationOrSelector,
    at: &FieldPath,
) -> bool {
    // An object of an unknown kind or version was nothing before.
    if finding.edits.iter().any(edits_api_version_or_kind) {
        return true;
    }
    let is_refused =
        matches!(finding.origin, RuleOrigin::Upstream | RuleOrigin::Decoding | RuleOrigin::Strict);
    let place = at.print(PathAudience::User);
    let concerns = |edited: String| is_within(&edited, &place) || is_within(&place, &edited);
    let edited = |edit: &Edit| match edit {
        Edit::Set { at, .. }
        | Edit::WrapInObject { at, .. }
        | Edit::WrapInList { at }
        | Edit::UnwrapList { at } => Some(at.print(PathAudience::User)),
        _ => verdict::move_target_path(edit),
    };
    is_refused && !widened.is_empty && finding.edits.iter().filter_map(edited).any(concerns)
}

/// True if `path` equals `outer` or is below it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// True for an edit of `apiVersion` or `kind`, also of a list item.
fn edits_api_version_or_kind(edit: &Edit) -> bool {
    let is_type =
        |at: &FieldPath| ["/kind", "/apiVersion"].iter().any(|name| at.user_json_pointer().ends_with(name));
    matches!(edit, Edit::Set { at, .. } | Edit::Rename { at, .. } if is_type(at))
}

#[cfg(test)]
mod tests {
    use super::super::verdict::CheckedFinding;
    use super::widens_selector_or_toleration_match;
    use tollgate_document::field::Path;
    use tollgate_document::finding::{Edit, NewValue};
    use tollgate_engine::rules::{FindingLevel, RuleOrigin};

    const CLAIM: &str = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec:\n  devices:\n    requests:\n    - \
                         exactly:\n        tolerations:\n        - ";
    const RULE: &str =
        "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nspec:\n  deviceSelector: ";

    /// A finding of that origin whose fix writes the toleration or the selector.
    fn finding(origin: RuleOrigin, is_rule: bool) -> CheckedFinding {
        let spec = Path::ROOT.field("spec");
        let (devices, selector) = (spec.field("devices"), spec.field("deviceSelector"));
        let requests = devices.field("requests");
        let request = requests.index(0);
        let exactly = request.field("exactly");
        let tolerations = exactly.field("tolerations");
        let at = if is_rule { selector.owned() } else { tolerations.index(0).field("operator").owned() };
        CheckedFinding {
            object: 0,
            document: 0,
            rule: "x",
            origin,
            level: FindingLevel::Deny,
            place: String::new(),
            field: String::new(),
            fix: None,
            edits: vec![Edit::Set { at, value: NewValue::Str("Exists".into()) }],
        }
    }

    #[test]
    fn what_a_server_accepts_must_not_match_more() {
        let table = [
            // the text before, the text after, whether it matches more
            (CLAIM, "{effect: NoSchedule}", "{effect: NoSchedule, operator: Exists}", true),
            (CLAIM, "{key: a}", "{key: a, operator: Exists}", true),
            (CLAIM, "{key: a, operator: Exists}", "{operator: Exists}", true),
            (CLAIM, "{key: a, effect: NoSchedule}", "{key: a}", true),
            (CLAIM, "{key: a, value: b}", "{key: a, value: c}", true),
            (CLAIM, "{key: a, tolerationSeconds: 5}", "{key: a, tolerationSeconds: 6}", true),
            (CLAIM, "{key: a, tolerationSeconds: 5}", "{key: a}", true),
            (CLAIM, "{key: a}", "{key: a}\n        - {key: b}", true),
            (CLAIM, "{operator: Exists}", "{key: a, operator: Exists}", false),
            (CLAIM, "{key: a}", "{key: a, operator: Equal}", false),
            (CLAIM, "{key: a, tolerationSeconds: -1}", "{key: a, tolerationSeconds: 0}", false),
            (CLAIM, "{key: a}\n        - {key: b}", "{key: b}", false),
            (RULE, "{driver: a, pool: b}", "{driver: a}", true),
            (RULE, "{driver: a}", "{driver: b}", true),
            (RULE, "{driver: a}", "null", true),
            (RULE, "null", "{}", true),
            (RULE, "{}", "{driver: a}", false),
            (RULE, "{driver: a}", "{driver: a, pool: b}", false),
        ];
        for (object, before, after, expected) in table {
            let texts = [before, after].map(|text| format!("{object}{text}\n"));
            let is_rule = object == RULE;
            for origin in [RuleOrigin::Documented, RuleOrigin::Lint] {
                let fix = finding(origin, is_rule);
                assert_eq!(
                    widens_selector_or_toleration_match(&texts[0], &texts[1], &[&fix]),
                    expected,
                    "{before} -> {after}"
                );
            }
            // A server that refuses the text has nothing to compare with, unless nothing is left to match by.
            let fix = finding(RuleOrigin::Upstream, is_rule);
            let is_nothing = ["{}", "null"].contains(&after);
            assert_eq!(
                widens_selector_or_toleration_match(&texts[0], &texts[1], &[&fix]),
                is_nothing || after.contains("- {key: b}"),
                "{before} -> {after}"
            );
        }
    }

    #[test]
    fn a_correction_speaks_for_its_own_object_only() {
        let other = CheckedFinding { document: 1, ..finding(RuleOrigin::Upstream, false) };
        let before =
            format!("{CLAIM}{{key: a, operator: exist}}\n---\n{CLAIM}{{key: b, operator: exists}}\n");
        let after = before.replace("exists", "Exists");
        assert!(
            !widens_selector_or_toleration_match(&before, &after, &[&other]),
            "the object that it corrects"
        );
        assert!(
            widens_selector_or_toleration_match(&before, &before.replacen("{key: a, ", "{", 1), &[&other]),
            "another one"
        );
    }
}
