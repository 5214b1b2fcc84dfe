//! Replays the stored inputs of every target, and the seeds: none breaks a law.
#![expect(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use tollgate_fuzz::{corpus, target};

fn replay(name: &str) {
    let target = target(name).expect("a target");
    let stored = corpus::read(name);
    assert!(!stored.is_empty(), "{name} has no stored inputs");
    for input in stored.iter().chain(&(target.seeds)()) {
        (target.run)(input);
    }
}

/// One test for each target, so that they run in parallel.
macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn no_target_is_forgotten() {
            let named = [$(stringify!($name)),*];
            for target in tollgate_fuzz::TARGETS {
                assert!(named.contains(&target.name), "{} is not replayed", target.name);
            }
        }
    };
}

replays!(review object policy schema cel formats snapshot coverage allocator);
