//! The taint of `taint` and `untaint`, as people write it.

/// The effects of a taint.
pub(super) const EFFECTS: [&str; 3] = ["None", "NoSchedule", "NoExecute"];

/// A taint in the form `KEY[=VALUE][:EFFECT]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TaintArg {
    pub(super) key: String,
    pub(super) value: Option<String>,
    pub(super) effect: Option<String>,
}

/// Parses `KEY[=VALUE][:EFFECT]`.
pub(super) fn parse_taint(text: &str) -> Result<TaintArg, String> {
    let (rest, effect) = match text.rsplit_once(':') {
        Some((rest, effect)) => (rest, Some(effect.to_owned())),
        None => (text, None),
    };
    let (key, value) = match rest.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned()).filter(|value| !value.is_empty())),
        None => (rest, None),
    };
    if key.is_empty() {
        return Err("the key is empty; expected KEY[=VALUE][:EFFECT]".to_owned());
    }
    if let Some(effect) = effect.as_deref().filter(|effect| !EFFECTS.contains(effect)) {
        return Err(format!("unknown effect `{effect}`; use one of {}", EFFECTS.join(", ")));
    }
    Ok(TaintArg { key: key.to_owned(), value, effect })
}

#[cfg(test)]
mod tests {
    use super::{TaintArg, parse_taint};

    #[test]
    fn taints() {
        let of = |key: &str, value: Option<&str>, effect: Option<&str>| TaintArg {
            key: key.to_owned(),
            value: value.map(ToOwned::to_owned),
            effect: effect.map(ToOwned::to_owned),
        };
        assert_eq!(parse_taint("k"), Ok(of("k", None, None)));
        assert_eq!(parse_taint("k=v"), Ok(of("k", Some("v"), None)));
        assert_eq!(parse_taint("a/k=v:NoExecute"), Ok(of("a/k", Some("v"), Some("NoExecute"))));
        assert_eq!(parse_taint("k:None"), Ok(of("k", None, Some("None"))));
        assert!(parse_taint("k:noexecute").is_err());
        assert!(parse_taint("=v").is_err());
    }
}
