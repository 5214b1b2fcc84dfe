//! Tests of the whole command line: the command lines that people copy, and the generated parts of the reference pages.

mod examples;
#[cfg(feature = "cluster")]
mod fuzzing;
#[cfg(feature = "cluster")]
mod reference;
