//! Why a request to the API server failed.
//!
//! Not the reason why a connection cannot be set up, which is an error with its causes from `kubeconfig` or `client`.

use tollgate_document::doc::{self, Value};

/// The error of a request to the API server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApiError {
    /// The API server responded with an error status.
    Status {
        /// HTTP status code, such as 403, 404 or 410.
        code: u16,
        /// The API server's message.
        message: String,
    },
    /// The API server cannot be reached, or the connection broke.
    Unreachable(String),
    /// The API server responded with success, but with a body of another kind than requested.
    Unexpected(String),
    /// The response is larger than what is read of it.
    TooLarge {
        /// Maximum number of bytes that are read of the response.
        limit: usize,
        /// The beginning of the response.
        head: String,
    },
}

impl ApiError {
    /// The error for a response that cannot be parsed, mostly the login page of a proxy.
    pub(super) fn not_json() -> ApiError {
        let why = "the response is not JSON (is there a login proxy in front of the API server?)";
        ApiError::Unexpected(why.to_owned())
    }

    /// The HTTP status code; 0 if there was no response, or if a success had an unexpected body.
    pub fn http_status_or_zero(&self) -> u16 {
        match self {
            ApiError::Status { code, .. } => *code,
            ApiError::Unreachable(_) | ApiError::Unexpected(_) | ApiError::TooLarge { .. } => 0,
        }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ApiError::Status { code, message } => write!(f, "the API server returned {code}: {message}"),
            ApiError::Unreachable(why) => write!(f, "cannot reach the API server: {why}"),
            ApiError::Unexpected(what) => f.write_str(what),
            ApiError::TooLarge { limit, .. } => write!(f, "the response has more than {limit} bytes"),
        }
    }
}

impl std::error::Error for ApiError {}

/// The error for a response with an error status: the message of its `Status` object, or else its first line.
pub(super) fn status_error(code: u16, text: &str) -> ApiError {
    let status = doc::parse(text).ok();
    let said = status.as_ref().map_or("", |status| status.root().get("message").str());
    let message = if said.is_empty() { text.lines().next().unwrap_or_default() } else { said };
    ApiError::Status { code, message: message.chars().take(500).collect() }
}

/// The error in an event of a watch, from its `Status` object.
pub(super) fn event_error(status: Value<'_>) -> ApiError {
    let code = status.get("code").int().and_then(|code| u16::try_from(code).ok());
    status_error(code.unwrap_or(500), &status.to_json())
}

#[cfg(test)]
mod tests {
    use super::{ApiError, status_error};

    #[test]
    fn an_error_has_the_message_of_the_api_server() {
        let message = |text: &str| match status_error(403, text) {
            ApiError::Status { code: 403, message } => message,
            other => panic!("{other}"),
        };
        assert_eq!(
            message(r#"{"kind":"Status","message":"pods is forbidden","code":403}"#),
            "pods is forbidden"
        );
        assert_eq!(message("<html>\nno\n</html>"), "<html>", "a proxy does not send a Status");
        assert_eq!(message(""), "");
        assert_eq!(message(&"x".repeat(2000)).len(), 500);
        assert_eq!(ApiError::Unreachable("gone".to_owned()).http_status_or_zero(), 0);
    }
}
