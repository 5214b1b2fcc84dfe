//! Versions: `semver('1.2.3')`, `isSemver`, `major`, `minor`, `patch`, `isGreaterThan`, `isLessThan`, `compareTo`.
//!
//! Ordered as semver.org says; as in Kubernetes, `==` is that order, so that build parts make no difference.

use std::cmp::Ordering;

use ::cel::common::types::STRING_TYPE;
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use super::{argument, boolean, cel_type, charge_value, function_error, integer, text};
use tollgate_formats::names::is_semver;

/// Bytes of a version, so that comparing two costs next to nothing.
const MAX_LENGTH: usize = 256;

/// A semantic version as a CEL value.
#[derive(Clone, Debug)]
pub(super) struct CelSemver {
    core: [i64; 3],
    pre: Vec<PreReleasePart>,
}

/// A part of a pre-release: numbers come before words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PreReleasePart {
    Number(u64),
    Word(Box<str>),
}

cel_type! { CelSemver, VERSION, "kubernetes.Semver"; }

impl CelSemver {
    pub(super) fn read(text: &str) -> Result<CelSemver, String> {
        let fault = |reason: &str| format!("{text:?} is not a semantic version{reason}");
        if text.len() > MAX_LENGTH {
            return Err(format!(
                "a version of {} bytes is too long; the maximum is {MAX_LENGTH}",
                text.len()
            ));
        }
        if !is_semver(text) {
            return Err(fault(", such as 1.2.3 or 1.2.3-rc.1"));
        }
        let front = text.split('+').next().unwrap_or_default();
        let (core, pre) = front.split_once('-').map_or((front, None), |(core, pre)| (core, Some(pre)));
        let mut numbers = core.split('.').map(str::parse::<i64>);
        let mut next = || numbers.next().and_then(Result::ok).ok_or_else(|| fault(": a number is too large"));
        let core = [next()?, next()?, next()?];
        let part = |part: &str| match part.parse() {
            Ok(number) => Ok(PreReleasePart::Number(number)),
            Err(_) if part.bytes().all(|byte| byte.is_ascii_digit()) => Err(fault(": a number is too large")),
            Err(_) => Ok(PreReleasePart::Word(part.into())),
        };
        let pre = pre.map_or(Ok(Vec::new()), |pre| pre.split('.').map(part).collect::<Result<_, _>>())?;
        Ok(CelSemver { core, pre })
    }
}

impl Ord for CelSemver {
    fn cmp(&self, other: &CelSemver) -> Ordering {
        // A version comes after its pre-releases.
        let pre = match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.pre.cmp(&other.pre),
        };
        self.core.cmp(&other.core).then(pre)
    }
}

impl PartialOrd for CelSemver {
    fn partial_cmp(&self, other: &CelSemver) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for CelSemver {
    fn eq(&self, other: &CelSemver) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for CelSemver {}

pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("semver", "string_to_semver", vec![STRING_TYPE], |arguments| {
        charge_value()?;
        let version =
            CelSemver::read(text(&arguments, 0)?).map_err(|reason| function_error("semver", reason))?;
        Ok(CowVal::owned(version))
    })?;
    env.add_overload("isSemver", "is_semver", vec![STRING_TYPE], |arguments| {
        charge_value()?;
        Ok(boolean(CelSemver::read(text(&arguments, 0)?).is_ok()))
    })?;
    env.add_member_overload("major", "semver.major", VERSION, Vec::new(), |arguments| {
        Ok(integer(argument::<CelSemver>(&arguments, 0)?.core[0]))
    })?;
    env.add_member_overload("minor", "semver.minor", VERSION, Vec::new(), |arguments| {
        Ok(integer(argument::<CelSemver>(&arguments, 0)?.core[1]))
    })?;
    env.add_member_overload("patch", "semver.patch", VERSION, Vec::new(), |arguments| {
        Ok(integer(argument::<CelSemver>(&arguments, 0)?.core[2]))
    })?;
    let one = || vec![VERSION];
    env.add_member_overload("isGreaterThan", "semver.isGreaterThan", VERSION, one(), |arguments| {
        Ok(boolean(compare(&arguments)?.is_gt()))
    })?;
    env.add_member_overload("isLessThan", "semver.isLessThan", VERSION, one(), |arguments| {
        Ok(boolean(compare(&arguments)?.is_lt()))
    })?;
    env.add_member_overload("compareTo", "semver.compareTo", VERSION, one(), |arguments| {
        Ok(integer(compare(&arguments)? as i64))
    })
}

fn compare(arguments: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    charge_value()?;
    Ok(argument::<CelSemver>(arguments, 0)?.cmp(argument::<CelSemver>(arguments, 1)?))
}
