//! `--fail-over pods=10,namespaces=2`: more than that is a failure.

use crate::impact::Impact;

/// How much a rule may do.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    devices: Option<usize>,
    pods: Option<usize>,
    namespaces: Option<usize>,
}

/// Reads the flag.
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
        *place = Some(number);
    }
    Ok(limits)
}

impl Limits {
    /// What is over a limit, in words.
    pub(super) fn excesses(&self, impact: &Impact<'_>) -> Vec<String> {
        let found = [
            (impact.counts.published, self.devices, "published devices selected"),
            (impact.evicted(), self.pods, "pods evicted"),
            (impact.namespaces.len(), self.namespaces, "namespaces lose pods"),
        ];
        let over = found.into_iter().filter_map(|(found, limit, what)| {
            let limit = limit.filter(|limit| found > *limit)?;
            Some(format!("{what}: {found}, --fail-over allows {limit}"))
        });
        over.collect()
    }
}
