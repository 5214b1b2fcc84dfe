//! Tests of repeat copying.

mod differential;
