//! Reads the requests of AdmissionReviews and writes the responses.
//!
//! A [`Request`] borrows from the document and has only the fields that decisions depend on; decisions are made
//! elsewhere. Input that is not an AdmissionReview is a [`BadReview`]: the webhook answers with HTTP 400 or denies the
//! request, and `tollgate review` prints an error response.
//!
//! Invariant: every response satisfies the API server's checks: uid echoed, `patch` and `patchType` together or not
//! at all, a status only on refusal.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::Serialize;

use tollgate_document::doc::{FieldName, Value, ValueKind};

/// The only supported version of AdmissionReview.
pub const API_VERSION: &str = "admission.k8s.io/v1";

/// The part of `request` that a decision may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Request<'d> {
    /// `request.uid`, which the response must repeat.
    pub uid: &'d str,
    /// `request.kind`: the group, version and kind of `object`.
    pub kind: GroupVersionKind<'d>,
    /// `request.resource.resource`, such as `resourceclaims`.
    pub resource: &'d str,
    /// `request.subResource`; empty for the object itself.
    pub sub_resource: &'d str,
    /// `request.operation`.
    pub operation: Operation,
    /// `request.name`; empty if the name is still to be generated.
    pub name: &'d str,
    /// `request.namespace`; empty for cluster-scoped kinds.
    pub namespace: &'d str,
    /// `request.userInfo`, unparsed; policies evaluate it.
    pub user: Value<'d>,
    /// `request.object`; `null` on DELETE.
    pub object: Value<'d>,
    /// `request.oldObject`, if there is one.
    pub old_object: Option<Value<'d>>,
    /// `request.dryRun`.
    pub dry_run: bool,
}

/// `request.kind`. All fields are empty if the review does not contain it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupVersionKind<'d> {
    /// API group of the object; empty for the core group.
    pub group: &'d str,
    /// API version of the object.
    pub version: &'d str,
    /// Kind of the object.
    pub kind: &'d str,
}

tollgate_formats::named_enum! {
    /// The operation of an admission request.
    pub enum Operation {
        /// A new object is created.
        Create = "CREATE",
        /// A stored object is replaced.
        Update = "UPDATE",
        /// An object is deleted, so that there is nothing to check.
        Delete = "DELETE",
        /// A subresource such as `pods/exec` is connected to, so that there is nothing to check.
        Connect = "CONNECT",
    }
}

impl Operation {
    /// True if the request has an object that will be stored.
    pub fn writes_object(self) -> bool {
        matches!(self, Operation::Create | Operation::Update)
    }
}

/// The error for input that is not a valid AdmissionReview.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadReview {
    /// The uid of the request, if it could be read.
    pub uid: Box<str>,
    /// Byte offset of the error.
    pub at: usize,
    /// Error message.
    pub detail: String,
    /// True if the review has more keys and values than are read.
    pub is_too_dense: bool,
}

impl std::fmt::Display for BadReview {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl<'d> Request<'d> {
    /// Reads the request of a review. An error if apiVersion or kind is that of another object; they may be missing.
    pub fn from_review(review: Value<'d>) -> Result<Request<'d>, BadReview> {
        if review.kind() != ValueKind::Object {
            return Err(bad_review("", review, "an AdmissionReview must be a JSON object".to_owned()));
        }
        let [request, kind, api_version] = review.fields_last_duplicate_wins([REQUEST, KIND, VERSION_OF_API]);
        let [
            uid,
            kind_of,
            resource,
            sub_resource,
            operation,
            name,
            namespace,
            user,
            object,
            old_object,
            dry_run,
        ] = request.fields_last_duplicate_wins(REQUEST_FIELDS);
        let told = uid.str();
        // It is sent back; the API server's are 36 bytes.
        if told.len() > MAX_UID_BYTES {
            return Err(bad_review("", uid, format!("request.uid is longer than {MAX_UID_BYTES} bytes")));
        }
        for (name, value, expected) in
            [(KIND, kind, "AdmissionReview"), (VERSION_OF_API, api_version, API_VERSION)]
        {
            if !value.is_null_or_absent() && value.str() != expected {
                let detail = format!("{} is {}, expected \"{expected}\"", name.text, describe_value(value));
                return Err(bad_review(told, value, detail));
            }
        }
        if request.is_null_or_absent() {
            return Err(bad_review("", review, "the AdmissionReview has no request".to_owned()));
        }
        if request.kind() != ValueKind::Object {
            return Err(bad_review(
                "",
                request,
                format!("request is {}, expected an object", describe_value(request)),
            ));
        }
        let text = |value: Value<'d>, name: &str| match value.kind() {
            ValueKind::String => Ok(value.text()),
            ValueKind::Null => Ok(""),
            _ => Err(bad_review(
                told,
                value,
                format!("{name} is {}, expected a string", describe_value(value)),
            )),
        };
        let [group, version, kind] = kind_of.fields_last_duplicate_wins([GROUP, VERSION, KIND]);
        let [resource] = resource.fields_last_duplicate_wins([RESOURCE]);
        Ok(Request {
            uid: text(uid, "request.uid")?,
            kind: GroupVersionKind {
                group: text(group, "request.kind.group")?,
                version: text(version, "request.kind.version")?,
                kind: text(kind, "request.kind.kind")?,
            },
            resource: text(resource, "request.resource.resource")?,
            sub_resource: text(sub_resource, "request.subResource")?,
            operation: read_operation(told, operation, request)?,
            name: text(name, "request.name")?,
            namespace: text(namespace, "request.namespace")?,
            user,
            object,
            old_object: (!old_object.is_null_or_absent()).then_some(old_object),
            dry_run: dry_run.bool().unwrap_or_default(),
        })
    }
}

/// The operation of a request; an error if it is missing or unknown.
fn read_operation(uid: &str, given: Value<'_>, request: Value<'_>) -> Result<Operation, BadReview> {
    if let Some(known) = Operation::ALL.into_iter().find(|known| known.name() == given.str()) {
        return Ok(known);
    }
    let what = if given.is_null_or_absent() { "missing".to_owned() } else { describe_value(given) };
    let value = if given.exists() { given } else { request };
    let detail = format!("request.operation is {what}, expected CREATE, UPDATE, DELETE or CONNECT");
    Err(bad_review(uid, value, detail))
}

/// Maximum length in bytes of the uid of a review.
const MAX_UID_BYTES: usize = 1 << 10;

/// Fields of a review: they are looked for in every request.
const REQUEST: FieldName = FieldName::from_text("request");
const UID: FieldName = FieldName::from_text("uid");
const KIND: FieldName = FieldName::from_text("kind");
const VERSION_OF_API: FieldName = FieldName::from_text("apiVersion");
const GROUP: FieldName = FieldName::from_text("group");
const VERSION: FieldName = FieldName::from_text("version");
const RESOURCE: FieldName = FieldName::from_text("resource");
const SUB_RESOURCE: FieldName = FieldName::from_text("subResource");
const OPERATION: FieldName = FieldName::from_text("operation");
const NAME: FieldName = FieldName::from_text("name");
const NAMESPACE: FieldName = FieldName::from_text("namespace");
const USER_INFO: FieldName = FieldName::from_text("userInfo");
const OBJECT: FieldName = FieldName::from_text("object");
const OLD_OBJECT: FieldName = FieldName::from_text("oldObject");
const DRY_RUN: FieldName = FieldName::from_text("dryRun");

/// The members of `request` that are read.
const REQUEST_FIELDS: [FieldName; 11] =
    [UID, KIND, RESOURCE, SUB_RESOURCE, OPERATION, NAME, NAMESPACE, USER_INFO, OBJECT, OLD_OBJECT, DRY_RUN];

/// A value in a few words, for messages: `a list`, or the beginning of a scalar.
fn describe_value(value: Value<'_>) -> String {
    match value.kind() {
        ValueKind::Object => "an object".to_owned(),
        ValueKind::Array => "a list".to_owned(),
        ValueKind::String => {
            tollgate_formats::gofmt::quote(&value.text().chars().take(64).collect::<String>())
        }
        ValueKind::Null => "null".to_owned(),
        ValueKind::Bool | ValueKind::Number => value.text().chars().take(64).collect(),
    }
}

/// The error about a value of a review; `uid` is that of the request, or empty.
fn bad_review(uid: &str, value: Value<'_>, detail: String) -> BadReview {
    BadReview { uid: uid.into(), at: value.span().start as usize, detail, is_too_dense: false }
}

/// The response to one request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// `uid` of the request.
    pub uid: Box<str>,
    /// True if the request is admitted.
    pub allowed: bool,
    /// The reason for a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    patch: Option<Patch>,
    /// Shown to the user by kubectl.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Written to the audit log; keys are label names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<&'static str, String>,
}

/// The `patch` and `patchType` of a response. They are one value, because one without the other is invalid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch {
    patch: String,
    patch_type: &'static str,
}

/// The reason for a denial, as a `metav1.Status`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Status {
    #[serde(rename = "status")]
    outcome: &'static str,
    /// Message for users, on one line.
    pub message: String,
    /// Machine-readable reason, such as `Invalid`.
    pub reason: &'static str,
    /// HTTP status code, such as 422.
    pub code: u16,
    /// The object, and each thing that is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
}

/// The object and each cause. kubectl prints the causes of a 422 and nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// API group of the object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: Box<str>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: Box<str>,
    /// The problems of the object.
    pub causes: Vec<StatusCause>,
}

/// One problem of the object, as a `metav1.StatusCause`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StatusCause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The message without the path.
    pub message: String,
    /// Path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl StatusCause {
    /// Approximate size in bytes as JSON.
    pub fn approximate_json_bytes(&self) -> usize {
        let text = |text: &str| -> usize {
            let byte = |byte: u8| match byte {
                b'"' | b'\\' => 2,
                0..0x20 => 6,
                _ => 1,
            };
            text.bytes().map(byte).sum()
        };
        text(&self.message)
            + text(&self.field)
            + self.reason.len()
            + r#"{"reason":"","message":"","field":""},"#.len()
    }
}

impl Response {
    /// Creates a response that admits the request without warnings.
    pub fn allowed(uid: &str) -> Response {
        Response {
            uid: uid.into(),
            allowed: true,
            status: None,
            patch: None,
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
        }
    }

    /// A response that refuses the request with that status.
    pub fn denied(uid: &str, status: Status) -> Response {
        Response { allowed: false, status: Some(status), ..Response::allowed(uid) }
    }

    /// A response that allows the request with a JSON Patch, given as text.
    pub fn patched(uid: &str, patch: &str) -> Response {
        let patch = base64::engine::general_purpose::STANDARD.encode(patch);
        Response { patch: Some(Patch { patch, patch_type: "JSONPatch" }), ..Response::allowed(uid) }
    }

    /// Returns the response as the JSON of an AdmissionReview.
    pub fn encode_admission_review(&self) -> Vec<u8> {
        if self.is_plain_allow() {
            let before = concat!(
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","#,
                r#""response":{"uid":""#
            );
            return [before, &*self.uid, r#"","allowed":true}}"#].concat().into_bytes();
        }
        self.encode_with_serde()
    }

    /// True if the response only allows the request (no patch, warnings or annotations) and its uid needs no escapes.
    /// Most responses are like this, and are written without serde.
    fn is_plain_allow(&self) -> bool {
        let is_bare = self.status.is_none() && self.patch.is_none() && self.warnings.is_empty();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        self.allowed && is_bare && self.audit_annotations.is_empty() && self.uid.bytes().all(is_plain)
    }

    /// The AdmissionReview as JSON, written by serde: for any response.
    fn encode_with_serde(&self) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Review<'r> {
            api_version: &'static str,
            kind: &'static str,
            response: &'r Response,
        }
        let review = Review { api_version: API_VERSION, kind: "AdmissionReview", response: self };
        // A large response grows once and not by doubling.
        let causes =
            self.status.iter().filter_map(|status| status.details.as_ref()).flat_map(|it| &it.causes);
        let patch = self.patch.as_ref().map_or(0, |patch| patch.patch.len());
        let mut bytes =
            Vec::with_capacity(192 + patch + causes.map(StatusCause::approximate_json_bytes).sum::<usize>());
        // Strings, numbers and string keys only: there is nothing that could fail.
        let written = serde_json::to_writer(&mut bytes, &review);
        debug_assert!(written.is_ok(), "{written:?}");
        bytes
    }
}

impl Status {
    /// Returns the `status` of a response that denies a request.
    pub fn failure(
        code: u16,
        reason: &'static str,
        message: String,
        details: Option<StatusDetails>,
    ) -> Status {
        Status { outcome: "Failure", message, reason, code, details }
    }

    /// Encodes the status as the body of an HTTP error. The API server shows its message to the user, but not
    /// a plain-text body.
    pub fn encode_status_document(&self) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct StatusDocument<'s> {
            kind: &'static str,
            api_version: &'static str,
            #[serde(flatten)]
            status: &'s Status,
        }
        let document = StatusDocument { kind: "Status", api_version: "v1", status: self };
        // Strings and numbers only: there is nothing that could fail.
        serde_json::to_vec(&document).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Request, Response};

    #[test]
    fn what_is_not_a_review_is_told_with_its_place() {
        let table = [
            ("[]", 0, "an AdmissionReview must be a JSON object"),
            ("{}", 0, "the AdmissionReview has no request"),
            (r#"{"kind":"Pod"}"#, 8, "kind is \"Pod\", expected \"AdmissionReview\""),
            (
                r#"{"apiVersion":"admission.k8s.io/v1beta1"}"#,
                14,
                "apiVersion is \"admission.k8s.io/v1beta1\", expected \"admission.k8s.io/v1\"",
            ),
            (r#"{"request":[]}"#, 11, "request is a list, expected an object"),
            (r#"{"request":{"uid":7}}"#, 18, "request.uid is 7, expected a string"),
            (
                r#"{"request":{"uid":"u"}}"#,
                11,
                "request.operation is missing, expected CREATE, UPDATE, DELETE or CONNECT",
            ),
            (
                r#"{"request":{"operation":"PATCH"}}"#,
                24,
                "request.operation is \"PATCH\", expected CREATE, UPDATE, DELETE or CONNECT",
            ),
        ];
        for (text, at, detail) in table {
            let doc = tollgate_document::doc::parse(text).unwrap();
            let error = Request::from_review(doc.root()).unwrap_err();
            assert_eq!((error.at, error.detail.as_str()), (at, detail), "{text}");
        }
        let long = format!(r#"{{"request":{{"uid":"{}","operation":"CREATE"}}}}"#, "u".repeat(1025));
        let doc = tollgate_document::doc::parse(&long).unwrap();
        let error = Request::from_review(doc.root()).unwrap_err();
        assert_eq!((&*error.uid, error.detail.as_str()), ("", "request.uid is longer than 1024 bytes"));
    }

    #[test]
    fn a_plain_answer_is_what_the_long_way_writes() {
        for uid in ["d3a97c0e-f002-464d-9a3a-f1ca25586797", "", "u\"x", "\u{7}", "\\", "ü"] {
            let response = Response::allowed(uid);
            let (short, long) = (response.encode_admission_review(), response.encode_with_serde());
            assert_eq!(String::from_utf8(short), String::from_utf8(long), "{uid}");
        }
    }

    #[test]
    fn patch_and_its_type_come_together() {
        let plain = String::from_utf8(Response::allowed("u").encode_admission_review()).unwrap();
        assert_eq!(
            plain,
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}"#
        );
        let patched = String::from_utf8(Response::patched("u", "[]").encode_admission_review()).unwrap();
        assert!(patched.contains(r#""allowed":true,"patch":"W10=","patchType":"JSONPatch"}"#), "{patched}");
    }
}
