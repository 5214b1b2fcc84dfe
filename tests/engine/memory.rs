//! Measures the memory of a snapshot. Its estimate decides which objects are left out, so it is not below what is
//! allocated, apart from a few bytes of an index, and not far above it.
#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "numbers for people, with --nocapture")]

use tollgate_document::doc;
use tollgate_engine::impact::{DetailsToStore, Snapshot};

/// `count` items, separated by commas.
fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn object(kind: &str, metadata: &str, rest: &str) -> String {
    let version = match kind {
        "Pod" => "v1",
        "PodDisruptionBudget" => "policy/v1",
        "DeviceTaintRule" => "resource.k8s.io/v1alpha3",
        _ => "resource.k8s.io/v1",
    };
    format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{{metadata}}},{rest}}}"#)
}

/// A slice in a pool of its own.
fn slice(number: usize, devices: &str) -> String {
    let spec = format!(
        r#""spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"p{number}","generation":1,"resourceSliceCount":1}},"devices":[{devices}]}}"#
    );
    object("ResourceSlice", &format!(r#""name":"s{number}""#), &spec)
}

fn claim(number: usize, result: &str, reserved: &str) -> String {
    let status = format!(
        r#""spec":{{}},"status":{{"allocation":{{"devices":{{"results":[{result}]}}}},"reservedFor":[{reserved}]}}"#
    );
    object("ResourceClaim", &format!(r#""namespace":"a","name":"c{number}""#), &status)
}

/// The claim of a pod; pods without claims are not kept.
const CLAIM: &str = r#"{"name":"c","resourceClaimName":"c"}"#;

fn pod(name: &str, labels: &str, claims: &str) -> String {
    let metadata = format!(r#""namespace":"a","name":"{name}","uid":"u-{name}","labels":{{{labels}}}"#);
    object("Pod", &metadata, &format!(r#""spec":{{"nodeName":"n","resourceClaims":[{claims}]}}"#))
}

/// What an object has many of, and a function that writes the object with a number in its name.
type Shape = (&'static str, Box<dyn Fn(usize) -> String>);

/// Objects of each kind, with many of one part of it.
fn shapes() -> Vec<Shape> {
    let result =
        |more: &str| format!(r#"{{"request":"r","driver":"gpu.example.com","pool":"p","device":"d"{more}}}"#);
    let expression =
        |length: usize| format!(r#"{{"cel":{{"expression":"'{}' != ''"}}}}"#, "x".repeat(length));
    let shapes: [Shape; 15] = [
        ("a device", Box::new(|number| slice(number, r#"{"name":"d"}"#))),
        (
            "devices",
            Box::new(|number| slice(number, &list(64, |device| format!(r#"{{"name":"d{device}"}}"#)))),
        ),
        (
            "taints",
            Box::new(|number| {
                let taint = |key| format!(r#"{{"key":"example.com/k-{number}-{key}","effect":"NoExecute"}}"#);
                slice(number, &format!(r#"{{"name":"d","taints":[{}]}}"#, list(16, taint)))
            }),
        ),
        (
            "taints of draft r2",
            Box::new(|number| {
                let taint = |key| {
                    format!(
                        r#"{{"device":"d","taint":{{"key":"example.com/k-{number}-{key}","effect":"NoExecute"}}}}"#
                    )
                };
                let taints = format!(r#""spec":{{"taints":[{}],"#, list(16, taint));
                slice(number, "").replace(r#""spec":{"#, &taints)
            }),
        ),
        ("a claim", Box::new(move |number| claim(number, &result(""), ""))),
        (
            "results with tolerations",
            Box::new(move |number| {
                let results = |result_number: usize| {
                    let toleration = |key| {
                        format!(
                            r#"{{"key":"example.com/k-{number}-{result_number}-{key}","operator":"Exists"}}"#
                        )
                    };
                    result(&format!(r#","tolerations":[{}]"#, list(16, toleration)))
                };
                claim(number, &list(8, results), "")
            }),
        ),
        (
            "requested tolerations",
            Box::new(move |number| {
                let tolerations = |prefix: &str| {
                    let toleration = |key| {
                        format!(r#"{{"key":"example.com/{prefix}-{number}-{key}","operator":"Exists"}}"#)
                    };
                    format!(r#""tolerations":[{}]"#, list(16, toleration))
                };
                let (copied, requested) = (tolerations("copied"), tolerations("requested"));
                let spec = format!(
                    r#""spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"c",{requested}}}}}]}}}}"#
                );
                claim(number, &result(&format!(",{copied}")), "").replace(r#""spec":{}"#, &spec)
            }),
        ),
        (
            "users of a claim",
            Box::new(move |number| {
                let user = |pod| {
                    format!(r#"{{"resource":"pods","name":"p-{number}-{pod}","uid":"u-{number}-{pod}"}}"#)
                };
                claim(number, &result(""), &list(200, user))
            }),
        ),
        ("a pod", Box::new(|number| pod(&format!("p{number}"), "", CLAIM))),
        ("a long name", Box::new(|number| pod(&format!("p{number:0>250}"), "", CLAIM))),
        (
            "labels",
            Box::new(|number| {
                pod(&format!("p{number}"), &list(40, |label| format!(r#""l{label}":"v""#)), CLAIM)
            }),
        ),
        (
            "claims of a pod",
            Box::new(|number| {
                let claim =
                    |claim| format!(r#"{{"name":"c{claim}","resourceClaimName":"c-{number}-{claim}"}}"#);
                pod(&format!("p{number}"), "", &list(32, claim))
            }),
        ),
        (
            "a class with a long name",
            Box::new(|number| object("DeviceClass", &format!(r#""name":"c{number:0>250}""#), r#""spec":{}"#)),
        ),
        (
            "expressions of a class",
            Box::new(move |number| {
                let spec = format!(r#""spec":{{"selectors":[{}]}}"#, list(8, |_| expression(500)));
                object("DeviceClass", &format!(r#""name":"c{number}""#), &spec)
            }),
        ),
        (
            "values of a budget",
            Box::new(|number| {
                let values = list(200, |value| format!(r#""v-{number}-{value}""#));
                let spec = format!(
                    r#""spec":{{"maxUnavailable":1,"selector":{{"matchExpressions":[{{"key":"k","operator":"In","values":[{values}]}}]}}}}"#
                );
                object("PodDisruptionBudget", &format!(r#""namespace":"a","name":"b{number}""#), &spec)
            }),
        ),
    ];
    let rule = move |selector: String| {
        move |number: usize| {
            let spec = format!(
                r#""spec":{{"deviceSelector":{{{selector}}},"taint":{{"key":"example.com/a","effect":"NoSchedule"}}}}"#
            );
            object("DeviceTaintRule", &format!(r#""name":"r{number}""#), &spec)
        }
    };
    let mut all: Vec<_> = shapes.into_iter().collect();
    let of_class = format!(r#""deviceClassName":"c","selectors":[{}]"#, list(8, |_| expression(500)));
    all.push(("expressions of a rule", Box::new(rule(of_class))));
    all.push(("a rule", Box::new(rule(r#""driver":"gpu.example.com","pool":"p","device":"d""#.to_owned()))));
    all
}

#[test]
fn the_estimate_is_near_what_is_allocated() {
    const COUNT: usize = 200;
    let mut wrong = Vec::new();
    for (name, shape) in shapes() {
        let texts: Vec<String> = (0..COUNT).map(shape).collect();
        let docs: Vec<_> = texts.iter().map(|text| doc::parse(text).expect("JSON")).collect();
        let mut snapshot = Snapshot::with_details(DetailsToStore { attributes: true, counters: true });
        let measured = allocation_counter::measure(|| {
            for doc in &docs {
                snapshot.apply(doc.root()).expect("a readable object").expect("a kind that is kept");
            }
        });
        let (estimated, allocated) = (snapshot.estimated_bytes(), measured.bytes_current);
        let allocated = usize::try_from(allocated).expect("more than before");
        println!("{name}: {} of {} bytes each", allocated / COUNT, estimated / COUNT);
        if !(allocated * 9 / 10..=5 * allocated).contains(&estimated) {
            wrong.push(format!("{name}: estimated as {estimated} bytes, and {allocated} are allocated"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
