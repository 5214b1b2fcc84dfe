//! `--max pods=10,namespaces=2`: limits on the impact.

use std::collections::BTreeSet;

use super::Assessment;

/// The size of an impact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) devices: usize,
    pub(super) pods: usize,
    pub(super) namespaces: usize,
    /// The numbers are upper bounds.
    pub(super) is_upper_bound: bool,
    /// A device that several rules select counts for each of them.
    pub(super) counts_devices_twice: bool,
}

impl Extent {
    /// The impact of one rule or slice.
    pub(super) fn of(assessment: &Assessment<'_>) -> Extent {
        // Without a selector the scheduler applies a rule to all devices, unlike the eviction controller.
        let devices = assessment.query.tainted_devices(assessment.impact.counts);
        Extent::of_all(std::slice::from_ref(assessment), devices)
    }

    /// The impact of one change on several slices. A pod that loses devices in several of them counts once.
    pub(super) fn of_all(assessments: &[Assessment<'_>], devices: usize) -> Extent {
        let pods = assessments.iter().flat_map(|assessment| &assessment.impact.pods);
        let evicted: BTreeSet<(&str, &str)> =
            pods.filter(|pod| pod.is_evicted_by_change()).map(|pod| (pod.namespace, pod.name)).collect();
        let namespaces: BTreeSet<&str> = evicted.iter().map(|(namespace, _)| *namespace).collect();
        Extent {
            devices,
            pods: evicted.len(),
            namespaces: namespaces.len(),
            is_upper_bound: assessments.iter().any(|assessment| assessment.impact.is_upper_bound),
            counts_devices_twice: false,
        }
    }
}

/// Limits on the impact of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    devices: Option<usize>,
    pods: Option<usize>,
    namespaces: Option<usize>,
}

/// Parses the value of `--max`, such as `pods=10,namespaces=2,devices=64`.
pub(super) fn parse(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',') {
        let (name, number) =
            part.split_once('=').ok_or_else(|| format!("expected NAME=NUMBER, got `{part}`"))?;
        let place = match name.trim() {
            "devices" => &mut limits.devices,
            "pods" => &mut limits.pods,
            "namespaces" => &mut limits.namespaces,
            other => {
                return Err(format!("unknown limit `{other}`; use devices, pods or namespaces"));
            }
        };
        let number = number.trim();
        let number = number
            .parse()
            .map_err(|error| format!("`{number}` is not a valid number of {}: {error}", name.trim()))?;
        // Of two limits only one would apply.
        if place.replace(number).is_some() {
            return Err(format!("the limit for {} is set twice", name.trim()));
        }
    }
    Ok(limits)
}

impl Limits {
    /// A message for each limit that the impact exceeds.
    pub(super) fn excesses(&self, extent: Extent) -> Vec<String> {
        let found = [
            (extent.devices, self.devices, "selects", "device"),
            (extent.pods, self.pods, "evicts", "pod"),
            (extent.namespaces, self.namespaces, "evicts pods in", "namespace"),
        ];
        let over = found.into_iter().filter_map(|(found, limit, verb, noun)| {
            let limit = limit.filter(|limit| found > *limit)?;
            let plural = if found == 1 { "" } else { "s" };
            let is_upper_bound = extent.is_upper_bound || (extent.counts_devices_twice && noun == "device");
            let hedge = if is_upper_bound { "at most " } else { "" };
            Some(format!("{verb} {hedge}{found} {noun}{plural}; --max allows {limit}"))
        });
        over.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn limits_are_read_or_refused() {
        let limits = parse("pods=10, namespaces=2").expect("limits");
        assert_eq!((limits.pods, limits.namespaces, limits.devices), (Some(10), Some(2), None));
        for (text, expected) in [
            ("pods=1,pods=20", "the limit for pods is set twice"),
            ("pod=1", "unknown limit `pod`; use devices, pods or namespaces"),
            ("pods", "expected NAME=NUMBER, got `pods`"),
            ("", "expected NAME=NUMBER, got ``"),
        ] {
            assert_eq!(parse(text).err().as_deref(), Some(expected), "{text}");
        }
        assert!(parse("pods=-1").is_err() && parse("pods=1e3").is_err());
    }
}
