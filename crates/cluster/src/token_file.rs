//! The bearer token in a file (`tokenFile`), as a header. Not other credentials: those are kube's.
//!
//! kube sends the file as it is, so a line break at its end makes the token invalid; kubectl trims it. The file is read
//! again every minute, because tokens of service accounts are replaced while a program runs.
//!
//! Invariant: a file that cannot be read later, or has no token, leaves the last token in use.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use http::HeaderValue;
use tokio::time::Instant;

use tollgate_files as files;

/// Age at which the token is read again from its file; tokens are replaced long before they expire.
const REREAD_INTERVAL: Duration = Duration::from_mins(1);

/// A bearer token that is read from a file.
#[derive(Clone)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// The `Authorization` header, and when the token was read.
    last: Arc<Mutex<(HeaderValue, Instant)>>,
}

impl TokenFile {
    /// Reads the token for the first time.
    pub(super) fn open(path: &Path) -> anyhow::Result<TokenFile> {
        let header = read_auth_header(path)?;
        Ok(TokenFile { path: path.to_owned(), last: Arc::new(Mutex::new((header, Instant::now()))) })
    }

    /// The header `Bearer …`, read again if it is older than a minute. A file that cannot be read leaves the last one.
    pub(super) fn auth_header(&self) -> HeaderValue {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.1.elapsed() >= REREAD_INTERVAL {
            last.1 = Instant::now();
            if let Ok(header) = read_auth_header(&self.path) {
                last.0 = header;
            }
        }
        last.0.clone()
    }
}

fn read_auth_header(path: &Path) -> anyhow::Result<HeaderValue> {
    let bytes = files::read_regular(path, files::MAX_PEM)
        .map_err(|error| anyhow::anyhow!("cannot read {}: {}", path.display(), error.message))?;
    let text = String::from_utf8_lossy(&bytes);
    let token = text.trim();
    anyhow::ensure!(!token.is_empty(), "{}: the token file is empty", path.display());
    bearer_header(token).with_context(|| {
        format!("{}: the token contains characters that are not allowed in a token", path.display())
    })
}

/// The `Authorization` header with a token; `None` if the token contains characters that are not allowed.
pub(super) fn bearer_header(token: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}
