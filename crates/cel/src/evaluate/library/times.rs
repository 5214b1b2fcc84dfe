//! Times and durations: arithmetic, parts, texts.
//!
//! Zones are offsets such as `+02:00`, or UTC. Other names need the time zone database, which the server has and this
//! crate does not: a name that may be in it is not supported, and any other name gives the server's error.

use std::fmt::Write as _;

use tollgate_formats::gotime::{self, Timestamp};

use crate::evaluate::value::{EvalFailure, Evaluated, OffsetTimestamp, Value, eval_error};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// The range of valid times, in seconds since 1970. cel-go `minUnixTime`, `maxUnixTime`
const YEARS_1_TO_9999: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    let (moment, zone) = match args {
        [Value::Duration(nanos)] => {
            let units = i128::from(*nanos) / duration_unit(name)?;
            return Some(Ok(Value::Int(i64::try_from(units).unwrap_or(i64::MAX))));
        }
        [Value::Timestamp(moment)] => (moment, "UTC"),
        [Value::Timestamp(moment), Value::String(zone)] => (moment, &**zone),
        _ => return None,
    };
    let in_utc = time_part(name, *moment, 0)?;
    let in_zone = |offset| Value::Int(time_part(name, *moment, offset).unwrap_or(in_utc));
    Some(zone_offset_seconds(zone).map(in_zone))
}

/// The nanoseconds of the unit in which a function returns a duration; `None` for other functions.
fn duration_unit(name: &str) -> Option<i128> {
    match name {
        "getHours" => Some(3600 * NANOS_PER_SECOND),
        "getMinutes" => Some(60 * NANOS_PER_SECOND),
        "getSeconds" => Some(NANOS_PER_SECOND),
        "getMilliseconds" => Some(NANOS_PER_SECOND / 1000),
        _ => None,
    }
}

/// The part of a time that a function returns, in a time zone; `None` for other functions.
fn time_part(name: &str, moment: OffsetTimestamp, offset: i64) -> Option<i64> {
    let local = moment.time.seconds.saturating_add(offset);
    let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = gotime::date_from_days(days);
    Some(match name {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDayOfYear" => days - gotime::days_since_1970(year, 1, 1),
        "getDayOfMonth" => day - 1,
        "getDate" => day,
        // The first of January 1970 was a Thursday.
        "getDayOfWeek" => (days + 4).rem_euclid(7),
        "getHours" => second / 3600,
        "getMinutes" => second / 60 % 60,
        "getSeconds" => second % 60,
        "getMilliseconds" => i64::from(moment.time.nanos / 1_000_000),
        _ => return None,
    })
}

/// The offset of a time zone in seconds east of UTC.
fn zone_offset_seconds(zone: &str) -> Result<i64, EvalFailure> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return match zone {
            "" | "UTC" | "Local" => Ok(0),
            _ if zone.contains("..") || zone.starts_with(['/', '\\']) => {
                eval_error("time: invalid location name")
            }
            _ if may_be_zone_name(zone) => Err(EvalFailure::Unsupported("time zones in CEL expressions")),
            _ => eval_error(format!("unknown time zone {zone}")),
        };
    };
    let (hours, minutes) = (parse_integer(hours)?, parse_integer(minutes)?);
    let minutes = if zone.starts_with('-') { -minutes } else { minutes };
    Ok(hours.saturating_mul(60).saturating_add(minutes).saturating_mul(60))
}

/// The first parts of the names of zones in the time zone database.
const ZONE_AREAS: &str = "Africa America Antarctica Arctic Asia Atlantic Australia Brazil Canada Chile Etc \
     Europe Indian Mexico Pacific US posix right";

/// The IANA time zones whose names have no area, such as `Europe/`, in front.
const ZONES_WITHOUT_AREA: &str = "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire Factory GB GB-Eire GMT GMT+0 \
     GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT \
     NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT Universal W-SU WET Zulu \
     localtime";

/// True if the time zone database may contain a zone with this name. Its cities change, its areas do not.
fn may_be_zone_name(zone: &str) -> bool {
    match zone.split_once('/') {
        Some((area, city)) => ZONE_AREAS.split(' ').any(|known| known == area) && !city.is_empty(),
        None => ZONES_WITHOUT_AREA.split(' ').any(|known| known == zone),
    }
}

/// Parses an integer like Go's `strconv.Atoi`.
fn parse_integer(text: &str) -> Result<i64, EvalFailure> {
    use std::num::IntErrorKind;
    text.parse::<i64>().or_else(|problem| {
        let problem = match problem.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        eval_error(format!("strconv.Atoi: parsing {}: {problem}", tollgate_formats::gofmt::quote(text)))
    })
}

pub(super) fn duration_or_overflow(nanos: Option<i64>) -> Evaluated {
    nanos.map_or_else(|| eval_error("duration overflow"), |nanos| Ok(Value::Duration(nanos)))
}

pub(super) fn timestamp_in_range(moment: OffsetTimestamp) -> Evaluated {
    if YEARS_1_TO_9999.contains(&moment.time.seconds) {
        Ok(Value::Timestamp(moment))
    } else {
        eval_error("timestamp overflow")
    }
}

fn nanos_since_1970(moment: OffsetTimestamp) -> i128 {
    i128::from(moment.time.seconds) * NANOS_PER_SECOND + i128::from(moment.time.nanos)
}

pub(super) fn shifted_timestamp(moment: OffsetTimestamp, nanos: i128) -> Evaluated {
    let sum = nanos_since_1970(moment) + nanos;
    let (Ok(seconds), Ok(nanos)) =
        (i64::try_from(sum.div_euclid(NANOS_PER_SECOND)), u32::try_from(sum.rem_euclid(NANOS_PER_SECOND)))
    else {
        return eval_error("timestamp overflow");
    };
    timestamp_in_range(OffsetTimestamp { time: Timestamp { seconds, nanos }, ..moment })
}

pub(super) fn duration_between(left: OffsetTimestamp, right: OffsetTimestamp) -> Evaluated {
    let nanos = nanos_since_1970(left) - nanos_since_1970(right);
    i64::try_from(nanos).map_or_else(|_| eval_error("integer overflow"), |nanos| Ok(Value::Duration(nanos)))
}

/// Formats a time like Go's `RFC3339Nano`, with its original time zone offset.
pub(super) fn rfc3339_text(moment: OffsetTimestamp) -> String {
    let seconds = moment.time.seconds.saturating_add(moment.offset);
    let mut text = gotime::rfc3339(Timestamp { seconds, nanos: 0 });
    text.pop();
    if moment.time.nanos > 0 {
        let fraction = format!(".{:09}", moment.time.nanos);
        text.push_str(fraction.trim_end_matches('0'));
    }
    if moment.offset == 0 {
        text.push('Z');
    } else {
        let (sign, minutes) = (if moment.offset < 0 { '-' } else { '+' }, moment.offset.abs() / 60);
        // Writing to a string does not fail.
        let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
    text
}
