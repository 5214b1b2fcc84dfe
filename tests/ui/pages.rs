//! The pages in a real browser: changes, choice, keyboard, questions, hostile names.

use std::path::Path;
use std::time::Duration;

use crate::browser::{Browser, Tab};
use crate::hostile::NAMES;
use crate::program::folder;
use crate::running::{Running, example, rule, start, wait_until};

/// A browser with the pages of a running program; `None` if there is no browser.
fn open(name: &str, dump: &str) -> Option<(Running, Browser, Tab)> {
    let mut browser = Browser::start(&folder(&format!("{name}-browser")))?;
    let running = start(name, dump);
    let tab = browser.open_tab();
    tab.resize(&mut browser, 1280, 900);
    tab.go_to(&mut browser, &running.link);
    Some((running, browser, tab))
}

/// Whether an expression is true in the page.
fn is(tab: &Tab, browser: &mut Browser, expression: &str) -> bool {
    tab.evaluate(browser, expression).as_bool().unwrap_or_else(|| panic!("no truth value: {expression}"))
}

fn text(tab: &Tab, browser: &mut Browser, selector: &str) -> String {
    let found = tab.evaluate(browser, &format!("document.querySelector({selector:?})?.innerText ?? ''"));
    found.as_str().expect("a text").to_owned()
}

/// Writes a picture where TOLLGATE_SCREENSHOTS says, for people.
fn picture(tab: &Tab, browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("TOLLGATE_SCREENSHOTS") {
        tab.screenshot(browser, &Path::new(&folder).join(format!("{name}.png")), false);
    }
}

/// Nothing went wrong in the page: no error, no request elsewhere, no violation of its policy.
fn assert_clean(tab: &Tab, browser: &mut Browser, running: &Running) {
    let problems = tab.problems(browser, &running.origin);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// With TOLLGATE_AXE, the path of axe-core: nothing serious, light and dark.
fn assert_accessible(tab: &Tab, browser: &mut Browser, what: &str) {
    let Some(axe) = std::env::var_os("TOLLGATE_AXE") else { return };
    let script = std::fs::read_to_string(axe).expect("axe-core");
    for scheme in ["light", "dark"] {
        tab.set_color_scheme(browser, scheme);
        tab.settle(browser);
        tab.evaluate(browser, &format!("{script}; 0"));
        let found = tab.evaluate(
            browser,
            "axe.run().then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)) \
             .map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html).join(' | ')))",
        );
        assert_eq!(found.as_array().map(Vec::len), Some(0), "{what}, {scheme}: {found:#}");
    }
    tab.set_color_scheme(browser, "light");
}

#[test]
fn the_map_follows_the_state_and_keeps_choice_scroll_and_filter() {
    let Some((running, mut browser, tab)) = open("ui-live", &example()) else { return };
    let browser = &mut browser;
    assert_eq!(tab.evaluate(browser, "location.href"), format!("{}/", running.origin), "the token is gone");
    assert_eq!(tab.evaluate(browser, "document.cookie"), "", "scripts cannot read the session");
    picture(&tab, browser, "devices");
    // Choose a device with the pointer.
    tab.click(browser, "#names");
    tab.click(browser, "#names");
    let cell = "[...document.querySelectorAll('.node')].find(n => n.querySelector('h3').textContent === 'gpu-node-03').querySelector('li')";
    tab.evaluate(browser, &format!("{cell}.click()"));
    wait_until("details", || text(&tab, browser, "#details").contains("gpu.example.com"));
    let details = text(&tab, browser, "#details");
    assert!(
        details.contains("Held by") && details.contains("Taints") && details.contains("node gpu-node-03"),
        "{details}"
    );
    // Filter and scroll.
    tab.evaluate(browser, "document.querySelector('.map .filter').focus()");
    tab.type_text(browser, "gpu-node");
    tab.evaluate(browser, "scrollTo({top: 500, behavior: 'instant'})");
    tab.settle(browser);
    let before = tab.evaluate(browser, "scrollY");
    tab.evaluate(browser, &format!("window.kept = {cell}.closest('.node'); 0"));
    running.replace_dump(&(example() + &rule("fire", "gpu-node-03", "NoSchedule")));
    let took = wait_until("the taint appears", || {
        is(&tab, browser, &format!("{cell}.textContent.includes('example.com/fire')"))
    });
    eprintln!("the page showed the change after {took:?}");
    assert_eq!(tab.evaluate(browser, "scrollY"), before, "the scroll position stays");
    assert!(is(&tab, browser, &format!("{cell}.classList.contains('chosen')")), "the choice stays");
    assert!(
        is(&tab, browser, &format!("window.kept === {cell}.closest('.node')")),
        "the card stays in its place"
    );
    assert_eq!(tab.evaluate(browser, "document.querySelector('.map .filter').value"), "gpu-node");
    wait_until("the details are new", || {
        text(&tab, browser, "#details").contains("example.com/fire:NoSchedule")
    });
    assert!(text(&tab, browser, "#details").contains("DeviceTaintRule fire"));
    assert!(text(&tab, browser, "#taints").contains("example.com/fire:NoSchedule"), "the table below, too");
    // A node that goes, and one that comes back.
    running.replace_dump(&example().replace("gpu-node-02", "gpu-node-20"));
    wait_until("a node is renamed", || {
        is(
            &tab,
            browser,
            "[...document.querySelectorAll('.node h3')].some(h => h.textContent === 'gpu-node-20')",
        )
    });
    let names =
        tab.evaluate(browser, "[...document.querySelectorAll('.node h3')].map(h => h.textContent).join()");
    assert!(!names.as_str().expect("names").contains("gpu-node-02,"), "{names}");
    assert!(names.as_str().expect("names").ends_with("gpu-node-20"), "in the order of names: {names}");
    // A state that can no longer be read.
    running.replace_dump("nonsense: [");
    wait_until("the page says that it is old", || text(&tab, browser, "#live").contains("is old"));
    assert!(is(&tab, browser, "document.getElementById('live').classList.contains('old')"));
    picture(&tab, browser, "devices-old");
    assert_accessible(&tab, browser, "devices");
    running.replace_dump(&example());
    wait_until("it is current again", || text(&tab, browser, "#live").contains("follows the file"));
    assert_clean(&tab, browser, &running);
}

#[test]
fn a_page_without_its_server_says_so() {
    let Some((running, mut browser, tab)) = open("ui-gone", &example()) else { return };
    let browser = &mut browser;
    drop(running);
    wait_until("the page notices", || text(&tab, browser, "#live").contains("does not answer"));
    assert!(text(&tab, browser, "#live").contains(" ago"));
    tab.evaluate(browser, "document.querySelector('.cells li').click()");
    wait_until("there are no details", || {
        text(&tab, browser, "#details").contains("No details: tollgate ui does not answer")
    });
}

#[test]
fn what_if_answers_for_picked_devices_and_for_rules() {
    let Some((running, mut browser, tab)) = open("ui-what-if", &example()) else { return };
    let browser = &mut browser;
    tab.go_to(browser, &format!("{}/what-if", running.origin));
    tab.evaluate(
        browser,
        "[...document.querySelectorAll('.node h3')].find(h => h.textContent === 'gpu-node-03').click()",
    );
    wait_until("an answer", || text(&tab, browser, "#answer").contains("Who goes"));
    let answer = text(&tab, browser, "#answer");
    assert!(
        answer.contains("pods") && answer.contains("Where they go") && answer.contains("in waves"),
        "{answer}"
    );
    assert!(
        answer.contains("kind: DeviceTaintRule") && answer.contains("kubectl apply -f rule.yaml"),
        "{answer}"
    );
    assert_eq!(text(&tab, browser, "#picked").trim(), "node/gpu-node-03 ×");
    picture(&tab, browser, "what-if");
    // Tables of the answer sort, as on every page.
    tab.evaluate(browser, "document.querySelector('#impact th button').click()");
    assert!(is(
        &tab,
        browser,
        "document.querySelector('#impact th').getAttribute('aria-sort') === 'ascending'"
    ));
    // From picks to a rule, and a mistake in it.
    tab.click(browser, "#edit");
    wait_until("the rule is there", || {
        is(&tab, browser, "document.getElementById('yaml').value.includes('NoExecute')")
    });
    tab.evaluate(
        browser,
        "(() => { const y = document.getElementById('yaml'); y.value = y.value.replace('NoExecute', 'NoSuch'); \
         y.dispatchEvent(new Event('input')); })()",
    );
    wait_until("a finding", || text(&tab, browser, "#answer").contains("column"));
    // A newer answer can replace the button at any time.
    wait_until("it leads to the place", || {
        tab.evaluate(browser, "document.querySelector('#answer button[data-line]')?.click()");
        is(&tab, browser, "document.activeElement.id === 'yaml'")
    });
    picture(&tab, browser, "what-if-finding");
    assert_accessible(&tab, browser, "what if");
    // While the answer is shown, the state changes: the answer follows.
    tab.evaluate(
        browser,
        "(() => { const y = document.getElementById('yaml'); y.value = y.value.replace('NoSuch', 'NoSchedule'); \
         y.dispatchEvent(new Event('input')); })()",
    );
    wait_until("an answer again", || text(&tab, browser, "#answer").contains("Who goes"));
    tab.resize(browser, 360, 800);
    tab.settle(browser);
    assert!(
        is(&tab, browser, "document.documentElement.scrollWidth <= 360"),
        "no sideways scrolling at 360 px"
    );
    picture(&tab, browser, "what-if-narrow");
    assert_clean(&tab, browser, &running);
}

#[test]
fn everything_works_with_the_keyboard() {
    let Some((running, mut browser, tab)) = open("ui-keyboard", &example()) else { return };
    let browser = &mut browser;
    let focus = |browser: &mut Browser, selector: &str| {
        for _ in 0..60 {
            tab.press(browser, "Tab");
            if is(&tab, browser, &format!("document.activeElement.matches({selector:?})")) {
                return;
            }
        }
        panic!("Tab does not reach {selector}");
    };
    focus(browser, ".skip");
    focus(browser, ".pages a[href='/what-if']");
    focus(browser, ".cells");
    tab.press(browser, "ArrowRight");
    tab.press(browser, "ArrowRight");
    assert!(is(&tab, browser, "document.querySelectorAll('.cells .chosen').length === 1"));
    wait_until("details", || text(&tab, browser, "#details").contains("State"));
    // The focus stays where it is if the card changes.
    let node =
        tab.evaluate(browser, "document.activeElement.closest('.node').querySelector('h3').textContent");
    running.replace_dump(&(example() + &rule("keys", node.as_str().expect("a node"), "NoSchedule")));
    wait_until("the taint appears", || {
        is(
            &tab,
            browser,
            "document.querySelector('.cells .chosen')?.textContent.includes('example.com/keys') ?? false",
        )
    });
    assert!(is(&tab, browser, "document.activeElement.matches('.cells')"), "the focus stays");
    tab.press(browser, "ArrowLeft");
    assert!(is(&tab, browser, "document.querySelectorAll('.cells .chosen').length === 1"));
    // The details lead to the question about this device.
    focus(browser, "#details .button");
    tab.press(browser, "Enter");
    wait_until("the other page", || {
        is(&tab, browser, "location.pathname === '/what-if' && !!document.getElementById('picked')")
    });
    wait_until("an answer", || text(&tab, browser, "#answer").contains("Who goes"));
    assert_eq!(tab.evaluate(browser, "document.querySelectorAll('#picked li').length"), 1);
    focus(browser, ".cells");
    for key in ["ArrowRight", "ArrowRight", "ArrowRight", "Enter", "ArrowRight", " "] {
        tab.press(browser, key);
    }
    wait_until("three devices are picked", || {
        is(&tab, browser, "document.querySelectorAll('#picked li').length === 3")
    });
    assert_clean(&tab, browser, &running);
}

#[test]
fn hostile_names_are_text() {
    // YAML allows no control characters, not even those that JSON allows.
    let escaped = |letter: char| match letter {
        ' '..='~' => letter.to_string(),
        _ => format!("\\U{:08x}", u32::from(letter)),
    };
    let quoted =
        |text: &str| -> String { serde_json::to_string(text).expect("JSON").chars().map(escaped).collect() };
    let devices: Vec<String> = NAMES.iter().map(|name| format!("  - name: {}", quoted(name))).collect();
    let dump = format!(
        "{}---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {}, uid: hostile}}\nspec:\n  driver: {}\n  \
         nodeName: {}\n  pool: {{name: {}, generation: 1, resourceSliceCount: 1}}\n  devices:\n{}\n",
        example(),
        quoted(NAMES[0]),
        quoted(NAMES[1]),
        quoted(NAMES[5]),
        quoted(NAMES[6]),
        devices.join("\n")
    );
    let Some((running, mut browser, tab)) = open("ui-hostile", &dump) else { return };
    let browser = &mut browser;
    assert!(is(&tab, browser, "typeof hacked === 'undefined'"));
    let cells = format!("[...document.querySelectorAll('.cells li')].slice(-{0})", NAMES.len());
    assert_eq!(tab.evaluate(browser, &format!("{cells}.length")), NAMES.len());
    assert!(is(&tab, browser, &format!("{cells}.every(c => c.querySelector('b').children.length === 0)")));
    // The details of each, and a question about some.
    for index in 0..NAMES.len() {
        tab.evaluate(browser, &format!("{cells}[{index}].click()"));
    }
    wait_until("details", || text(&tab, browser, "#details").contains("State"));
    assert!(is(
        &tab,
        browser,
        "document.querySelectorAll('#details :is(script, img, iframe, svg, form, style, link)').length === 0"
    ));
    tab.go_to(browser, &format!("{}/what-if", running.origin));
    for name in ["<img src=x onerror=hacked=1>", "javascript:hacked=1/x/y", "\"><script>hacked=1</script>"] {
        tab.evaluate(browser, "document.getElementById('target').focus()");
        tab.type_text(browser, name);
        tab.press(browser, "Enter");
    }
    tab.evaluate(browser, &format!("{cells}.slice(0, 20).forEach(c => c.click())"));
    wait_until("an answer", || !text(&tab, browser, "#answer").is_empty());
    tab.evaluate(browser, "document.querySelector('input[value=rule]').click()");
    tab.evaluate(
        browser,
        &format!(
            "(() => {{ const y = document.getElementById('yaml'); y.value = {}; y.dispatchEvent(new Event('input')); }})()",
            quoted(&format!(
                "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {{name: {}}}\nspec:\n  taint: {{key: {}, effect: NoExecute}}\n",
                quoted(NAMES[2]),
                quoted(NAMES[3])
            ))
        ),
    );
    wait_until("findings", || text(&tab, browser, "#answer").contains("column"));
    std::thread::sleep(Duration::from_millis(300));
    assert!(is(&tab, browser, "typeof hacked === 'undefined'"));
    assert!(is(
        &tab,
        browser,
        "document.querySelectorAll('#answer :is(script, img, iframe, form, style, link)').length === 0"
    ));
    assert_clean(&tab, browser, &running);
}
