//! The toleration of `policy check`, as people write it: like a taint of kubectl, with seconds.

use std::num::IntErrorKind;

use crate::report::record::{Json, record};
use tollgate_engine::tolerance::coverage::{EffectSet, ToleratedTaints};
use tollgate_formats::names::{self, KeyErrorWord, LengthUnitWord};

/// A toleration in the form `KEY[=VALUE][:EFFECT[:SECONDS]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TolerationArg {
    key: Option<String>,
    value: Option<String>,
    effect: Option<&'static str>,
    seconds: Option<i64>,
}

const EFFECTS: [&str; 3] = ["None", "NoSchedule", "NoExecute"];
const SYNTAX: &str = "KEY[=VALUE][:EFFECT[:SECONDS]]";

impl TolerationArg {
    /// Parses `KEY[=VALUE][:EFFECT[:SECONDS]]`.
    pub(super) fn parse(text: &str) -> Result<TolerationArg, String> {
        let mut parts = text.split(':');
        let taint = parts.next().unwrap_or_default();
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (taint, None),
        };
        if key.is_empty() {
            return Err(format!("the key is empty; expected {SYNTAX}, with `*` for every key"));
        }
        let (effect, seconds) = (parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(format!("there are too many `:`; expected {SYNTAX}"));
        }
        let effect = match effect {
            Some("") if seconds.is_none_or(str::is_empty) => {
                return Err(format!("nothing follows `:`; expected {SYNTAX}"));
            }
            None | Some("") => None,
            Some(name) => Some(
                EFFECTS
                    .into_iter()
                    .find(|effect| *effect == name)
                    .ok_or_else(|| format!("unknown effect `{name}`; use one of {}", EFFECTS.join(", ")))?,
            ),
        };
        let seconds = match seconds {
            None => None,
            Some("") => return Err(format!("nothing follows the last `:`; expected {SYNTAX}")),
            Some(_) if effect != Some("NoExecute") => {
                return Err("seconds apply only to the effect NoExecute".to_owned());
            }
            Some(text) => {
                let number = text.strip_suffix('s').unwrap_or(text).parse::<i64>();
                Some(number.map_err(|error| match error.kind() {
                    IntErrorKind::PosOverflow => {
                        format!("`{text}` is too large; expected at most {} seconds", i64::MAX)
                    }
                    _ => format!("`{text}` is not a number of seconds; expected {SYNTAX}"),
                })?)
            }
        };
        if key == "*" && value.is_some() {
            return Err("a toleration of every key cannot have a value".to_owned());
        }
        let key = Some(key.to_owned()).filter(|key| key != "*");
        check_key_and_value(key.as_deref(), value.as_deref())?;
        Ok(TolerationArg { key, value, effect, seconds })
    }

    /// Returns the toleration as JSON, as in a claim.
    pub(super) fn to_json(&self) -> Json {
        let (has_value, has_seconds) = (self.value.is_some(), self.seconds.is_some());
        record! {
            "key" if given: self.key,
            "operator": if has_value { "Equal" } else { "Exists" },
            "value" if has_value: self.value,
            "effect" if given: self.effect,
            "tolerationSeconds" if has_seconds: self.seconds,
        }
    }

    /// Returns the set of taints that the toleration matches.
    pub(super) fn tolerated_taints(&self) -> ToleratedTaints<'_> {
        ToleratedTaints {
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            effects: self.effect.map_or(EffectSet::KNOWN, EffectSet::from_name),
            seconds: self.seconds.map(|seconds| seconds.max(0)),
        }
    }
}

/// Checks that an API server accepts the key and the value of a toleration.
fn check_key_and_value(key: Option<&str>, value: Option<&str>) -> Result<(), String> {
    let mut problems = Vec::new();
    if let Some(key) = key {
        names::check_label_key(key, LengthUnitWord::Bytes, KeyErrorWord::LabelKey, &mut |problem| {
            problems.push(format!("{key:?} is not a taint key: {problem}"));
        });
    }
    if let Some(value) = value {
        names::check_label_value(value, LengthUnitWord::Bytes, &mut |problem| {
            problems.push(format!("{value:?} is not a taint value: {problem}"));
        });
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::TolerationArg;

    #[test]
    fn tolerations_are_written_like_taints() {
        let table = [
            ("a/b", r#"{"key":"a/b","operator":"Exists"}"#),
            ("a/b=c", r#"{"key":"a/b","operator":"Equal","value":"c"}"#),
            ("a/b=:NoSchedule", r#"{"key":"a/b","operator":"Equal","value":"","effect":"NoSchedule"}"#),
            (
                "a/b=c:NoExecute:600",
                r#"{"key":"a/b","operator":"Equal","value":"c","effect":"NoExecute","tolerationSeconds":600}"#,
            ),
            (
                "a/b:NoExecute:60s",
                r#"{"key":"a/b","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}"#,
            ),
            ("*", r#"{"operator":"Exists"}"#),
            ("*:None", r#"{"operator":"Exists","effect":"None"}"#),
        ];
        for (text, expected) in table {
            assert_eq!(TolerationArg::parse(text).unwrap().to_json().get(), expected, "{text}");
        }
        for (wrong, why) in [
            ("", "the key is empty"),
            ("=v", "the key is empty"),
            (":::", "the key is empty"),
            ("a:::", "there are too many `:`"),
            ("a:", "nothing follows `:`"),
            ("a::", "nothing follows `:`"),
            ("a:NoExecute:", "nothing follows the last `:`"),
            ("a::5", "seconds apply only to the effect NoExecute"),
            ("a:noexecute", "unknown effect `noexecute`"),
            ("a:NoSchedule:5", "seconds apply only to the effect NoExecute"),
            ("a:NoExecute:x", "`x` is not a number of seconds"),
            ("a:NoExecute:99999999999999999999s", "`99999999999999999999s` is too large"),
            ("a:NoExecute:5:5", "there are too many `:`"),
            ("*=v", "a toleration of every key"),
            (" ", "\" \" is not a taint key: name part must consist of"),
            ("a/b/c", "\"a/b/c\" is not a taint key: a valid label key must consist of"),
            ("gpu.example.com/*", "\"gpu.example.com/*\" is not a taint key: name part must consist of"),
            ("a=b c:NoSchedule", "\"b c\" is not a taint value: a valid label must be"),
            ("a=b=c", "\"b=c\" is not a taint value: a valid label must be"),
            ("a=*", "\"*\" is not a taint value: a valid label must be"),
        ] {
            let message = TolerationArg::parse(wrong).unwrap_err();
            assert!(message.starts_with(why), "{wrong}: {message}");
        }
    }
}
