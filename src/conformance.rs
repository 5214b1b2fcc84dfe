//! How far Tollgate's verdict agrees with a running API server: the shipped cases, the server's answer to each, and the
//! comparison. Pure; `cluster::dry_run` sends the cases, `cli::conformance` prints the result.
//!
//! What is compared is the server's answer to a dry-run create against Tollgate's verdict for that server's release,
//! feature gates and namespace. Recorded answers play no part.
//!
//! Invariant: a case counts as agreement only if the server gave a verdict of its own: not if a request failed, and not
//! if another webhook or a policy refused the object.

mod agreement;
mod answer;
mod compare;
mod corpus;

pub use agreement::{Agreement, AgreementCount, AgreementRow};
pub use answer::{Answer, Refusal};
pub use compare::{AgreeingParts, CaseChecker, Comparison, TollgateVerdict};
pub use corpus::dra_kind_and_version_in_a_release;
pub use corpus::{Case, Corpus, CorpusSet};
