//! Times: `timestamp`, `duration`, their parts, and arithmetic and order by the usual operators.
//!
//! Zones are UTC and offsets (`+02:00`): names of zones need a table that changes with the law of countries, and two
//! replicas with two tables would give two answers. There is no `now`: a verdict depends on the request alone.

use std::cmp::Ordering;

use ::cel::common::traits::{Adder, Comparer, Subtractor};
use ::cel::common::types::{CelInt, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::{CelResult, argument, cel_type, charge_value, function_error, integer, string, text};
use tollgate_formats::gotime::{self, Timestamp};

/// Bytes of a time: the reason why a text is none quotes it several times.
const MAX_LENGTH: usize = 256;
const NANOS: i128 = 1_000_000_000;
/// The first second of year 1 and the last of year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A timestamp as a CEL value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Moment(Timestamp);

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Span(pub(super) i64);

/// The operators that both have.
macro_rules! timely {
    ($rust:ident, $constant:ident, $name:literal) => {
        cel_type! { $rust, $constant, $name;
            fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn as_subtractor<'b, 'v>(&'b self) -> Option<&'b (dyn Subtractor + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn as_comparer(&self) -> Option<&dyn Comparer> {
                Some(self)
            }
        }

        impl Comparer for $rust {
            fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
                let known = other.downcast_ref::<$rust>();
                known.map(|other| self.cmp(other)).ok_or_else(|| unsupported("compare", self, other))
            }
        }
    };
}
timely! { Moment, MOMENT, "google.protobuf.Timestamp" }
timely! { Span, SPAN, "google.protobuf.Duration" }

impl Moment {
    /// Parses a time in RFC 3339 format.
    pub(super) fn read(text: &str) -> Result<Moment, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("a time of {} bytes is too long; the maximum is {MAX_LENGTH}", text.len()));
        }
        let time = gotime::parse(text)?;
        Moment::checked(time).ok_or_else(|| format!("{text:?} is outside the years 1 to 9999"))
    }

    fn checked(time: Timestamp) -> Option<Moment> {
        SECONDS.contains(&time.seconds).then_some(Moment(time))
    }

    fn nanos(self) -> i128 {
        i128::from(self.0.seconds) * NANOS + i128::from(self.0.nanos)
    }

    fn of_nanos(nanos: i128) -> Option<Moment> {
        let seconds = i64::try_from(nanos.div_euclid(NANOS)).ok()?;
        Moment::checked(Timestamp { seconds, nanos: u32::try_from(nanos.rem_euclid(NANOS)).ok()? })
    }

    fn text(self) -> String {
        let whole = gotime::rfc3339(self.0);
        match self.0.nanos {
            0 => whole,
            nanos => format!("{}.{}Z", whole.trim_end_matches('Z'), fraction(nanos)),
        }
    }
}

impl Span {
    /// Reads `1h30m`, `1.5s`, `-2ms`: a sign, then numbers with units.
    pub(super) fn read(text: &str) -> Result<Span, String> {
        gotime::parse_duration(text).map(Span).map_err(|error| format!("{text:?} is {error}"))
    }

    fn text(self) -> String {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let sign = if self.0 < 0 && seconds == 0 { "-" } else { "" };
        match u32::try_from(nanos.abs()).unwrap_or_default() {
            0 => format!("{seconds}s"),
            nanos => format!("{sign}{seconds}.{}s", fraction(nanos)),
        }
    }
}

/// Nanoseconds after the point, without zeros at the end.
fn fraction(nanos: u32) -> String {
    format!("{nanos:09}").trim_end_matches('0').to_owned()
}

fn overflow() -> ExecutionError {
    function_error("duration", "the result is out of range")
}

fn unsupported(operator: &str, left: &dyn Val, right: &(dyn Val + '_)) -> ExecutionError {
    let types = vec![left.get_type().name().to_owned(), right.get_type().name().to_owned()];
    ExecutionError::no_such_overload(operator, types)
}

impl Adder for Moment {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let span = other.downcast_ref::<Span>().ok_or_else(|| unsupported("_+_", self, other))?;
        Moment::of_nanos(self.nanos() + i128::from(span.0)).map(CowVal::owned).ok_or_else(overflow)
    }
}

impl Subtractor for Moment {
    fn sub<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if let Some(moment) = other.downcast_ref::<Moment>() {
            let nanos = i64::try_from(self.nanos() - moment.nanos());
            return nanos.map(|nanos| CowVal::owned(Span(nanos))).map_err(|_too_long| overflow());
        }
        let span = other.downcast_ref::<Span>().ok_or_else(|| unsupported("_-_", self, other))?;
        Moment::of_nanos(self.nanos() - i128::from(span.0)).map(CowVal::owned).ok_or_else(overflow)
    }
}

impl Adder for Span {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if let Some(moment) = other.downcast_ref::<Moment>() {
            let sum = Moment::of_nanos(moment.nanos() + i128::from(self.0));
            return sum.map(CowVal::owned).ok_or_else(overflow);
        }
        let span = other.downcast_ref::<Span>().ok_or_else(|| unsupported("_+_", self, other))?;
        self.0.checked_add(span.0).map(|nanos| CowVal::owned(Span(nanos))).ok_or_else(overflow)
    }
}

impl Subtractor for Span {
    fn sub<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let span = other.downcast_ref::<Span>().ok_or_else(|| unsupported("_-_", self, other))?;
        self.0.checked_sub(span.0).map(|nanos| CowVal::owned(Span(nanos))).ok_or_else(overflow)
    }
}

/// A moment on a calendar.
struct Calendar {
    days: i64,
    second: i64,
    millis: i64,
}

impl Calendar {
    fn date(&self) -> (i64, i64, i64) {
        gotime::date(self.days)
    }

    fn day_of_year(&self) -> i64 {
        self.days - gotime::days_before(self.date().0, 1, 1)
    }
}

/// `-2`, `+02:00`, `UTC`: seconds east of UTC.
fn offset(zone: &str) -> Result<i64, String> {
    let fault = || format!("time zone {zone:?} is not supported; use UTC or an offset such as +02:00");
    if zone.is_empty() || zone == "UTC" {
        return Ok(0);
    }
    let (sign, rest) = match zone.strip_prefix(['-', '+']) {
        Some(rest) => (if zone.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, zone),
    };
    let (hours, minutes) = rest.split_once(':').ok_or_else(fault)?;
    let read = |digits: &str, most: i64| {
        let number =
            (digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits);
        number
            .and_then(|digits| digits.parse::<i64>().ok())
            .filter(|number| *number <= most)
            .ok_or_else(fault)
    };
    Ok(sign * (read(hours, 23)? * 3600 + read(minutes, 59)? * 60))
}

fn part<'b, 'v>(arguments: &[CowVal<'b, 'v>], look: fn(&Calendar) -> i64) -> CelResult<'b, 'v> {
    charge_value()?;
    let moment = argument::<Moment>(arguments, 0)?.0;
    let east = match arguments.len() {
        1 => 0,
        _ => offset(text(arguments, 1)?).map_err(|reason| function_error("timestamp", reason))?,
    };
    let seconds = moment.seconds + east;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    Ok(integer(look(&Calendar { days, second, millis: i64::from(moment.nanos / 1_000_000) })))
}

/// Adds a part of a moment, with and without a zone.
macro_rules! part {
    ($env:ident, $name:literal, $look:expr) => {
        $env.add_member_overload($name, concat!("timestamp.", $name), MOMENT, Vec::new(), |arguments| {
            part(&arguments, $look)
        })?;
        $env.add_member_overload(
            $name,
            concat!("timestamp.zone.", $name),
            MOMENT,
            vec![STRING_TYPE],
            |arguments| part(&arguments, $look),
        )?;
    };
}

/// Adds a duration in whole units.
macro_rules! whole {
    ($env:ident, $name:literal, $nanos:literal) => {
        $env.add_member_overload($name, concat!("duration.", $name), SPAN, Vec::new(), |arguments| {
            Ok(integer(argument::<Span>(&arguments, 0)?.0 / $nanos))
        })?;
    };
}

pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    part!(env, "getFullYear", |at| at.date().0);
    part!(env, "getMonth", |at| at.date().1 - 1);
    part!(env, "getDate", |at| at.date().2);
    part!(env, "getDayOfMonth", |at| at.date().2 - 1);
    // 1970 began on a Thursday.
    part!(env, "getDayOfWeek", |at| (at.days + 4).rem_euclid(7));
    part!(env, "getDayOfYear", Calendar::day_of_year);
    part!(env, "getHours", |at| at.second / 3600);
    part!(env, "getMinutes", |at| at.second / 60 % 60);
    part!(env, "getSeconds", |at| at.second % 60);
    part!(env, "getMilliseconds", |at| at.millis);
    whole!(env, "getHours", 3_600_000_000_000);
    whole!(env, "getMinutes", 60_000_000_000);
    whole!(env, "getSeconds", 1_000_000_000);
    whole!(env, "getMilliseconds", 1_000_000);
    env.add_overload("timestamp", "string_to_timestamp", vec![STRING_TYPE], |arguments| {
        charge_value()?;
        let moment =
            Moment::read(text(&arguments, 0)?).map_err(|reason| function_error("timestamp", reason))?;
        Ok(CowVal::owned(moment))
    })?;
    env.add_overload("timestamp", "int_to_timestamp", vec![INT_TYPE], |arguments| {
        let seconds = *argument::<CelInt>(&arguments, 0)?.inner();
        let moment = Moment::checked(Timestamp { seconds, nanos: 0 });
        moment.map(CowVal::owned).ok_or_else(|| function_error("timestamp", "is outside the years 1 to 9999"))
    })?;
    env.add_overload("timestamp", "timestamp_to_timestamp", vec![MOMENT], same)?;
    env.add_overload("duration", "string_to_duration", vec![STRING_TYPE], |arguments| {
        charge_value()?;
        let span = Span::read(text(&arguments, 0)?).map_err(|reason| function_error("duration", reason))?;
        Ok(CowVal::owned(span))
    })?;
    env.add_overload("duration", "duration_to_duration", vec![SPAN], same)?;
    env.add_overload("string", "timestamp_to_string", vec![MOMENT], |arguments| {
        Ok(string(argument::<Moment>(&arguments, 0)?.text()))
    })?;
    env.add_overload("string", "duration_to_string", vec![SPAN], |arguments| {
        Ok(string(argument::<Span>(&arguments, 0)?.text()))
    })?;
    env.add_overload("int", "timestamp_to_int", vec![MOMENT], |arguments| {
        Ok(integer(argument::<Moment>(&arguments, 0)?.0.seconds))
    })?;
    env.add_overload("int", "duration_to_int", vec![SPAN], |arguments| {
        Ok(integer(argument::<Span>(&arguments, 0)?.0))
    })
}

fn same<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    arguments.pop().ok_or_else(overflow)
}
