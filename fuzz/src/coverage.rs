//! Which taints a toleration covers, compared with every taint of a small universe, one by one. The cases are those of
//! `tests/engine/coverage`, made from the input instead of a seed.

#[path = "../../tests/engine/coverage/cases.rs"]
mod cases;

/// The input rolls the dice.
pub(crate) fn run(data: &[u8]) {
    let mut dice = cases::Dice(0, data);
    cases::compare_coverage(&mut dice, &mut cases::Tally::default());
    cases::compare_containment(&mut dice);
}
