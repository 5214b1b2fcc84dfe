//! What is checked, page by page.

use std::time::Instant;

use serde_json::{Value, json};

use crate::browser::say;
use crate::reports::{self, DOCS};
use crate::{Stage, hostile, setting};

/// The checks so far.
#[derive(Default)]
pub(crate) struct Checks {
    passed: usize,
    failed: Vec<String>,
}

impl Checks {
    pub(crate) fn that(&mut self, what: &str, holds: bool, otherwise: &str) {
        if holds {
            self.passed += 1;
        } else {
            say(&format!("FAILED {what}: {otherwise}"));
            self.failed.push(format!("{what}: {otherwise}"));
        }
    }

    /// Fails unless all checks passed, and at least so many were made.
    pub(crate) fn finish(self, name: &str, least: usize) {
        say(&format!("{} checks of {name} in a browser passed", self.passed));
        assert!(self.failed.is_empty(), "{}", self.failed.join("\n"));
        assert!(self.passed >= least, "only {} checks", self.passed);
    }
}

/// The smallest contrast of text and ground in a page, and where. Grounds that are drawings are left out.
const CONTRAST: &str = r#"(() => {
  const parse = (text) => { const parts = (text.match(/[\d.]+/g) || []).map(Number);
    return parts.length === 3 ? [...parts, 1] : parts; };
  const light = (color) => { const [r, g, b] = color.map((part) => { part /= 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  let worst = [99, ''];
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('svg') || !element.checkVisibility()) continue;
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    let ground = element;
    while (ground && parse(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
    if (ground && getComputedStyle(ground).backgroundImage !== 'none') continue;
    const [one, two] = [parse(getComputedStyle(element).color),
      ground ? parse(getComputedStyle(ground).backgroundColor) : [255, 255, 255, 1]].map((color) => light(color.slice(0, 3)));
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < worst[0]) worst = [ratio, element.tagName + '.' + element.className + ' ' + element.textContent.slice(0, 40)];
  }
  return worst;
})()"#;

/// Text that would be cut off or reach beyond the window.
const WIDTH: &str = "document.documentElement.scrollWidth";

/// Every page renders, is clean, and works in light, dark, narrow, printed and without script.
pub(crate) fn every_page(stage: &mut Stage) {
    let axe = setting("TOLLGATE_AXE").map(|file| std::fs::read_to_string(file).expect("axe-core is read"));
    let pictures = setting("TOLLGATE_PICTURES");
    for (name, html) in reports::recorded_pages() {
        let keep = |kind: &str| pictures.as_ref().map(|folder| folder.join(format!("{name}-{kind}")));
        stage.tab.resize(&mut stage.browser, 1280, 900);
        stage.tab.set_color_scheme(&mut stage.browser, "light");
        let url = stage.show(name, &html);
        stage.holds(
            &format!("{name} renders"),
            "document.querySelector('h1').getBoundingClientRect().height > 0",
        );
        stage.holds(
            &format!("{name} says where the data come from"),
            "['production.example.com', '40 min before', 'complete', 'tollgate', '1.37'].every(text => document.querySelector('.facts').innerText.includes(text))",
        );
        stage.holds(
            &format!("{name} links only to the documentation"),
            &format!("[...document.links].length > 1 && [...document.links].every(link => link.href.startsWith('{DOCS}/'))"),
        );
        stage.is(&format!("{name} has one script"), "document.scripts.length", &json!(1));
        stage.holds(
            &format!("{name} has no handlers and no style attributes"),
            "![...document.querySelectorAll('*')].some(e => [...e.attributes].some(a => a.name.startsWith('on') || a.name === 'style'))",
        );
        stage.is(
            &format!("{name} has unique ids"),
            "(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.length - new Set(ids).size; })()",
            &json!(0),
        );
        for scheme in ["light", "dark"] {
            stage.tab.set_color_scheme(&mut stage.browser, scheme);
            let worst = stage.evaluate(CONTRAST);
            let ratio = worst[0].as_f64().unwrap_or(0.0);
            stage.checks.that(&format!("{name} has contrast in {scheme}"), ratio >= 4.5, &worst.to_string());
            if let Some(file) = keep(&format!("{scheme}.png")) {
                stage.tab.screenshot(&mut stage.browser, &file, true);
            }
            if let Some(axe) = &axe {
                accessible(stage, name, scheme, axe);
            }
        }
        stage.is_clean(&format!("{name} has no errors, violations or requests"), &url);
        stage.tab.resize(&mut stage.browser, 360, 740);
        stage.tab.set_color_scheme(&mut stage.browser, "light");
        stage.show(name, &html);
        stage.is(&format!("{name} fits 360 pixels"), WIDTH, &json!(360));
        if let Some(file) = keep("narrow.png") {
            stage.tab.screenshot(&mut stage.browser, &file, true);
        }
        stage.tab.resize(&mut stage.browser, 1280, 900);
        let printed = stage.folder.join(format!("{name}.pdf"));
        stage.tab.print(&mut stage.browser, &printed);
        let size = std::fs::metadata(&printed).map_or(0, |file| file.len());
        stage.checks.that(&format!("{name} can be printed"), size > 5_000, &format!("{size} bytes"));
        if let Some(file) = keep("print.pdf") {
            std::fs::copy(&printed, file).expect("the print is kept");
        }
        without_script(stage, name, &html);
    }
}

/// The page has the same text without its script, and no tools that would do nothing.
fn without_script(stage: &mut Stage, name: &str, html: &str) {
    const TEXT: &str = "[...document.querySelectorAll('td, .cells li, .chips li, .times li, .notes li')].map(e => e.textContent).join('|')";
    let with = stage.evaluate(TEXT);
    stage.tab.set_script(&mut stage.browser, false);
    let url = stage.show(name, html);
    let without = stage.evaluate(TEXT);
    stage.checks.that(&format!("{name} is complete without script"), with == without, "other text");
    stage.holds(
        &format!("{name} has no dead tools without script"),
        "![...document.querySelectorAll('.tools, th button')].some(e => e.checkVisibility())",
    );
    stage.holds(&format!("{name} shows its text without script"), "document.body.innerText.length > 300");
    stage.is_clean(&format!("{name} is clean without script"), &url);
    stage.tab.set_script(&mut stage.browser, true);
}

/// No serious findings of axe-core.
fn accessible(stage: &mut Stage, name: &str, scheme: &str, axe: &str) {
    stage.evaluate(&format!("{axe};0"));
    let found = stage.evaluate(
        "axe.run(document).then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 90) + ' ' + n.failureSummary).slice(0, 3).join(' / ')))",
    );
    stage.checks.that(
        &format!("{name} is accessible in {scheme} (axe-core)"),
        found == json!([]),
        &found.to_string(),
    );
}

/// The map: filters, states, names, and choosing with pointer and keys.
pub(crate) fn map(stage: &mut Stage) {
    const SHOWN: &str = "[...document.querySelectorAll('.cells li')].filter(e => e.checkVisibility()).length";
    let pages = reports::recorded_pages();
    let (_, html) = pages.iter().find(|page| page.0 == "devices").expect("the page of devices");
    let url = stage.show("map", html);
    let all = stage.evaluate("document.querySelectorAll('.cells li').length");
    stage.is("all devices are shown", SHOWN, &all);
    stage.is("a card for each node", "document.querySelectorAll('.node').length", &json!(10));
    stage.evaluate("document.querySelector('.map .filter').focus()");
    stage.tab.type_text(&mut stage.browser, "gpu-node-01 gpu-0");
    stage.is("the map is filtered by words", SHOWN, &json!(1));
    stage.holds(
        "the map says how many are shown",
        "/^1 of /.test(document.querySelector('.map output').textContent)",
    );
    stage.evaluate("(() => { const i = document.querySelector('.map .filter'); i.value = ''; i.dispatchEvent(new Event('input')); })()");
    stage.tab.settle(&mut stage.browser);
    stage.is("an empty filter shows all", SHOWN, &all);
    stage.tab.click(&mut stage.browser, ".states input[value=f]");
    stage.holds("free devices can be left out", "![...document.querySelectorAll('.cells li.f')].some(e => e.checkVisibility()) && document.querySelectorAll('.cells li.a')[0].checkVisibility()");
    stage.tab.click(&mut stage.browser, ".states input[value=f]");
    stage.tab.click(&mut stage.browser, ".cells li");
    stage.holds("a device can be chosen", "!document.querySelector('.choice').hidden && document.querySelector('.choice').textContent.includes(document.querySelector('.cells li b').textContent)");
    stage.evaluate("document.querySelector('.cells').focus()");
    stage.tab.press(&mut stage.browser, "ArrowRight");
    stage.is(
        "arrow keys choose the next device",
        "[...document.querySelectorAll('.cells li')].findIndex(e => e.classList.contains('chosen'))",
        &json!(1),
    );
    stage.holds("what is chosen is announced", "document.querySelector('.choice').getAttribute('role') === 'status' && document.querySelector('.cells').getAttribute('aria-activedescendant') === document.querySelectorAll('.cells li')[1].id");
    stage.holds("names are shown at first", "document.querySelector('.cells b').getBoundingClientRect().height > 5 && document.querySelector('.names').checked");
    stage.tab.click(&mut stage.browser, "#names");
    stage.holds(
        "names can be hidden",
        "document.querySelector('.cells li').getBoundingClientRect().width < 30",
    );
    stage.holds("marks differ without color", "(() => { const mark = c => getComputedStyle(document.querySelector('.cell.' + c), '::before').content; const marks = ['f', 'a', 't'].map(mark); return new Set(marks).size === 3; })()");
    stage.evaluate("(() => { const top = document.querySelector('h1'); top.tabIndex = -1; top.focus(); })()");
    let mut reached = Vec::new();
    for _ in 0..12 {
        stage.tab.press(&mut stage.browser, "Tab");
        reached
            .push(stage.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"));
    }
    for wanted in ["INPUT.filter", "INPUT.names", "UL.cells"] {
        stage.checks.that(
            &format!("the Tab key reaches {wanted}"),
            reached.contains(&Value::from(wanted)),
            &format!("{reached:?}"),
        );
    }
    stage.holds("the focus is visible", "getComputedStyle(document.activeElement).outlineStyle !== 'none'");
    stage.is_clean("the map had no errors", &url);
}

/// What a reader who sees a page for the first time has to find on it.
pub(crate) fn readers(stage: &mut Stage) {
    const UNBROKEN: &str = "[...document.querySelectorAll('td b, td .w, .chips .w, .times .w')].filter(e => e.checkVisibility()).every(e => e.getBoundingClientRect().height < 30)";
    stage.tab.resize(&mut stage.browser, 1280, 900);
    for (name, html) in reports::recorded_pages() {
        stage.show(name, &html);
        stage.holds(&format!("names of {name} are not broken"), UNBROKEN);
        match name {
            "devices" => {
                let lead = "document.querySelector('.lead').textContent.endsWith('64 allocated (1 of them tainted), 16 free.')";
                stage.holds("the numbers of devices add up", lead);
                stage.is("one card is marked", "document.querySelectorAll('.node.marked').length", &json!(1));
                let names = "document.querySelector('.t-taints tbody td:last-child').textContent";
                stage.is("the tainted device is named", names, &json!("gpu-node-07/gpu-3"));
            }
            "drain" => {
                let text = "document.body.innerText";
                stage.holds("the first wave is explained", &format!("{text}.includes('Wave 1 moves one pod, so that')"));
                stage.holds(
                    "nodes are alternatives",
                    "/→ gpu-node-\\d+ or gpu-node-\\d+ or \\d more/.test(document.querySelector('.lane:nth-child(2)').innerText)",
                );
            }
            "forecast" => stage.holds(
                "the forecast names its objects",
                "['2 objects', 'Job batch/render-next', 'DeviceTaintRule drain-gpu-node-03', 'share of the 64 courses'].every(text => document.body.innerText.includes(text))",
            ),
            _ => {}
        }
    }
    let html = reports::old_forecast();
    let url = stage.show("old", &html);
    stage.is(
        "the title names the object",
        "document.querySelector('h1').textContent",
        &json!("Forecast for DeviceTaintRule maintenance"),
    );
    stage.is(
        "an old state is a warning",
        "document.querySelector('.facts .warn').textContent",
        &json!("38 h before this report"),
    );
    stage.is("a column without text is left out", "document.querySelectorAll('th').length", &json!(4));
    stage.is_clean("the old forecast is clean", &url);
}

/// Tables: sorting, filtering, and both with keys.
pub(crate) fn tables(stage: &mut Stage) {
    const FIRST: &str = "document.querySelector('tbody tr').cells[0].textContent";
    const ROWS: &str =
        "[...document.querySelectorAll('tbody tr')].filter(e => !e.closest('[hidden]')).length";
    let html = reports::many_pods(250);
    let url = stage.show("table", &html);
    stage.is("all rows are there", ROWS, &json!(250));
    stage.tab.click(&mut stage.browser, "th:nth-child(4) button");
    stage.is("a click sorts", FIRST, &json!("team-0/train-0-abcde"));
    stage.is(
        "the order is announced",
        "document.querySelectorAll('th')[3].getAttribute('aria-sort')",
        &json!("ascending"),
    );
    stage.evaluate("document.querySelector('th button').focus()");
    stage.tab.press(&mut stage.browser, "Enter");
    stage.tab.press(&mut stage.browser, "Enter");
    stage.is("keys sort, and turn the order around", FIRST, &json!("team-39/train-239-abcde"));
    stage.is("rows are not lost", ROWS, &json!(250));
    stage.evaluate("document.querySelector('.data .filter').focus()");
    stage.tab.type_text(&mut stage.browser, "TRAIN-24");
    stage.is("a filter ignores case", ROWS, &json!(11));
    stage.is(
        "the table says how many rows are shown",
        "document.querySelector('.data output').textContent",
        &json!("11 of 250 pods"),
    );
    stage.is(
        "the drawing of evictions has bars",
        "document.querySelectorAll('.timeline rect').length > 10",
        &json!(true),
    );
    stage.is_clean("the table had no errors", &url);
}

/// Hostile names are text on every page.
pub(crate) fn hostile_names(stage: &mut Stage) {
    for (name, html) in reports::hostile_pages() {
        for width in [1280, 360] {
            stage.tab.resize(&mut stage.browser, width, 900);
            let url = stage.show(&format!("hostile-{name}"), &html);
            stage.is(&format!("{name} runs nothing at {width}"), "typeof hacked", &json!("undefined"));
            stage.is(&format!("{name} is not wider than {width}"), WIDTH, &json!(width));
            stage.is_clean(&format!("{name} has no request, error or dialog at {width}"), &url);
        }
        stage.is(
            &format!("{name} has only elements of its own"),
            "[...document.querySelectorAll('*')].map(e => e.localName).filter(n => ['img', 'iframe', 'object', 'embed', 'base', 'form', 'math', 'template', 'marquee', 'plaintext', 'textarea', 'link'].includes(n)).length + document.scripts.length + document.querySelectorAll('style').length",
            &json!(2),
        );
        stage.holds(
            &format!("{name} has no handlers of its data"),
            "![...document.querySelectorAll('*')].some(e => [...e.attributes].some(a => a.name.startsWith('on') || a.name === 'style'))",
        );
        stage.holds(
            &format!("{name} makes no link of its data"),
            &format!("[...document.links].every(link => link.href.startsWith('{DOCS}/'))"),
        );
        let text = stage.evaluate("document.body.textContent");
        let text = text.as_str().unwrap_or_default();
        let hidden: Vec<&str> = hostile::NAMES
            .into_iter()
            .filter(|name| !text.contains(&*tollgate_picture::SafeText::from(*name)))
            .collect();
        stage.checks.that(
            &format!("{name} shows all {} names", hostile::NAMES.len()),
            hidden.is_empty(),
            &format!("{hidden:?}"),
        );
        let unseen = text
            .chars()
            .filter(|letter| *letter != '\n' && tollgate_formats::sanitize::is_unsafe(*letter))
            .count();
        stage.checks.that(
            &format!("{name} has no character that cannot be seen"),
            unseen == 0,
            &unseen.to_string(),
        );
    }
    stage.tab.resize(&mut stage.browser, 1280, 900);
}

/// The time that the main thread of the page has worked, in milliseconds. Other programs do not count.
fn processor_time(stage: &mut Stage) -> f64 {
    let found = stage.tab.call(&mut stage.browser, "Performance.getMetrics", json!({}));
    let metrics = found["metrics"].as_array().into_iter().flatten();
    let task =
        metrics.filter(|metric| metric["name"] == "TaskDuration").find_map(|metric| metric["value"].as_f64());
    task.unwrap_or(f64::MAX) * 1000.0
}

/// Fifty thousand devices and twenty thousand pods: small enough, and filtered. The times are printed and not judged,
/// because they are those of the machine.
pub(crate) fn large(stage: &mut Stage) {
    const PAINT: &str = "performance.getEntriesByName('first-contentful-paint')[0].startTime";
    stage.tab.call(&mut stage.browser, "Performance.enable", json!({"timeDomain": "threadTicks"}));
    for (name, html, word, left) in [
        ("map", reports::many_devices(50_000), "gpu-node-00017", 8),
        ("table", reports::many_pods(20_000), "train-19999", 1),
    ] {
        let size = html.len();
        stage.checks.that(
            &format!("the large {name} has at most 10 MB"),
            size <= 10_000_000,
            &size.to_string(),
        );
        let start = Instant::now();
        stage.show(&format!("large-{name}"), &html);
        let loaded = start.elapsed();
        let paint = stage.evaluate(PAINT).as_f64().unwrap_or(f64::MAX);
        let box_ = if name == "map" { ".map .filter" } else { ".data .filter" };
        stage.evaluate(&format!("document.querySelector({box_:?}).focus()"));
        let mut filters = Vec::new();
        let filter = |text: &str, then: &str| {
            format!(
                "(async () => {{ const box = document.querySelector({box_:?}); box.value = {text:?}; \
                 box.dispatchEvent(new Event('input')); \
                 await new Promise(done => requestAnimationFrame(() => setTimeout(done))); {then}; }})()"
            )
        };
        for text in ["g", word, "", "17", "", word] {
            let (start, work) = (Instant::now(), processor_time(stage));
            stage.evaluate(&filter(text, "document.body.offsetHeight"));
            filters.push((start.elapsed().as_millis(), processor_time(stage) - work));
        }
        say(&format!(
            "large {name}: {size} bytes, loaded in {loaded:?}, first paint {paint:.0} ms; filters in ms, and of the \
             processor: {filters:.0?}"
        ));
        stage.is(
            &format!("the large {name} is filtered"),
            "[...document.querySelectorAll('.cells li, tbody tr')].filter(e => !e.closest('[hidden]') && !e.closest('.t-taints, .t-namespaces')).length",
            &json!(left),
        );
        stage.evaluate(&filter("17", ""));
        stage.evaluate(&filter("", "window.dispatchEvent(new Event('beforeprint'))"));
        stage.is(
            &format!("the large {name} is printed whole while a filter is being cleared"),
            "document.querySelectorAll('.nodes [hidden], tbody[hidden], tr[hidden]').length",
            &json!(0),
        );
    }
    let html = reports::many_devices(200_000);
    let size = html.len();
    stage.checks.that("beyond its size a map has numbers", size <= 10_000_000, &size.to_string());
    stage.checks.that("and it says so", html.contains("To keep this file below 10 MB"), "it does not");
}
