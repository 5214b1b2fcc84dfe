//! The name of a rule: readable, and the same for the same driver, pool, device, key and effect.
//!
//! Object names allow fewer characters than keys and pools and are limited in length, so the name ends with a hash of
//! the exact parts: two taints never share a rule by accident.

use sha2::{Digest as _, Sha256};

use tollgate_engine::impact::target::DeviceNameSelector;

/// Maximum length of a name before its hash. Object names have at most 253 characters.
const MAX_CHARS_BEFORE_HASH: usize = 200;

/// Name of the DeviceTaintRule that taints the devices of `target` with `key`. The effect is part of the name unless it
/// is `None`: a rule that is created with `None` keeps its name when its effect changes.
pub fn readable_rule_name_with_hash(target: &DeviceNameSelector, key: &str, effect: &str) -> String {
    let DeviceNameSelector { driver, pool, device } = target;
    let own_effect = (effect != "None").then_some(effect);
    let parts = [driver.as_deref(), pool.as_deref(), device.as_deref(), Some(key), own_effect];
    let own = if own_effect.is_some() { parts.len() } else { parts.len() - 1 };
    let mut readable = String::new();
    let mut hash = Sha256::new();
    for part in parts.into_iter().take(own) {
        hash.update([u8::from(part.is_some())]);
        hash.update(part.unwrap_or_default().as_bytes());
        hash.update([0]);
        let part = match part {
            Some(part) => part,
            None if target.selects_everything() => "all",
            None => "any",
        };
        // Once is enough.
        if part == "all" && readable == "all-" {
            continue;
        }
        // What stands before the slash of a key is most often the driver again.
        let part = if part == key { part.rsplit('/').next().unwrap_or(part) } else { part };
        for letter in part.chars() {
            let letter = letter.to_ascii_lowercase();
            let fits = letter.is_ascii_lowercase() || letter.is_ascii_digit();
            if fits {
                readable.push(letter);
            } else if !readable.is_empty() && !readable.ends_with('-') {
                readable.push('-');
            }
        }
        if !readable.is_empty() && !readable.ends_with('-') {
            readable.push('-');
        }
    }
    readable.truncate(MAX_CHARS_BEFORE_HASH);
    let mut name = readable.trim_end_matches('-').to_owned();
    let digest = format!("{:x}", hash.finalize());
    name.push('-');
    name.extend(digest.chars().take(8));
    name
}

#[cfg(test)]
mod tests {
    use super::readable_rule_name_with_hash;
    use tollgate_engine::impact::target::DeviceNameSelector;

    fn name(parts: [&str; 3], key: &str) -> String {
        let [driver, pool, device] = parts.map(|part| Some(part.to_owned()).filter(|part| !part.is_empty()));
        readable_rule_name_with_hash(&DeviceNameSelector { driver, pool, device }, key, "None")
    }

    #[test]
    fn rules_with_different_effects_have_different_names() {
        let driver = Some("gpu.example.com".to_owned());
        let target = DeviceNameSelector { driver, ..DeviceNameSelector::default() };
        let [none, schedule, execute] = ["None", "NoSchedule", "NoExecute"]
            .map(|effect| readable_rule_name_with_hash(&target, "example.com/drain", effect));
        assert_eq!(none, "gpu-example-com-any-any-drain-03b5151a");
        assert!(schedule.starts_with("gpu-example-com-any-any-drain-noschedule-"), "{schedule}");
        assert!(none != schedule && none != execute && schedule != execute);
    }

    #[test]
    fn names_are_readable_stable_and_their_own() {
        let one = name(["gpu.example.com", "node-1", "gpu-0"], "gpu.example.com/drain");
        assert_eq!(one, "gpu-example-com-node-1-gpu-0-drain-cd35828d");
        let others = [
            name(["gpu.example.com", "node-1", "gpu-1"], "gpu.example.com/drain"),
            name(["gpu.example.com", "node-1-gpu", "0"], "gpu.example.com/drain"),
            name(["gpu.example.com", "node-1", "gpu-0"], "other.example.com/drain"),
            name(["gpu.example.com", "any", "gpu-0"], "gpu.example.com/drain"),
            name(["gpu.example.com", "", "gpu-0"], "gpu.example.com/drain"),
        ];
        for other in &others {
            assert_ne!(&one, other);
        }
        assert_ne!(others[3], others[4]);
        assert!(name(["", "", ""], "k").starts_with("all-k-"));
        assert!(name([&"a".repeat(63), &"b".repeat(253), "c"], "k").len() <= 253);
    }
}
