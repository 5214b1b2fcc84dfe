//! The release of the API server, which selects the profile.

use super::Cluster;
use super::client::{ApiError, FULL_OBJECTS};
use crate::doc;
use crate::profile::{Profile, ProfileMatch};

/// The version that the API server reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// `1`
    pub major: String,
    /// `37`, at some vendors `37+`
    pub minor: String,
}

impl Release {
    /// The profile for this release, and how well it fits. `None` if the version cannot be parsed.
    pub fn profile(&self) -> Option<(&'static Profile, ProfileMatch)> {
        Profile::of_server(&self.major, &self.minor)
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Cluster {
    /// Requests the version until there is a response, and again periodically: an API server may be upgraded meanwhile.
    /// Calls `on_change` with every release that differs from the one before.
    pub fn follow_release(&self, on_change: impl Fn(&Release) + Send + 'static) {
        let (client, timing) = (self.client.clone(), self.timing);
        self.spawn(async move {
            let mut backoff = super::retry::Backoff::new(timing);
            let mut known = None;
            loop {
                match fetch_release(&client).await {
                    Ok(release) => {
                        backoff.reset();
                        if known.as_ref() != Some(&release) {
                            on_change(&release);
                            known = Some(release);
                        }
                        tokio::time::sleep(timing.max_backoff.saturating_mul(10)).await;
                    }
                    Err(error) => {
                        tracing::warn!("the release of the API server is not known, trying again: {error}");
                        backoff.wait().await;
                    }
                }
            }
        });
    }
}

async fn fetch_release(client: &super::client::ApiClient) -> Result<Release, ApiError> {
    let text = client.get("/version", FULL_OBJECTS).await?;
    let version =
        doc::parse(&text).map_err(|error| ApiError::Unreachable(format!("not JSON: {}", error.detail)))?;
    let field = |name: &str| version.root().get(name).str().to_owned();
    Ok(Release { major: field("major"), minor: field("minor") })
}
