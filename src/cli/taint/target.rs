//! The arguments of `taint`: devices and taint.

/// Which devices; `None` is any.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Target {
    pub(super) driver: Option<String>,
    pub(super) pool: Option<String>,
    pub(super) device: Option<String>,
}

impl Target {
    /// No criterion at all.
    pub(super) fn is_everything(&self) -> bool {
        *self == Target::default()
    }

    /// The criteria that are set, by the name of their field.
    pub(super) fn criteria(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("driver", &self.driver), ("pool", &self.pool), ("device", &self.device)];
        all.into_iter().filter_map(|(field, value)| value.as_deref().map(|value| (field, value)))
    }
}

/// Reads `DRIVER[/POOL[/DEVICE]]`. The name of a pool may have slashes: with more than three parts, all between the
/// first and the last are the pool.
pub(super) fn parse(text: &str) -> Result<Target, String> {
    let parts: Vec<&str> = text.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err("a part is empty; use `*` to match any name, as in gpu.example.com/*/gpu-0".to_owned());
    }
    let given = |part: String| Some(part).filter(|part| part != "*");
    let (driver, pool, device) = match parts.as_slice() {
        [driver] => (*driver, None, None),
        [driver, pool] => (*driver, Some((*pool).to_owned()), None),
        [driver, pool @ .., device] => (*driver, Some(pool.join("/")), Some((*device).to_owned())),
        [] => return Err("expected DRIVER[/POOL[/DEVICE]]".to_owned()),
    };
    Ok(Target {
        driver: given(driver.to_owned()),
        pool: pool.and_then(given),
        device: device.and_then(given),
    })
}

/// A taint as people write it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TaintArg {
    pub(super) key: String,
    pub(super) value: Option<String>,
    pub(super) effect: Option<String>,
}

/// Reads `KEY[=VALUE][:EFFECT]`.
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
    let known = ["None", "NoSchedule", "NoExecute"];
    if let Some(effect) = effect.as_deref().filter(|effect| !known.contains(effect)) {
        return Err(format!("unknown effect `{effect}`; use one of {}", known.join(", ")));
    }
    Ok(TaintArg { key: key.to_owned(), value, effect })
}

#[cfg(test)]
mod tests {
    use super::{TaintArg, Target, parse, parse_taint};

    fn target(parts: [&str; 3]) -> Target {
        let [driver, pool, device] = parts.map(|part| Some(part.to_owned()).filter(|part| !part.is_empty()));
        Target { driver, pool, device }
    }

    #[test]
    fn devices() {
        for (text, expected) in [
            ("a", ["a", "", ""]),
            ("a/b", ["a", "b", ""]),
            ("a/b/c", ["a", "b", "c"]),
            ("a/b/c/d", ["a", "b/c", "d"]),
            ("a/*/c", ["a", "", "c"]),
            ("*/b", ["", "b", ""]),
            ("*", ["", "", ""]),
            ("*/*/*", ["", "", ""]),
        ] {
            assert_eq!(parse(text), Ok(target(expected)), "{text}");
        }
        assert!(parse("a//c").is_err());
        assert!(parse("").is_err());
    }

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
