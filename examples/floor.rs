//! The floor: actix-web and rustls with nothing behind them. Reads the body and returns a constant.
//!
//! `make load` measures `tollgate serve` beside it: what is above this line is ours.
//! Usage: `floor CERTIFICATE KEY` (PEM); prints its address; two workers, TLS 1.3, HTTP/1.1.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a program to measure"
)]

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::rt::System;
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

const ANSWER: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"00000000-0000-0000-0000-000000000000","allowed":true}}"#;

async fn answer(body: web::Bytes) -> HttpResponse {
    std::hint::black_box(body);
    HttpResponse::Ok().content_type("application/json").body(ANSWER)
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (certificate, key) = arguments.next().zip(arguments.next()).context("floor CERTIFICATE KEY")?;
    let chain =
        CertificateDer::pem_slice_iter(&std::fs::read(certificate)?).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(&std::fs::read(key)?)?;
    let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("webhook   https://{}/", listener.local_addr()?);
    System::new().block_on(async {
        HttpServer::new(|| {
            App::new().app_data(web::PayloadConfig::new(8 << 20)).route("/validate", web::post().to(answer))
        })
        .workers(2)
        .listen_rustls_0_23(listener, tls)?
        .run()
        .await
    })?;
    Ok(())
}
