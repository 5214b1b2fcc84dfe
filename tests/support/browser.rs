//! A headless Chromium, driven by the DevTools protocol over two pipes: no port, no extra crate.
//!
//! A [`Tab`] collects whatever went wrong in it: errors on the console, exceptions, violations of the
//! Content-Security-Policy, and requests to anywhere but the page itself.

#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a part of test programs: it reads files and the clock, and speaks JSON with a browser"
)]

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How long an answer may take. Machines that also compile are slow.
const PATIENCE: Duration = Duration::from_mins(2);

/// Names under which browsers are installed.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// A running browser. It ends with the value.
pub struct Browser {
    process: Child,
    commands: File,
    answers: Receiver<Value>,
    folder: PathBuf,
    next_id: u64,
    /// Events that were not looked at yet.
    events: Vec<Value>,
}

/// A page in a browser.
pub struct Tab {
    session: String,
    /// Frames are announced only to pages that may run scripts.
    runs_script: Cell<bool>,
}

/// Prints a line on stderr, also where the output of tests that pass is not shown.
pub fn say(line: &str) {
    _ = writeln!(std::io::stderr(), "{line}");
}

/// The program of a browser: `TOLLGATE_BROWSER`, or one that is installed.
fn find_program() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("TOLLGATE_BROWSER") {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}

impl Browser {
    /// Starts a browser, with its files in a new folder. `None` if none is installed, which is said on stderr.
    pub fn start(folder: &Path) -> Option<Browser> {
        let Some(program) = find_program() else {
            say("skipped: no Chromium found; install it, or set TOLLGATE_BROWSER to its program");
            return None;
        };
        std::fs::create_dir_all(folder).expect("a folder");
        let [input, output] = ["commands", "answers"].map(|name| folder.join(name));
        for pipe in [&input, &output] {
            let made = Command::new("mkfifo").arg(pipe).status().expect("mkfifo runs");
            assert!(made.success(), "a pipe");
        }
        // The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        let script = r#"exec "$BROWSER" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
            --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
            --hide-scrollbars --user-data-dir="$PROFILE" --remote-debugging-pipe about:blank 3<"$INPUT" 4>"$OUTPUT""#;
        let process = Command::new("sh")
            .args(["-c", script])
            .env("BROWSER", program)
            .env("PROFILE", folder.join("profile"))
            .env("INPUT", &input)
            .env("OUTPUT", &output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        let commands = File::options().write(true).open(&input).expect("the pipe of commands");
        let answers = File::open(&output).expect("the pipe of answers");
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0) {
                let Ok(message) = message else { return };
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Some(Browser {
            process,
            commands,
            answers: receiver,
            folder: folder.to_owned(),
            next_id: 0,
            events: Vec::new(),
        })
    }

    /// A new page, whose problems are collected.
    pub fn open_tab(&mut self) -> Tab {
        let target = self.call("", "Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("", "Target.attachToTarget", &attach);
        let session = attached["sessionId"].as_str().expect("a session").to_owned();
        let tab = Tab { session, runs_script: Cell::new(true) };
        for domain in ["Page", "Runtime", "Log", "Network", "Audits", "DOM"] {
            tab.call(self, &format!("{domain}.enable"), json!({}));
        }
        tab
    }

    fn call(&mut self, session: &str, method: &str, parameters: &Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !session.is_empty() {
            message["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&message).expect("JSON");
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser reads");
        let until = Instant::now() + PATIENCE;
        loop {
            let mut answer = self.next_message(until, method);
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn next_message(&mut self, until: Instant, waiting_for: &str) -> Value {
        let left = until.saturating_duration_since(Instant::now());
        self.answers.recv_timeout(left).unwrap_or_else(|why| panic!("waiting for {waiting_for}: {why}"))
    }

    /// Waits for an event of a page, and removes it.
    fn wait_for(&mut self, session: &str, method: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        let is_it = |event: &Value| event["method"] == method && event["sessionId"] == session;
        loop {
            if let Some(place) = self.events.iter().position(is_it) {
                return self.events.remove(place)["params"].take();
            }
            let message = self.next_message(until, method);
            self.events.push(message);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Tab {
    /// Calls a method of the protocol.
    #[expect(clippy::needless_pass_by_value, reason = "parameters are mostly written at the call")]
    pub fn call(&self, browser: &mut Browser, method: &str, parameters: Value) -> Value {
        browser.call(&self.session, method, &parameters)
    }

    /// Opens an address and waits until it is loaded. Problems of the page before are dropped.
    pub fn go_to(&self, browser: &mut Browser, url: &str) {
        browser.events.retain(|event| event["sessionId"] != self.session.as_str());
        let opened = self.call(browser, "Page.navigate", json!({"url": url}));
        assert!(opened["errorText"].is_null(), "{url}: {opened}");
        browser.wait_for(&self.session, "Page.loadEventFired");
        self.settle(browser);
    }

    /// The value of an expression in the page; promises are awaited.
    pub fn evaluate(&self, browser: &mut Browser, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call(browser, "Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Presses a key, such as `Tab`, `Enter`, `ArrowRight` or ` `.
    pub fn press(&self, browser: &mut Browser, key: &str) {
        let (code, number, text) = match key {
            "Tab" => ("Tab", 9, ""),
            "Enter" => ("Enter", 13, "\r"),
            " " => ("Space", 32, " "),
            "ArrowLeft" => ("ArrowLeft", 37, ""),
            "ArrowUp" => ("ArrowUp", 38, ""),
            "ArrowRight" => ("ArrowRight", 39, ""),
            "ArrowDown" => ("ArrowDown", 40, ""),
            "Escape" => ("Escape", 27, ""),
            other => panic!("no such key: {other}"),
        };
        let mut event = json!({"type": "keyDown", "key": key, "code": code, "windowsVirtualKeyCode": number, "text": text});
        self.call(browser, "Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        self.call(browser, "Input.dispatchKeyEvent", event);
        self.settle(browser);
    }

    /// Types a text into the element that has the focus.
    pub fn type_text(&self, browser: &mut Browser, text: &str) {
        self.call(browser, "Input.insertText", json!({"text": text}));
        self.settle(browser);
    }

    /// Waits until the page has drawn what changed: scripts that wait for a frame have run after two of them.
    pub fn settle(&self, browser: &mut Browser) {
        if self.runs_script.get() {
            let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
            self.evaluate(browser, frames);
        }
    }

    /// Clicks into the middle of the first element of a selector.
    pub fn click(&self, browser: &mut Browser, selector: &str) {
        let place = self.evaluate(
            browser,
            &format!(
                "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', behavior: \
                 'instant'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
            ),
        );
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call(browser, "Input.dispatchMouseEvent", event);
        }
        self.settle(browser);
    }

    /// The size of the window; less than 500 wide counts as a phone.
    pub fn resize(&self, browser: &mut Browser, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call(browser, "Emulation.setDeviceMetricsOverride", size);
    }

    /// `light` or `dark`.
    pub fn set_color_scheme(&self, browser: &mut Browser, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call(browser, "Emulation.setEmulatedMedia", features);
    }

    /// Whether pages may run scripts, from the next page on.
    pub fn set_script(&self, browser: &mut Browser, is_on: bool) {
        self.call(browser, "Emulation.setScriptExecutionDisabled", json!({"value": !is_on}));
        self.runs_script.set(is_on);
    }

    /// Writes a picture of the window, or of the whole page.
    pub fn screenshot(&self, browser: &mut Browser, file: &Path, is_whole: bool) {
        let picture = self.call(
            browser,
            "Page.captureScreenshot",
            json!({"format": "png", "captureBeyondViewport": is_whole}),
        );
        write_base64(file, &picture["data"]);
    }

    /// Prints the page into a PDF file.
    pub fn print(&self, browser: &mut Browser, file: &Path) {
        let printed = self.call(browser, "Page.printToPDF", json!({"printBackground": true}));
        write_base64(file, &printed["data"]);
    }

    /// What went wrong since the page was opened.
    pub fn problems(&self, browser: &mut Browser, own_url: &str) -> Vec<String> {
        // What the browser has to say has been said once it answers.
        self.evaluate(browser, "0");
        let events = browser.events.iter().filter(|event| event["sessionId"] == self.session.as_str());
        events.filter_map(|event| problem(event, own_url)).collect()
    }
}

/// The problem that an event reports, if it reports one.
fn problem(event: &Value, own_url: &str) -> Option<String> {
    let parameters = &event["params"];
    let is_error = |level: &Value| level == "error" || level == "warning";
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(format!("exception: {}", parameters["exceptionDetails"])),
        "Runtime.consoleAPICalled" if is_error(&parameters["type"]) => {
            Some(format!("console: {}", parameters["args"]))
        }
        "Log.entryAdded" if is_error(&parameters["entry"]["level"]) => {
            Some(format!("log: {}", parameters["entry"]))
        }
        "Audits.issueAdded" if parameters["issue"]["code"] == "ContentSecurityPolicyIssue" => {
            Some(format!("policy: {}", parameters["issue"]))
        }
        "Page.javascriptDialogOpening" => Some(format!("dialog: {parameters}")),
        "Network.requestWillBeSent" => {
            let url = parameters["request"]["url"].as_str()?;
            (!url.starts_with(own_url)).then(|| format!("request: {url}"))
        }
        _ => None,
    }
}

/// Writes the bytes of a text in base64.
fn write_base64(file: &Path, text: &Value) {
    let bytes = STANDARD.decode(text.as_str().expect("a text")).expect("base64");
    std::fs::write(file, bytes).expect("the file is written");
}
