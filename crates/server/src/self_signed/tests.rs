//! When certificates are renewed, and that everybody can connect meanwhile.
#![expect(clippy::disallowed_methods, reason = "a test writes what another process would")]

use super::bundle::MAX_CAS;
use super::{
    CA_LIFETIME_SECONDS, CA_OVERLAP_SECONDS, DAY_SECONDS, RenewalPlan, SERVER_LIFETIME_SECONDS,
    SelfSignedCerts, Validity, pem_sections, plan_renewal, signer_index, validity_of,
};

const NOW: i64 = 1_800_000_000;

fn lasting(not_before: i64, length: i64) -> Validity {
    Validity { not_before, not_after: not_before + length }
}

#[test]
fn renewal_is_planned_with_overlap() {
    let young = lasting(NOW - 30 * DAY_SECONDS, CA_LIFETIME_SECONDS);
    let late = lasting(NOW - CA_LIFETIME_SECONDS + 10 * DAY_SECONDS, CA_LIFETIME_SECONDS);
    let gone = lasting(NOW - CA_LIFETIME_SECONDS - DAY_SECONDS, CA_LIFETIME_SECONDS);
    let newborn = lasting(NOW - CA_OVERLAP_SECONDS + DAY_SECONDS, CA_LIFETIME_SECONDS);
    let known = lasting(NOW - CA_OVERLAP_SECONDS, CA_LIFETIME_SECONDS);
    let fresh = lasting(NOW - DAY_SECONDS, SERVER_LIFETIME_SECONDS);
    let stale = lasting(NOW - SERVER_LIFETIME_SECONDS + DAY_SECONDS, SERVER_LIFETIME_SECONDS);
    let table: [(&str, &[Validity], _, RenewalPlan); 9] = [
        ("nothing yet", &[], None, RenewalPlan { keep: vec![], new_authority: true, sign_with: Some(0) }),
        (
            "all fresh",
            &[young],
            Some((fresh, Some(0))),
            RenewalPlan { keep: vec![true], new_authority: false, sign_with: None },
        ),
        (
            "server late",
            &[young],
            Some((stale, Some(0))),
            RenewalPlan { keep: vec![true], new_authority: false, sign_with: Some(0) },
        ),
        (
            "another CA's",
            &[young],
            Some((fresh, None)),
            RenewalPlan { keep: vec![true], new_authority: false, sign_with: Some(0) },
        ),
        (
            "CA late",
            &[late],
            Some((fresh, Some(0))),
            RenewalPlan { keep: vec![true], new_authority: true, sign_with: None },
        ),
        (
            "new CA unknown",
            &[late, newborn],
            Some((fresh, Some(0))),
            RenewalPlan { keep: vec![true, true], new_authority: false, sign_with: None },
        ),
        (
            "new CA known",
            &[late, known],
            Some((fresh, Some(0))),
            RenewalPlan { keep: vec![true, true], new_authority: false, sign_with: Some(1) },
        ),
        (
            "old CA gone",
            &[gone, young],
            Some((fresh, Some(1))),
            RenewalPlan { keep: vec![false, true], new_authority: false, sign_with: None },
        ),
        (
            "only gone",
            &[gone],
            Some((fresh, Some(0))),
            RenewalPlan { keep: vec![false], new_authority: true, sign_with: Some(0) },
        ),
    ];
    for (name, authorities, server, expected) in table {
        assert_eq!(plan_renewal(NOW, authorities, server), expected, "{name}");
    }
}

/// Three years, looked at every day: the server's certificate is always valid, never changes without need, and is
/// always signed by a CA that was in the bundle a week ago and is in the bundle now.
#[test]
fn nobody_is_locked_out_over_three_years() {
    let made = SelfSignedCerts::load_or_create(None, vec!["localhost".to_owned()], NOW).expect("made");
    let mut bundles = vec![pem_sections(&made.ca_bundle())];
    let mut changes = 0;
    for day in 1..3 * 365 {
        let now = NOW + day * DAY_SECONDS;
        changes += usize::from(made.renew_if_needed(now).expect("renewed"));
        let held = made.held.lock().expect("one user").clone();
        let server = held.server.expect("a server certificate");
        let valid = validity_of(&server.certificate).expect("readable");
        assert!(valid.not_before < now && now + DAY_SECONDS < valid.not_after, "day {day}");
        let issuer = signer_index(&server, &held.authorities).expect("a CA of the bundle");
        let issuer = &held.authorities[issuer].certificate;
        let week_ago = bundles.len().saturating_sub(7);
        assert!(bundles[week_ago].contains(issuer), "day {day}: signed by a CA that is too new");
        bundles.push(pem_sections(&made.ca_bundle()));
    }
    assert!((15..25).contains(&changes), "{changes} changes");
}

#[test]
fn a_directory_is_taken_up_again_and_a_damaged_one_is_made_anew() {
    let directory = std::env::temp_dir().join(format!("tollgate-selfmade-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let open = |names: &[&str], now| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        SelfSignedCerts::load_or_create(Some(directory.clone()), names, now).expect("made")
    };
    let first = open(&["localhost", "127.0.0.1", "::1"], NOW);
    let again = open(&["localhost", "127.0.0.1", "::1"], NOW + DAY_SECONDS);
    assert_eq!(first.ca_bundle(), again.ca_bundle());
    let pair = |certs: &SelfSignedCerts| certs.server_cert_and_key().expect("made");
    assert_eq!(pair(&first), pair(&again));
    let other_names = open(&["tollgate.example.com"], NOW + DAY_SECONDS);
    assert_eq!(first.ca_bundle(), other_names.ca_bundle());
    assert_ne!(pair(&first), pair(&other_names));
    std::fs::write(directory.join("ca.key"), "").expect("written");
    let damaged = open(&["localhost"], NOW + DAY_SECONDS);
    assert_ne!(first.ca_bundle(), damaged.ca_bundle());
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = std::env::temp_dir().join(format!("tollgate-refused-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("created");
    let file = directory.join("file");
    std::fs::write(&file, "").expect("written");
    let refused = |path| {
        let names = vec!["localhost".to_owned()];
        let error = SelfSignedCerts::load_or_create(Some(path), names, NOW).expect_err("not usable");
        format!("{error:#}")
    };
    assert!(refused(file.join("below")).starts_with("cannot read "), "a file is not a directory");
    let expected = format!("{} is not a directory", file.display());
    assert_eq!(refused(file.clone()), expected);
    assert_eq!(refused("/dev/null".into()), "/dev/null is not a directory", "not world-writable");
    std::fs::write(directory.join("ca.crt"), "theirs").expect("written");
    assert!(refused(directory.clone()).contains("Tollgate did not create"));
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).expect("changed");
    let expected = format!("{} is world-writable", directory.display());
    assert!(refused(directory.clone()).starts_with(&expected));
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn the_bundles_of_replicas_add_up_and_agree() {
    let made = |now: i64| SelfSignedCerts::load_or_create(None, vec!["localhost".to_owned()], now).unwrap();
    let (first, second) = (made(NOW), made(NOW + 1));
    let one = first.merged_bundle("", NOW);
    assert_eq!(one, first.ca_bundle());
    let two = second.merged_bundle(&one, NOW);
    assert_eq!(pem_sections(&two).len(), 2);
    assert_eq!(first.merged_bundle(&two, NOW), two, "nobody has anything to add");
    assert_eq!(first.merged_bundle(&format!("{two}{two}"), NOW), two);
    // Other CAs, expired CAs and everything that is not a certificate are removed.
    let server = first.server_cert_and_key().expect("made").0;
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(first.merged_bundle(&format!("{server}nonsense\n{nonsense}"), NOW), one);
    let later = made(NOW + CA_LIFETIME_SECONDS + DAY_SECONDS);
    assert_eq!(later.merged_bundle(&two, NOW + CA_LIFETIME_SECONDS + DAY_SECONDS), later.ca_bundle());
}

/// Crashes of one replica, which gets a new CA with each restart, must not lock out the others.
#[test]
fn a_replica_that_restarts_for_ever_pushes_no_live_one_out() {
    const LIVE: usize = 5;
    let made = |now: i64| SelfSignedCerts::load_or_create(None, vec!["localhost".to_owned()], now).unwrap();
    let mut live: Vec<SelfSignedCerts> = (0..LIVE).map(|_| made(NOW)).collect();
    let mut held = String::new();
    for restart in 0..100 {
        live[restart % 2] = made(NOW);
        // The replicas write in any order until all are content.
        let mut writes = 0;
        while let Some(merged) = live
            .iter()
            .cycle()
            .skip(restart)
            .take(LIVE)
            .map(|one| one.merged_bundle(&held, NOW))
            .find(|merged| *merged != held)
        {
            held = merged;
            writes += 1;
            assert!(writes <= 2 * LIVE, "restart {restart}: they overwrite each other");
        }
        let certificates = pem_sections(&held);
        assert!(certificates.len() <= MAX_CAS, "{}", certificates.len());
        for one in &live {
            assert!(certificates.contains(&one.ca_bundle()), "restart {restart}");
        }
    }
    assert_eq!(pem_sections(&held).len(), MAX_CAS);
}
