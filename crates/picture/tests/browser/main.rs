//! The pages in a real browser. Without one the test says so on stderr and passes.
//!
//! `TOLLGATE_BROWSER` names the program of a browser, `TOLLGATE_AXE` the file `axe.min.js` of axe-core, and
//! `TOLLGATE_PICTURES` a folder in which pictures of all pages are kept.

#![allow(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test program: it reads files and the clock, and speaks JSON with a browser"
)]

#[path = "../../../../tests/support/browser.rs"]
mod browser;
mod checks;
#[path = "../../../../tests/support/hostile.rs"]
mod hostile;
mod reports;

use std::path::PathBuf;
use std::time::Duration;

use browser::{Browser, Tab};
use checks::Checks;
use serde_json::Value;

/// A browser with one tab, and the folder in which pages are.
struct Stage {
    browser: Browser,
    tab: Tab,
    folder: PathBuf,
    checks: Checks,
}

impl Stage {
    /// Opens a page; returns its address.
    fn show(&mut self, name: &str, html: &str) -> String {
        let file = self.folder.join(format!("{name}.html"));
        std::fs::write(&file, html).expect("the page is written");
        let url = format!("file://{}", file.display());
        self.tab.go_to(&mut self.browser, &url);
        url
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        self.tab.evaluate(&mut self.browser, expression)
    }

    /// A check that an expression is true in the page.
    fn holds(&mut self, what: &str, expression: &str) {
        let value = self.evaluate(expression);
        self.checks.that(what, value == true, &format!("{expression} is {value}"));
    }

    /// A check that an expression has a value in the page.
    fn is(&mut self, what: &str, expression: &str, expected: &Value) {
        let mut value = self.evaluate(expression);
        // A filter changes what is far down a little later.
        for _ in 0..100 {
            if value == *expected {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
            value = self.evaluate(expression);
        }
        self.checks.that(what, value == *expected, &format!("{expression} is {value}, expected {expected}"));
    }

    /// A check that nothing went wrong since the page was opened.
    fn is_clean(&mut self, what: &str, url: &str) {
        let problems = self.tab.problems(&mut self.browser, url);
        self.checks.that(what, problems.is_empty(), &problems.join("\n"));
    }
}

/// The values of an environment variable of this test.
fn setting(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Runs checks in a browser, at least so many; without a browser none.
fn in_a_browser(name: &str, least: usize, run: impl Fn(&mut Stage)) {
    let folder = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    if let Some(mut browser) = Browser::start(&folder.join("browser")) {
        let tab = browser.open_tab();
        let mut stage = Stage { browser, tab, folder: folder.clone(), checks: Checks::default() };
        run(&mut stage);
        let Stage { browser, checks, .. } = stage;
        drop(browser);
        checks.finish(name, least);
    }
    _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn pages_work_in_a_browser() {
    in_a_browser("pages", 115, |stage| {
        checks::every_page(stage);
        checks::readers(stage);
        checks::map(stage);
        checks::tables(stage);
    });
}

#[test]
fn hostile_names_are_text() {
    in_a_browser("hostile", 50, checks::hostile_names);
}

#[test]
fn large_pages_are_small_and_filtered() {
    in_a_browser("large", 6, checks::large);
}
