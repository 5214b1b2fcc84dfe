//! The release of the API server, which selects the profile.

use super::client::{ApiClient, ApiError, FULL_OBJECTS};
use tollgate_api::profile::{Profile, ProfileMatch};
use tollgate_document::doc;

/// The version that the API server reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// `1`
    pub major: String,
    /// `37`, at some vendors `37+`
    pub minor: String,
}

impl Release {
    /// The profile for this release, and whether it is exactly that release or the nearest one. `None` if the version
    /// cannot be parsed.
    pub fn profile(&self) -> Option<(&'static Profile, ProfileMatch)> {
        Profile::of_server(&self.major, &self.minor)
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

pub(super) async fn fetch_release(client: &ApiClient) -> Result<Release, ApiError> {
    let text = client.get("/version", FULL_OBJECTS).await?;
    let version = doc::parse(&text).map_err(|_error| ApiError::not_json())?;
    let field = |name: &str| version.root().get(name).str().to_owned();
    Ok(Release { major: field("major"), minor: field("minor") })
}
