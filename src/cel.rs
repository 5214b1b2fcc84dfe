//! CEL device selectors (being written).

/// What differs between releases.
#[derive(Clone, Copy, Debug)]
pub struct CelEnv {}
/// 1.33
pub const V1_33: CelEnv = CelEnv {};
/// 1.34
pub const V1_34: CelEnv = CelEnv {};
/// 1.35
pub const V1_35: CelEnv = CelEnv {};
/// 1.36
pub const V1_36: CelEnv = CelEnv {};
/// 1.37
pub const V1_37: CelEnv = CelEnv {};
