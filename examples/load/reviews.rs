//! The two bodies: a claim with a CEL selector of 2.7 KB, and a slice of 380 KB.

use std::fmt::Write as _;

/// An API server's review of a claim, with managedFields as kubectl leaves them.
pub(crate) fn claim() -> Vec<u8> {
    let object = r#"{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"training-run-17","namespace":"ml-research","uid":"7e015350-9aa1-4d83-82cc-00d33a8a901d","creationTimestamp":"2026-11-15T00:53:30Z","annotations":{"example.com/ticket":"ML-1717","example.com/description":"third run of the large model, with the corrected schedule and the smaller batches that were agreed on","example.com/contact":"research-oncall@example.com"},"labels":{"app.kubernetes.io/name":"training","app.kubernetes.io/part-of":"research"},"managedFields":[{"manager":"kubectl-create","operation":"Update","apiVersion":"resource.k8s.io/v1","time":"2026-11-15T00:53:30Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/ticket":{},"f:example.com/description":{},"f:example.com/contact":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{}}},"f:spec":{"f:devices":{"f:requests":{}}}}}]},"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu-00000000.example.com","selectors":[{"cel":{"expression":"device.driver == \"gpu.example.com\" && device.attributes[\"gpu.example.com\"].model in [\"a100\", \"h100\"] && device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0"}}],"allocationMode":"ExactCount","count":2,"tolerations":[{"key":"gpu.example.com/degraded","operator":"Exists","effect":"NoSchedule"},{"key":"gpu.example.com/degraded","operator":"Equal","value":"thermal","effect":"NoExecute","tolerationSeconds":600}]}},{"name":"nic","firstAvailable":[{"name":"fast","deviceClassName":"nic.example.com","allocationMode":"ExactCount","count":1},{"name":"slow","deviceClassName":"slow-nic.example.com","allocationMode":"ExactCount","count":1}]}],"constraints":[{"requests":["gpu"],"matchAttribute":"gpu.example.com/numa"}]}},"status":{}}"#;
    review("v1", "ResourceClaim", "resourceclaims", "training-run-17", "ml-research", object)
}

/// How the class of the claim's request begins; eight digits follow.
pub(crate) const CLASS_NAME: &str = r#""deviceClassName":"gpu-"#;

/// How the name of a device begins; eight digits follow.
pub(crate) const DEVICE_NAME: &str = r#"{"name":"gpu-"#;

/// A driver's slice, full: 64 devices with 16 taints and 32 attributes each.
pub(crate) fn slice() -> Vec<u8> {
    slice_of(64, "NoSchedule")
}

/// Nearly as large as a body may be.
pub(crate) fn largest() -> Vec<u8> {
    slice_of(1_350, "NoSchedule")
}

/// Wrong a thousand times: the answer is long.
pub(crate) fn denied() -> Vec<u8> {
    slice_of(64, "Whenever-It-Suits-The-Driver-And-Nobody-Else-Is-Harmed-By-It")
}

fn slice_of(count: usize, effect: &str) -> Vec<u8> {
    let mut devices = String::new();
    for device in 0..count {
        let (mut taints, mut attributes) = (String::new(), String::new());
        for taint in 0..16 {
            let comma = if taint > 0 { "," } else { "" };
            let _ = write!(
                taints,
                r#"{comma}{{"key":"health-of-the-device.gpu.vendor.example.com/condition-{taint}-reported-by-the-driver","value":"value-{device}-{taint}-with-some-length","effect":"{effect}","timeAdded":"2026-01-01T00:00:00Z"}}"#
            );
        }
        for attribute in 0..32 {
            let comma = if attribute > 0 { "," } else { "" };
            let _ = write!(
                attributes,
                r#"{comma}"resource.gpu.vendor.example.com/attribute_{attribute:02}":{{"string":"a value of quite some length {attribute}"}}"#
            );
        }
        let comma = if device > 0 { "," } else { "" };
        let _ = write!(
            devices,
            r#"{comma}{{"name":"gpu-00000000-{device}","attributes":{{{attributes}}},"taints":[{taints}]}}"#
        );
    }
    let object = format!(
        r#"{{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{{"name":"node-1","uid":"7e015350-9aa1-4d83-82cc-00d33a8a901d","creationTimestamp":"2026-11-15T00:53:30Z","generation":1}},"spec":{{"driver":"gpu.vendor.example.com","pool":{{"name":"node-1","generation":1,"resourceSliceCount":1}},"nodeName":"node-1","devices":[{devices}]}}}}"#
    );
    review("v1", "ResourceSlice", "resourceslices", "node-1", "", &object)
}

fn review(version: &str, kind: &str, resource: &str, name: &str, namespace: &str, object: &str) -> Vec<u8> {
    let group = "resource.k8s.io";
    let kind = format!(r#"{{"group":"{group}","version":"{version}","kind":"{kind}"}}"#);
    let resource = format!(r#"{{"group":"{group}","version":"{version}","resource":"{resource}"}}"#);
    let namespace =
        if namespace.is_empty() { String::new() } else { format!(r#""namespace":"{namespace}","#) };
    let user = r#"{"username":"system:serviceaccount:ml-research:launcher","uid":"1f0c9a52-5a1b-4f5c-9d7e-2f8f5d1f8a11","groups":["system:serviceaccounts","system:serviceaccounts:ml-research","system:authenticated"]}"#;
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"d3a97c0e-f002-464d-9a3a-f1ca25586797","kind":{kind},"resource":{resource},"requestKind":{kind},"requestResource":{resource},"name":"{name}",{namespace}"operation":"CREATE","userInfo":{user},"object":{object},"oldObject":null,"dryRun":false,"options":{{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-create","fieldValidation":"Strict"}}}}}}"#
    )
    .into_bytes()
        .into_iter()
        .chain(*b"\n")
        .collect()
}
