//! Releases and drafts: what `tollgate profiles` prints, as tables.

use super::generated::{cell, table};
use crate::cli::profiles::{ProfileInfo, profile_info, side_by_side_rows};
use crate::profile;

pub(super) fn profiles() -> String {
    let rows: Vec<Vec<String>> = profile::ALL
        .iter()
        .map(|profile| {
            let name = format!("`{}`", profile.name);
            vec![name, cell(profile.about)]
        })
        .collect();
    table(&["profile", "description"], &rows)
}

/// Feature gates, versions and limits of the releases.
pub(super) fn side_by_side() -> String {
    let has_number = |name: &str| name.starts_with("1.");
    let infos: Vec<ProfileInfo> = profile::ALL
        .iter()
        .filter(|profile| has_number(profile.name))
        .map(|profile| profile_info(profile))
        .collect();
    let rows: Vec<Vec<String>> =
        side_by_side_rows(&infos).iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
    let header: Vec<&str> = std::iter::once("")
        .chain(profile::ALL.iter().map(|profile| profile.name).filter(|name| has_number(name)))
        .collect();
    table(&header, &rows)
}
