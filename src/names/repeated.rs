//! Names that repeat: the devices of a slice mostly have the same attributes, and the same taints, in the same order.
//!
//! Not a store of verdicts: it remembers only names that passed a check which looks at nothing but the name, so no
//! finding can be lost. It has a fixed size and allocates nothing.

/// As many as a device may have attributes; later ones are checked each time.
const POSITIONS: usize = 32;

/// The last name that passed at each position of a list.
pub(crate) struct PassedNames<'d>([Option<&'d str>; POSITIONS]);

impl<'d> PassedNames<'d> {
    pub(crate) fn new() -> PassedNames<'d> {
        PassedNames([None; POSITIONS])
    }

    /// Whether a name passes: `check` is called only if it is not the one that passed at this position last.
    /// It must be the same check each time.
    pub(crate) fn passes(
        &mut self,
        position: usize,
        name: &'d str,
        check: impl FnOnce(&str) -> bool,
    ) -> bool {
        let Some(last) = self.0.get_mut(position) else { return check(name) };
        if *last == Some(name) {
            return true;
        }
        let passes = check(name);
        if passes {
            *last = Some(name);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_name_at_the_same_position_is_not_checked_again() {
        let mut names = PassedNames::new();
        let mut checked = Vec::new();
        let mut ask = |position, name| {
            names.passes(position, name, |name| {
                checked.push((position, name.to_owned()));
                name.starts_with('a')
            })
        };
        assert!(ask(0, "a") && ask(0, "a") && ask(1, "a"));
        // One that fails is checked again, and the one before it is still known.
        assert!(!ask(0, "b") && !ask(0, "b") && ask(0, "a"));
        assert!(!ask(0, "") && !ask(2, ""));
        assert!(ask(POSITIONS, "a") && ask(POSITIONS, "a") && !ask(POSITIONS, "b"));
        let expected = [
            (0, "a"),
            (1, "a"),
            (0, "b"),
            (0, "b"),
            (0, ""),
            (2, ""),
            (POSITIONS, "a"),
            (POSITIONS, "a"),
            (POSITIONS, "b"),
        ];
        let checked: Vec<(usize, &str)> = checked.iter().map(|(at, name)| (*at, name.as_str())).collect();
        assert_eq!(checked, expected);
    }
}
