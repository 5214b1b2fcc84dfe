//! The first command of the README (`make run`): the server with a certificate of its own making and the policies of
//! `policies/`, two AdmissionReviews that a real API server sent, over real HTTPS, and how to register it. Then it goes
//! on serving.
//!
//! Both reviews are recordings, unchanged: an admin lowers the effect of a DeviceTaintRule, and an admin creates one
//! that evicts at once.
#![expect(clippy::disallowed_macros, clippy::print_stdout, reason = "a program for people")]
#![allow(clippy::expect_used, clippy::indexing_slicing, dead_code, reason = "shares the client of the tests")]

#[path = "../tests/serve/client.rs"]
mod client;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use tollgate::files::{DEFAULT_MAX_FILE_BYTES, Input, collect as collect_files, read as read_file};
use tollgate::server::{CertificateSettings, Server, Settings};
use tollgate::{Engine, PolicyFile, PolicySet, RuleSet};

const REVIEWS: [(&str, &str); 2] = [
    ("examples/recorded/good.json", include_str!("recorded/good.json")),
    ("examples/recorded/bad.json", include_str!("recorded/bad.json")),
];

fn main() -> anyhow::Result<()> {
    let mut settings = Settings::new("127.0.0.1:8443".parse()?, "127.0.0.1:8081".parse()?);
    settings.certificates = CertificateSettings::SelfSigned {
        directory: Some(PathBuf::from("certs")),
        // Those of `tollgate certs`, so that both keep the same certificate.
        names: [
            "tollgate.tollgate-system.svc",
            "tollgate.tollgate-system.svc.cluster.local",
            "localhost",
            "127.0.0.1",
            "::1",
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    settings.drain = std::time::Duration::ZERO;
    let rules = RuleSet::parse("upstream,documented,lint,policy,decoding").map_err(anyhow::Error::msg)?;
    let policies = policies()?;
    let count = policies.len();
    let engine = Engine::new(vec![tollgate::Profile::DEFAULT], rules).with_policies(Arc::new(policies));
    let server = Server::bind(settings, engine, None, None)?;
    let (webhook, ops) = (server.webhook_address()?, server.ops_address()?);
    let client =
        client::Client::new(webhook, &server.self_signed_ca_bundle().context("a self-signed certificate")?);
    let sending = std::thread::spawn(move || send_reviews(&client));
    println!("serving https://{webhook}/validate and /mutate");
    println!("with a self-signed certificate (certs/) and {count} policies (policies/)\n");
    std::thread::spawn(move || {
        if let Ok(Ok(())) = sending.join() {
            println!("try      curl --cacert certs/ca.crt -H 'Content-Type: application/json' \\");
            println!("           --data @examples/recorded/bad.json https://{webhook}/validate");
            println!("inspect  curl http://{ops}/readyz?verbose; curl http://{ops}/metrics");
            println!(
                "register tollgate manifests --cert-dir certs --url https://127.0.0.1:8443 | kubectl apply -f -"
            );
            println!("policies tollgate serve --cert-dir certs --policy <folder>");
            println!("\npress Ctrl-C to stop");
        }
    });
    server.run()
}

/// The policies we ship; `tollgate serve --policy policies` loads the same, and again when they change.
fn policies() -> anyhow::Result<PolicySet> {
    let found = collect_files(&[PathBuf::from("policies")]);
    let read = |input: &Input| {
        let text = read_file(input, DEFAULT_MAX_FILE_BYTES).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(PolicyFile { name: input.name(), text })
    };
    let texts = found.inputs.iter().map(read).collect::<anyhow::Result<Vec<PolicyFile>>>()?;
    PolicySet::load(&texts, &|path| Err(format!("{path} is not in policies/"))).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })
}

/// Sends both reviews and prints the verdicts.
fn send_reviews(client: &client::Client) -> std::io::Result<()> {
    let mut link = client.connect()?;
    for (file, review) in REVIEWS {
        let reply = link.post("/validate?timeout=3s", review.as_bytes())?;
        let text = reply.text();
        let answer = tollgate::parse_json(&text).map_err(|error| std::io::Error::other(error.to_string()))?;
        let response = answer.root().get("response");
        let verdict = if response.get("allowed").bool() == Some(true) { "allowed" } else { "denied" };
        println!("POST /validate {file}: {verdict}");
        for cause in response.get("status").get("details").get("causes").items() {
            println!("  {}: {}", cause.get("field").str(), cause.get("message").str());
        }
        for warning in response.get("warnings").items() {
            println!("  warning: {}", warning.str());
        }
        println!();
    }
    Ok(())
}
