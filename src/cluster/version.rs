//! Which release the API server is of, and so by which profile to judge.

use super::Cluster;
use super::ask::{OBJECTS, Trouble};
use crate::doc;
use crate::profile::{Profile, ProfileMatch};

/// What the API server says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// `1`
    pub major: String,
    /// `37`, at some vendors `37+`
    pub minor: String,
}

impl Release {
    /// The profile to judge by, and whether it is the release's own. `None` if it does not say what it is.
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
    /// Asks for the release, again and again until there is an answer, and again from time to time: an API server is
    /// upgraded while we serve. `tell` hears every release that is not the one before.
    pub fn follow_release(&self, tell: impl Fn(&Release) + Send + 'static) {
        let (client, timing) = (self.client.clone(), self.timing);
        self.spawn(async move {
            let mut backoff = super::retry::Backoff::new(timing);
            let mut known = None;
            loop {
                match release(&client).await {
                    Ok(release) => {
                        backoff.reset();
                        if known.as_ref() != Some(&release) {
                            tell(&release);
                            known = Some(release);
                        }
                        tokio::time::sleep(timing.most.saturating_mul(10)).await;
                    }
                    Err(trouble) => {
                        tracing::warn!("the release of the API server is not known, trying again: {trouble}");
                        backoff.wait().await;
                    }
                }
            }
        });
    }
}

async fn release(client: &super::ask::Client) -> Result<Release, Trouble> {
    let text = client.get("/version", OBJECTS).await?;
    let version =
        doc::parse(&text).map_err(|error| Trouble::Unreachable(format!("not JSON: {}", error.detail)))?;
    let word = |name: &str| version.root().get(name).str().to_owned();
    Ok(Release { major: word("major"), minor: word("minor") })
}
