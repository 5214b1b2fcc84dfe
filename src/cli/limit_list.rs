//! The value of `--max`: names of totals with the largest number that is allowed for each, such as
//! `pods=10,namespaces=2`.

use super::state::join_with_or;

/// The limits of `--max`, such as `pods=10,namespaces=2`: name and maximum.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct LimitList(Vec<(&'static str, usize)>);

impl LimitList {
    /// Parses the value of `--max`. Only the given names are allowed.
    pub(super) fn parse(text: &str, names: &[&'static str]) -> Result<LimitList, String> {
        let mut limits = LimitList::default();
        for part in text.split(',') {
            let (written, number) =
                part.split_once('=').ok_or_else(|| format!("expected NAME=NUMBER, got `{part}`"))?;
            let (written, number) = (written.trim(), number.trim());
            let Some(name) = names.iter().find(|name| **name == written) else {
                return Err(format!("unknown limit `{written}`; use {}", join_with_or(names)));
            };
            let number = number
                .parse()
                .map_err(|error| format!("`{number}` is not a valid number of {written}: {error}"))?;
            // Of two limits only one would apply.
            if limits.get(name).is_some() {
                return Err(format!("the limit for {written} is set twice"));
            }
            limits.0.push((name, number));
        }
        Ok(limits)
    }

    /// Returns the limit with that name; `None` if `--max` does not set it.
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::LimitList;

    #[test]
    fn limits_are_read_or_refused() {
        let parse = |text| LimitList::parse(text, &["devices", "pods", "namespaces"]);
        let limits = parse("pods=10, namespaces=2").expect("limits");
        assert_eq!(["pods", "namespaces", "devices"].map(|name| limits.get(name)), [Some(10), Some(2), None]);
        for (text, expected) in [
            ("pods=1,pods=20", "the limit for pods is set twice"),
            ("pod=1", "unknown limit `pod`; use devices, pods or namespaces"),
            ("pods", "expected NAME=NUMBER, got `pods`"),
            ("", "expected NAME=NUMBER, got ``"),
        ] {
            assert_eq!(parse(text).err().as_deref(), Some(expected), "{text}");
        }
        assert!(parse("pods=-1").is_err() && parse("pods=1e3").is_err());
    }
}
