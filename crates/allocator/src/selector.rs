//! What the allocator asks of an evaluator of CEL selectors.
//!
//! The allocator does not know CEL. It asks for each selector of a class or request about each device that the search
//! reaches, at most once per request, device and allocation; an evaluator that serves many allocations can remember its
//! answers by expression and [`Candidate::index`].

use tollgate_api::view::DeviceBody;

/// A device that a selector is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'d> {
    pub driver: &'d str,
    pub pool: &'d str,
    pub name: &'d str,
    /// The device as its slice publishes it.
    pub body: DeviceBody<'d>,
    /// The device's number in the inventory, the same for every allocation.
    pub index: usize,
}

/// `driver/pool/device`
impl std::fmt::Display for Candidate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.name)
    }
}

/// Why a selector has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectorError {
    /// The expression does not compile.
    Compile(String),
    /// Its evaluation for this device failed.
    Runtime(String),
    /// The evaluator does not know what the scheduler's evaluation gives, because it depends on this.
    Unsupported(&'static str),
}

/// An evaluator of selectors.
pub trait Selectors {
    /// Whether the expression selects the device.
    fn matches(&self, expression: &str, device: Candidate<'_>) -> Result<bool, SelectorError>;
}

/// A function whose errors are those of evaluation.
impl<F> Selectors for F
where
    F: Fn(&str, Candidate<'_>) -> Result<bool, String>,
{
    fn matches(&self, expression: &str, device: Candidate<'_>) -> Result<bool, SelectorError> {
        self(expression, device).map_err(SelectorError::Runtime)
    }
}
