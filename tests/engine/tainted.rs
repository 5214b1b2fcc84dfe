//! Compares the number of devices that all rules together taint with a model that checks every device against every
//! rule.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_engine::impact::{ProposedChange, RuleTaintedDevicesQuery, Snapshot};
use tollgate_formats::gotime::Timestamp;

/// A seeded pseudorandom number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The criteria of a selector; `None` for a rule without a selector.
type Criteria = Option<[Option<String>; 3]>;

fn criteria(numbers: &mut Numbers) -> Criteria {
    let mut pick = |letter: &str, count: u64| {
        let is_set = numbers.below(3) > 0;
        // One more than there are, so that some select nothing.
        is_set.then(|| format!("{letter}{}", numbers.below(count + 1)))
    };
    let criteria = [pick("d", 2), pick("p", 3), pick("g", 4)];
    (numbers.below(12) > 0).then_some(criteria)
}

fn rule(name: &str, criteria: &Criteria, effect: &str) -> String {
    let selector = criteria.as_ref().map_or(String::new(), |criteria| {
        let fields = ["driver", "pool", "device"].into_iter().zip(criteria);
        let fields = fields.filter_map(|(name, value)| Some(format!(r#""{name}":"{}""#, value.as_ref()?)));
        format!(r#""deviceSelector":{{{}}},"#, fields.collect::<Vec<_>>().join(","))
    });
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{{"name":"{name}"}},"spec":{{{selector}"taint":{{"key":"a/b","effect":"{effect}"}}}}}}"#
    )
}

fn apply(snapshot: &mut Snapshot, json: &str) {
    snapshot.apply(doc::parse(json).expect("JSON").root()).expect("a readable object");
}

fn selects(criteria: &Criteria, device: [&str; 3]) -> bool {
    criteria.as_ref().is_none_or(|criteria| {
        criteria
            .iter()
            .zip(device)
            .all(|(wanted, found)| wanted.as_ref().is_none_or(|wanted| wanted == found))
    })
}

#[test]
fn rules_together_taint_what_each_of_them_taints() {
    let mut numbers = Numbers(7);
    let (profile, at) = (Profile::named("1.37").expect("a release"), Timestamp { seconds: 0, nanos: 0 });
    let mut counted = 0;
    for round in 0..400 {
        let mut snapshot = Snapshot::new();
        let mut devices: Vec<[String; 3]> = Vec::new();
        for (driver, pool) in (0..2).flat_map(|driver| (0..3).map(move |pool| (driver, pool))) {
            // Two slices of a pool, and an old one that does not count.
            for (slice, generation) in [(0, 2), (1, 2), (2, 1)] {
                let names: Vec<String> = (0..4)
                    .filter(|_| numbers.below(3) > 0)
                    .filter(|name| name % 2 == slice % 2)
                    .map(|name| format!("g{name}"))
                    .collect();
                let list: Vec<String> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
                apply(
                    &mut snapshot,
                    &format!(
                        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s{driver}{pool}{slice}"}},"spec":{{"driver":"d{driver}","allNodes":true,"pool":{{"name":"p{pool}","generation":{generation},"resourceSliceCount":2}},"devices":[{}]}}}}"#,
                        list.join(",")
                    ),
                );
                if generation == 2 {
                    devices.extend(
                        names.into_iter().map(|name| [format!("d{driver}"), format!("p{pool}"), name]),
                    );
                }
            }
        }
        let mut rules: Vec<(String, Criteria, &str)> = Vec::new();
        for number in 0..numbers.below(7) {
            let effect = match numbers.below(3) {
                0 => "NoSchedule",
                1 => "NoExecute",
                _ => "None",
            };
            let (name, criteria) = (format!("r{number}"), criteria(&mut numbers));
            apply(&mut snapshot, &rule(&name, &criteria, effect));
            rules.push((name, criteria, effect));
        }
        let own = criteria(&mut numbers);
        let own_name = format!("r{}", numbers.below(7));
        let json = rule(&own_name, &own, "NoSchedule");
        let parsed = doc::parse(&json).expect("JSON");
        let change =
            ProposedChange::from_rule_manifest(parsed.root(), None, &snapshot, profile, at).expect("a rule");
        rules.retain(|(name, ..)| *name != own_name);
        rules.push((own_name.clone(), own, "NoSchedule"));
        let together = RuleTaintedDevicesQuery {
            snapshot: &snapshot,
            profile,
            without: &own_name,
            with: Some(&change),
            by_class: true,
        };
        let tainted = together.devices_tainted_by_rules();
        for driver in ["d0", "d1", "d2"] {
            let of_driver = devices.iter().filter(|[name, ..]| name == driver);
            let expected = of_driver.clone().filter(|[driver, pool, device]| {
                let blocking = rules.iter().filter(|(.., effect)| *effect != "None");
                blocking.clone().any(|(_, criteria, _)| selects(criteria, [driver, pool, device]))
            });
            let expected = expected.count();
            counted += expected;
            assert_eq!(
                tainted.count_for_driver(driver),
                expected,
                "round {round}, driver {driver}: {rules:?}"
            );
            assert_eq!(snapshot.published_device_count(driver), of_driver.count());
        }
    }
    assert!(counted > 1_000, "{counted}");
}
