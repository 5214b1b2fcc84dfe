//! Why a drain ends before its end.

/// Why a drain does not go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Halt {
    /// It did not begin, or what it had begun was undone: no pod was evicted, and no rule is left.
    Refused(String),
    /// It stopped. The rules stay, so that nothing gets the devices that are free already.
    Stopped(String),
}

impl Halt {
    /// A bug.
    pub(super) fn internal(error: impl std::fmt::Display) -> Halt {
        Halt::Stopped(format!("internal error: {error}"))
    }
}
