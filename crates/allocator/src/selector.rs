//! The interface to an evaluator of CEL selectors.
//!
//! The allocator does not evaluate CEL itself. It evaluates each selector of a class or request at most once per
//! device, request and allocation. An evaluator that serves many allocations can cache its results by expression and
//! [`Candidate::index`].

use tollgate_api::view::DeviceBody;

/// A device against which a selector is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'d> {
    pub driver: &'d str,
    pub pool: &'d str,
    pub name: &'d str,
    /// The device as published in its ResourceSlice.
    pub body: DeviceBody<'d>,
    /// Index of the device in the inventory, which is the same for every allocation.
    pub index: usize,
}

/// Formats the device as `driver/pool/device`.
impl std::fmt::Display for Candidate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.name)
    }
}

/// Why a selector could not be evaluated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectorError {
    /// The expression does not compile.
    Compile(String),
    /// The evaluation failed for this device.
    Runtime(String),
    /// The result depends on the named feature, which the evaluator does not support.
    Unsupported(&'static str),
}

/// Evaluates the CEL selectors of claims and classes; implemented outside this crate.
pub trait SelectorEvaluator {
    /// Returns true if the expression selects the device.
    fn matches(&self, expression: &str, device: Candidate<'_>) -> Result<bool, SelectorError>;
}

/// A function can serve as an evaluator. Its errors count as runtime errors.
impl<F> SelectorEvaluator for F
where
    F: Fn(&str, Candidate<'_>) -> Result<bool, String>,
{
    fn matches(&self, expression: &str, device: Candidate<'_>) -> Result<bool, SelectorError> {
        self(expression, device).map_err(SelectorError::Runtime)
    }
}
