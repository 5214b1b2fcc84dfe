//! ParameterPolicies of two sets compared: representative parameters, and what policies say about them.

use std::collections::BTreeSet;

use super::{ParameterPolicy, type_name};
use crate::policy::diff::{CanonicalSchemas, ComparedAspect, SampleContext, sample_drivers};
use crate::policy::kind::{PolicySpec, policies_of_kind_not_exempting_user};
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::FindingLevel;

/// apiVersion and kind of sample parameters whose type no policy names.
const UNLISTED_TYPE: (&str, &str) = ("other.invalid/v1", "AnyOther");

/// Sample parameters that represent all parameters that the policies treat equally. The driver is empty if it is
/// unknown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::policy) struct SampleParameters {
    driver: String,
    api_version: String,
    kind: String,
    /// The canonical text of the schema that they violate; `None` if they violate none.
    violated: Option<String>,
}

/// What the ParameterPolicies that bind the user say about parameters, to be compared with those of the other set.
pub(in crate::policy) struct ParameterPoliciesToCompare<'s> {
    policies: Vec<(&'s Policy, &'s ParameterPolicy)>,
    schemas: CanonicalSchemas<'s>,
}

impl<'s> ComparedAspect<'s> for ParameterPoliciesToCompare<'s> {
    type Sample = SampleParameters;

    fn of(policies: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> ParameterPoliciesToCompare<'s> {
        ParameterPoliciesToCompare {
            policies: policies_of_kind_not_exempting_user(policies, PolicySpec::parameters),
            schemas: CanonicalSchemas::from_policies(policies),
        }
    }

    fn samples(&self, circumstances: &SampleContext<'_>) -> Vec<SampleParameters> {
        let known = self.policies.iter().flat_map(|(_, spec)| &spec.schemas);
        let known = known.map(|known| (&*known.api_version, &*known.kind));
        let types: BTreeSet<(&str, &str)> = known.chain([UNLISTED_TYPE]).collect();
        let mut samples = Vec::new();
        if self.policies.is_empty() {
            return samples;
        }
        for driver in sample_drivers(self.policies.iter().map(|(policy, _)| *policy), circumstances) {
            for (api_version, kind) in &types {
                let violated = self.schemas.all().map(|schema| Some(schema.to_owned())).chain([None]);
                samples.extend(violated.map(|violated| SampleParameters {
                    driver: driver.clone(),
                    api_version: (*api_version).to_owned(),
                    kind: (*kind).to_owned(),
                    violated,
                }));
            }
        }
        samples
    }

    fn level(&self, sample: &SampleParameters, circumstances: &SampleContext<'_>) -> Option<FindingLevel> {
        let of_driver = self
            .policies
            .iter()
            .filter(|(policy, _)| policy.scope.matches_named_or_unknown_driver(&sample.driver));
        let levels = of_driver.filter_map(|(policy, spec)| {
            let is_known = |known: &super::ParameterSchema| {
                *known.api_version == *sample.api_version && *known.kind == *sample.kind
            };
            let is_ours = !sample.driver.is_empty() || !policy.scope.is_limited_to_certain_drivers();
            let action = policy.level_at(Some(circumstances.now));
            match (spec.schemas.iter().position(is_known), &sample.violated) {
                (Some(index), Some(violated)) => {
                    (self.schemas.get(policy, index) == Some(violated)).then_some(action)
                }
                (None, None) => spec.unknown.filter(|_| is_ours).map(|level| level.min(action)),
                _ => None,
            }
        });
        levels.max()
    }

    fn describe(sample: &SampleParameters) -> String {
        let name = match (sample.api_version.as_str(), sample.kind.as_str()) {
            UNLISTED_TYPE => "of any other type".to_owned(),
            ("", "") => "without apiVersion and kind".to_owned(),
            (version, kind) => format!("of type {:?}", type_name(version, kind)),
        };
        let driver = match sample.driver.as_str() {
            "" => String::new(),
            driver => format!(" for driver {driver}"),
        };
        let violates = if sample.violated.is_some() { " that violate a schema" } else { "" };
        format!("parameters {name}{violates}{driver}")
    }

    fn subject_if_incomparable(sample: &SampleParameters) -> Option<String> {
        let SampleParameters { driver, api_version, kind, violated } = sample;
        violated.as_ref().map(|_| format!("{driver} {api_version} {kind}"))
    }
}
