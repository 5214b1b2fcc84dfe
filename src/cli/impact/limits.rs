//! `--max pods=10,namespaces=2`: limits on the impact.

use super::Assessment;

/// The size of an impact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) devices: usize,
    pub(super) pods: usize,
    pub(super) namespaces: usize,
}

impl Extent {
    /// The impact of one rule or slice.
    pub(super) fn of(assessment: &Assessment<'_>) -> Extent {
        let impact = &assessment.impact;
        Extent {
            // Without a selector the scheduler applies a rule to all devices, unlike the eviction controller.
            devices: assessment.query.tainted_devices(impact.counts),
            pods: impact.evicted_pod_count(),
            namespaces: impact.namespaces.len(),
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

/// Parses the flag.
pub(super) fn parse(text: &str) -> Result<Limits, String> {
    let mut limits = Limits::default();
    for part in text.split(',') {
        let (name, number) = part.split_once('=').ok_or_else(|| format!("`{part}` is not NAME=NUMBER"))?;
        let place = match name.trim() {
            "devices" => &mut limits.devices,
            "pods" => &mut limits.pods,
            "namespaces" => &mut limits.namespaces,
            other => {
                return Err(format!("there is no limit on `{other}`; there are devices, pods, namespaces"));
            }
        };
        let number = number.trim();
        let number = number
            .parse()
            .map_err(|error| format!("`{number}` is not a number of {}: {error}", name.trim()))?;
        // Of two limits only one would apply.
        if place.replace(number).is_some() {
            return Err(format!("there are two limits on {}", name.trim()));
        }
    }
    Ok(limits)
}

impl Limits {
    /// The limits that are exceeded, as messages.
    pub(super) fn excesses(&self, extent: Extent) -> Vec<String> {
        let found = [
            (extent.devices, self.devices, "devices selected"),
            (extent.pods, self.pods, "pods evicted"),
            (extent.namespaces, self.namespaces, "namespaces lose pods"),
        ];
        let over = found.into_iter().filter_map(|(found, limit, what)| {
            let limit = limit.filter(|limit| found > *limit)?;
            Some(format!("{what}: {found}, --max allows {limit}"))
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
            ("pods=1,pods=20", "there are two limits on pods"),
            ("pod=1", "there is no limit on `pod`; there are devices, pods, namespaces"),
            ("pods", "`pods` is not NAME=NUMBER"),
            ("", "`` is not NAME=NUMBER"),
        ] {
            assert_eq!(parse(text).err().as_deref(), Some(expected), "{text}");
        }
        assert!(parse("pods=-1").is_err() && parse("pods=1e3").is_err());
    }
}
