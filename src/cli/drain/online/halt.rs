//! Why a drain ends before its end.

/// The reason why a drain ends before all its steps are done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StopReason {
    /// The drain did not start, or its rules were deleted again: no pod was evicted, and no rule is left.
    Refused(String),
    /// The drain stopped halfway. Its rules stay, so that no new pod gets devices that are free already.
    Stopped(String),
}

impl StopReason {
    /// Stops the drain because of a bug in this program.
    pub(super) fn internal(error: impl std::fmt::Display) -> StopReason {
        StopReason::Stopped(format!("internal error: {error}"))
    }
}
