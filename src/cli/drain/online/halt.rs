//! Why a drain ends before its end.

/// The reason why a drain ends before all its steps are done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Halt {
    /// It did not begin, or what it had begun was undone: no pod was evicted, and no rule is left.
    Refused(String),
    /// It stopped. The rules stay, so that nothing gets the devices that are free already.
    Stopped(String),
}

impl Halt {
    /// Stops the drain because of a bug in this program.
    pub(super) fn internal(error: impl std::fmt::Display) -> Halt {
        Halt::Stopped(format!("internal error: {error}"))
    }
}
