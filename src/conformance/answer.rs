//! Classifies an API server's response to a dry-run create: a verdict of validation, a rejection by a webhook, policy
//! or authorizer, or no verdict.
//!
//! Invariant: a response counts as a verdict only if that is certain.

use std::collections::BTreeSet;

use tollgate_document::doc::{self, Value};

/// The answer of an API server to a request that creates an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The object passed validation.
    Accepted,
    /// Validation or decoding refused it.
    Refused(Refusal),
    /// Another webhook, a policy or a quota refused it: the message.
    OtherAdmission(String),
    /// The version is not served.
    NotServed,
    /// The user may not create objects of that kind: the message.
    NotAllowed(String),
    /// There is no verdict, for this reason.
    Failed(String),
    /// The server stored the object despite dry run.
    Persisted,
}

/// The reason why a server rejects an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The object cannot be decoded; with the server's message.
    Undecodable(String),
    /// The object is invalid.
    Invalid {
        /// Type and field of each error.
        fields: BTreeSet<(String, String)>,
        /// Field and text of each error.
        texts: BTreeSet<String>,
    },
}

impl Answer {
    /// Classifies the response to a create request, by its status code and body (JSON).
    pub fn from_create_response(code: u16, body: &str) -> Answer {
        let document = doc::parse(body).ok();
        let root = document.as_ref().map_or(Value::absent(), |document| document.root());
        if code == 200 || code == 201 {
            return classify_success(root);
        }
        let message = root.get("message").str();
        let failed = || {
            Answer::Failed(format!(
                "{code}: {}",
                shortened_first_line(if message.is_empty() { body } else { message })
            ))
        };
        // A proxy does not send a Status.
        if root.get("kind").str() != "Status" {
            return failed();
        }
        if is_from_webhook_or_policy(message) {
            return Answer::OtherAdmission(shortened_first_line(message));
        }
        match (code, root.get("reason").str()) {
            (422, "Invalid") => classify_invalid(root).unwrap_or_else(failed),
            (400, "BadRequest") => match message.split_once(" cannot be handled as a ") {
                Some((_, rest)) => {
                    let words = rest.split_once(": ").map_or(rest, |(_, words)| words);
                    Answer::Refused(Refusal::Undecodable(words.to_owned()))
                }
                None if is_about_request(message) => failed(),
                // Plugins of the server answer so, too.
                None => Answer::OtherAdmission(shortened_first_line(message)),
            },
            // The server looks for the name after it has validated.
            (409, "AlreadyExists") => Answer::Accepted,
            (403, "Forbidden") if is_from_authorizer(message) => {
                Answer::NotAllowed(shortened_first_line(message))
            }
            (403, "Forbidden") => Answer::OtherAdmission(shortened_first_line(message)),
            (404, "NotFound") if root.get("details").get("name").str().is_empty() => Answer::NotServed,
            _ => failed(),
        }
    }

    /// True if the server returned a verdict: it accepted or rejected the object.
    pub fn is_verdict(&self) -> bool {
        matches!(self, Answer::Accepted | Answer::Refused(_))
    }
}

/// Returns the answer in a successful response: `Persisted` if the object has a resourceVersion, which a dry run
/// does not set.
fn classify_success(object: Value<'_>) -> Answer {
    let metadata = object.get("metadata");
    match (metadata.exists(), metadata.get("resourceVersion").str()) {
        (true, "") => Answer::Accepted,
        (true, _) => Answer::Persisted,
        (false, _) => Answer::Failed("the response is not an object".to_owned()),
    }
}

/// True if the message comes from a webhook or a policy. The status code does not show it, because each
/// chooses its own.
fn is_from_webhook_or_policy(message: &str) -> bool {
    let webhook =
        message.starts_with("admission webhook \"") || message.contains(": failed calling webhook \"");
    let policy = ["ValidatingAdmissionPolicy '", "MutatingAdmissionPolicy '"];
    webhook || policy.iter().any(|policy| message.contains(&format!("is forbidden: {policy}")))
}

/// True if the message comes from the authorizer: `… is forbidden: User "alice" cannot create resource "resourceslices"
/// …`.
fn is_from_authorizer(message: &str) -> bool {
    message
        .split_once("forbidden: User \"")
        .is_some_and(|(_, rest)| rest.contains("\" cannot create resource \""))
}

/// True if the message is about the request and not about the object: the server wrote it before admission.
fn is_about_request(message: &str) -> bool {
    [
        "the namespace of the ",
        "the name of the object",
        "the API version in the data",
        "the object provided is ",
    ]
    .iter()
    .any(|beginning| message.starts_with(beginning))
}

/// Returns the answer in a `Status` with reason `Invalid`; `None` if it lists no errors.
fn classify_invalid(status: Value<'_>) -> Option<Answer> {
    let (mut fields, mut texts) = (BTreeSet::new(), BTreeSet::new());
    for cause in status.get("details").get("causes").items() {
        let [kind, field, message] = ["reason", "field", "message"].map(|name| cause.get(name).str());
        if kind.is_empty() {
            return None;
        }
        let field = if field == "<nil>" { "" } else { field };
        fields.insert((kind.to_owned(), field.to_owned()));
        texts.insert(if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") });
    }
    (!fields.is_empty()).then_some(Answer::Refused(Refusal::Invalid { fields, texts }))
}

fn shortened_first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::{Answer, Refusal};

    fn status(code: u16, reason: &str, message: &str, details: &str) -> Answer {
        let message = message.replace('"', "\\\"");
        Answer::from_create_response(
            code,
            &format!(
                r#"{{"kind":"Status","reason":"{reason}","message":"{message}","details":{{{details}}}}}"#
            ),
        )
    }

    #[test]
    fn a_dry_run_leaves_nothing_behind() {
        assert_eq!(
            Answer::from_create_response(201, r#"{"metadata":{"name":"a","uid":"u"}}"#),
            Answer::Accepted
        );
        assert_eq!(
            Answer::from_create_response(201, r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#),
            Answer::Persisted
        );
        assert!(matches!(Answer::from_create_response(200, "<html>"), Answer::Failed(_)));
        assert_eq!(status(409, "AlreadyExists", "a already exists", ""), Answer::Accepted);
        assert!(matches!(status(409, "Conflict", "try again", ""), Answer::Failed(_)));
    }

    #[test]
    fn validation_and_decoding_are_verdicts() {
        let causes = r#""causes":[{"reason":"FieldValueRequired","field":"spec.x","message":"Required value"},
            {"reason":"FieldValueInvalid","field":"<nil>","message":"Invalid value"}]"#;
        let Answer::Refused(Refusal::Invalid { fields, texts }) =
            status(422, "Invalid", "a is invalid", causes)
        else {
            panic!("a refusal");
        };
        assert!(fields.contains(&("FieldValueInvalid".to_owned(), String::new())));
        assert!(texts.contains("spec.x: Required value") && texts.contains("Invalid value"));
        assert!(matches!(status(422, "Invalid", "a is invalid", ""), Answer::Failed(_)));
        let message =
            r#"DeviceClass in version "v1" cannot be handled as a DeviceClass: json: cannot unmarshal x"#;
        let refusal = Refusal::Undecodable("json: cannot unmarshal x".to_owned());
        assert_eq!(status(400, "BadRequest", message, ""), Answer::Refused(refusal));
    }

    #[test]
    fn other_admission_is_a_class_of_its_own() {
        for (code, reason, message) in [
            (403, "Forbidden", r#"admission webhook "a.example.com" denied the request: no"#),
            (422, "Invalid", r#"admission webhook "a.example.com" denied the request: no"#),
            (400, "BadRequest", r#"admission webhook "a.example.com" does not support dry run"#),
            (500, "InternalError", r#"Internal error occurred: failed calling webhook "a.example.com": EOF"#),
            (
                422,
                "Invalid",
                "claims \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            ),
            (403, "Forbidden", r#"resourceclaims.resource.k8s.io "a" is forbidden: exceeded quota: q"#),
            (400, "BadRequest", "failed to create node selector: no"),
            (
                403,
                "Forbidden",
                r#"resourceslices.resource.k8s.io "a" is forbidden: node "n1" not found for device "d""#,
            ),
        ] {
            let answer = status(code, reason, message, "");
            assert!(matches!(answer, Answer::OtherAdmission(_)), "{message}: {answer:?}");
            assert!(!answer.is_verdict());
        }
    }

    #[test]
    fn what_is_no_verdict_is_none() {
        let forbidden = r#"resourceslices.resource.k8s.io is forbidden: User "alice" cannot create resource "resourceslices" in API group"#;
        assert!(matches!(status(403, "Forbidden", forbidden, ""), Answer::NotAllowed(_)));
        let missing = "the server could not find the requested resource";
        assert_eq!(status(404, "NotFound", missing, ""), Answer::NotServed);
        for answer in [
            status(404, "NotFound", r#"namespaces "x" not found"#, r#""name":"x","kind":"namespaces""#),
            status(401, "Unauthorized", "Unauthorized", ""),
            status(429, "TooManyRequests", "too many requests", ""),
            status(500, "InternalError", "Internal error occurred", ""),
            status(503, "ServiceUnavailable", "apiserver is shutting down", ""),
            status(400, "BadRequest", "the namespace of the provided object does not match", ""),
            Answer::from_create_response(502, "<html>Bad Gateway</html>"),
            Answer::from_create_response(403, "<html>blocked</html>"),
            Answer::from_create_response(404, "404 page not found"),
            Answer::from_create_response(0, ""),
        ] {
            assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
            assert!(!answer.is_verdict());
        }
    }
}
