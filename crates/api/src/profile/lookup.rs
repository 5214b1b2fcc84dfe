//! Finds a profile by its name, by a version as tools print it, or as an API server reports it.
//!
//! A release means its newest patch. A patch that behaves differently has its own profile, which only its full
//! version selects.

use super::releases::{ALL, EARLIER_PATCHES, EarlierPatches};
use super::{Profile, ProfileMatch};

impl Profile {
    /// Every release and draft, in order, and after each release its patches that differ from the newest.
    pub fn all_with_patches() -> impl Iterator<Item = &'static Profile> {
        ALL.iter().copied().flat_map(|profile| {
            let patches = EARLIER_PATCHES.iter().filter(move |patches| patches.of.name == profile.name);
            std::iter::once(profile).chain(patches.map(|patches| patches.profile))
        })
    }

    /// The profile with exactly that name; `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Profile> {
        Profile::all_with_patches().find(|profile| profile.name == name)
    }

    /// True if both profiles are of the same minor release.
    pub fn is_same_minor_release(&self, other: &Profile) -> bool {
        self.is_release && other.is_release && self.fields == other.fields
    }

    /// The profile of this release at a patch; this one if the patch does not differ from the newest, or is not known.
    fn at_patch(&'static self, patch: Option<u64>) -> &'static Profile {
        let is_earlier = |patches: &&EarlierPatches| {
            patches.of.name == self.name && patch.is_some_and(|patch| patch <= patches.last)
        };
        EARLIER_PATCHES.iter().find(is_earlier).map_or(self, |patches| patches.profile)
    }

    /// The profile for a name or a version as tools print it (`v1.37`, `1.37.1`, `v1.37.1-gke.100`). Without
    /// a patch version, the newest patch.
    pub fn from_name_or_version(text: &str) -> Option<&'static Profile> {
        let release = || {
            let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
            let (major, minor, patch) = (parts.next()?, parts.next()?, parts.next());
            // `1.37+` is how some servers say that they are a build of their own.
            let end = minor.find(['-', '+']).filter(|_| patch.is_none()).unwrap_or(minor.len());
            let patch_number = patch.map(|patch| patch.split(['-', '+']).next().unwrap_or_default());
            let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let name = format!("{major}.{}", minor.get(..end)?);
            let release = ALL.iter().copied().find(|profile| {
                profile.is_release && profile.name == name && patch_number.is_none_or(is_number)
            })?;
            Some(release.at_patch(patch_number.and_then(|patch| patch.parse().ok())))
        };
        Profile::named(text).or_else(release)
    }

    /// The profile of an API server of a version such as `1.37` or `1.37.0` (vendors write `1.37+`), and how well it
    /// matches: the nearest one for an unknown release. `None` if that is no version.
    pub fn nearest_for_server(version: &str) -> Option<(&'static Profile, ProfileMatch)> {
        let number = |text: &str| -> Option<u64> {
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.get(..digits)?.parse().ok()
        };
        let mut parts = version.strip_prefix('v').unwrap_or(version).splitn(3, '.');
        let wanted = (number(parts.next()?)?, number(parts.next()?)?);
        let patch = parts.next().and_then(number);
        let release = |profile: &'static Profile| {
            let (major, minor) = profile.name.split_once('.').filter(|_| profile.is_release)?;
            Some(((number(major)?, number(minor)?), profile))
        };
        let releases = ALL.iter().copied().filter_map(release);
        // The newest that is not newer than the server, else the oldest: an older server lacks what a release added.
        let mut releases: Vec<((u64, u64), &'static Profile)> = releases.collect();
        releases.sort_by_key(|(known, _)| *known);
        let not_newer = releases.iter().rfind(|(known, _)| *known <= wanted);
        let (found, profile) = not_newer.or(releases.first()).copied()?;
        let fit = match found.cmp(&wanted) {
            std::cmp::Ordering::Equal => return Some((profile.at_patch(patch), ProfileMatch::Exact)),
            std::cmp::Ordering::Less => ProfileMatch::NewerServer,
            std::cmp::Ordering::Greater => ProfileMatch::OlderServer,
        };
        Some((profile, fit))
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Profile, ProfileMatch};

    #[test]
    fn a_release_is_understood_as_tools_print_it() {
        for text in
            ["1.37", "v1.37", "1.37.1", "v1.37.12", "v1.37.1-gke.100", "v1.37.1+k3s1", "1.37+", "v1.37-eks"]
        {
            assert_eq!(
                Profile::from_name_or_version(text).map(|profile| profile.name),
                Some("1.37"),
                "{text}"
            );
        }
        for text in ["1.37.0", "v1.37.0", "1.37.00", "v1.37.0-rc.1", "v1.37.0+k3s1"] {
            assert_eq!(
                Profile::from_name_or_version(text).map(|profile| profile.name),
                Some("1.37.0"),
                "{text}"
            );
        }
        for text in ["v1.36.4", "1.36.0", "1.36.99999999999999999999"] {
            assert_eq!(
                Profile::from_name_or_version(text).map(|profile| profile.name),
                Some("1.36"),
                "{text}"
            );
        }
        assert_eq!(
            Profile::from_name_or_version("kep-5055-r2").map(|profile| profile.name),
            Some("kep-5055-r2")
        );
        for text in [
            "",
            "v",
            "1",
            "37",
            "1.3",
            "1.377",
            "1.9",
            "vv1.37",
            "1.37.",
            "1.37.x",
            "1.37 ",
            "vkep-5055",
            "1.-37",
            "1.37.1.",
        ] {
            assert!(Profile::from_name_or_version(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_server_is_judged_by_its_release_or_the_nearest() {
        let mut releases = ALL.iter().filter(|profile| profile.is_release).map(|profile| profile.name);
        let newest = releases.next_back().expect("a release");
        let table = [
            ("1.33", Some(("1.33", ProfileMatch::Exact))),
            ("1.37", Some(("1.37", ProfileMatch::Exact))),
            ("1.37.0", Some(("1.37.0", ProfileMatch::Exact))),
            ("1.37.0-rc.1", Some(("1.37.0", ProfileMatch::Exact))),
            ("v1.37.1", Some(("1.37", ProfileMatch::Exact))),
            ("1.36+", Some(("1.36", ProfileMatch::Exact))),
            ("1.36.0", Some(("1.36", ProfileMatch::Exact))),
            ("1.99", Some((newest, ProfileMatch::NewerServer))),
            ("1.99.0", Some((newest, ProfileMatch::NewerServer))),
            ("1.9", Some(("1.33", ProfileMatch::OlderServer))),
            ("2.0", Some((newest, ProfileMatch::NewerServer))),
            ("1.", None),
            ("1", None),
            ("", None),
            ("one.37", None),
        ];
        for (version, expected) in table {
            let found = Profile::nearest_for_server(version).map(|(profile, fit)| (profile.name, fit));
            assert_eq!(found, expected, "{version}");
        }
    }
}
