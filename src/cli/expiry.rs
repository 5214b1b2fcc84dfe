//! `--expires`: until when a DeviceTaintRule is needed, as a duration or a time.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::outcome::Failure;
use super::units::parse_duration;

/// The value of `--expires`: a duration from the creation of a rule, or a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RuleExpiryArg {
    After(Duration),
    At(DateTime<Utc>),
}

impl RuleExpiryArg {
    pub(super) fn parse(text: &str) -> Result<RuleExpiryArg, String> {
        if let Ok(duration) = parse_duration(text) {
            return Ok(RuleExpiryArg::After(duration));
        }
        let Ok(time) = DateTime::parse_from_rfc3339(text) else {
            let message = "expected a duration such as 8h, or an RFC 3339 time such as 2026-11-16T18:00:00Z";
            return Err(message.to_owned());
        };
        Ok(RuleExpiryArg::At(time.to_utc()))
    }

    /// Returns the expiry as an RFC 3339 time, for a rule that is created at `now`; an error if it is in the past
    /// or too far away.
    pub(super) fn resolve_rfc3339(self, now: &str) -> Result<String, Failure> {
        let now =
            DateTime::parse_from_rfc3339(now).map_err(|error| Failure::Internal(error.into()))?.to_utc();
        let time = match self {
            RuleExpiryArg::At(time) if time <= now => {
                return Err(Failure::Usage("--expires: this time is in the past".to_owned()));
            }
            // The annotation has whole seconds.
            RuleExpiryArg::After(duration) if duration < Duration::from_secs(1) => {
                return Err(Failure::Usage("--expires: this duration is too short".to_owned()));
            }
            RuleExpiryArg::At(time) => Some(time),
            RuleExpiryArg::After(duration) => {
                TimeDelta::from_std(duration).ok().and_then(|delta| now.checked_add_signed(delta))
            }
        };
        let time = time.ok_or_else(|| Failure::Usage("--expires: this duration is too long".to_owned()))?;
        Ok(time.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

#[cfg(test)]
mod tests {
    use super::RuleExpiryArg;

    #[test]
    fn an_expiry_is_a_duration_or_a_time() {
        let now = "2026-11-16T09:00:00Z";
        let resolved =
            |text: &str| RuleExpiryArg::parse(text).ok().and_then(|expiry| expiry.resolve_rfc3339(now).ok());
        for (text, expected) in [
            ("8h", Some("2026-11-16T17:00:00Z")),
            ("1h30m", Some("2026-11-16T10:30:00Z")),
            ("2026-11-17T00:00:00+02:00", Some("2026-11-16T22:00:00Z")),
            ("2026-11-16T08:59:59Z", None),
            ("0s", None),
            ("tomorrow", None),
        ] {
            assert_eq!(resolved(text).as_deref(), expected, "{text}");
        }
    }
}
