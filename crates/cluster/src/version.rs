//! The release of the API server, which selects the profile.

use super::api_error::ApiError;
use super::client::ApiClient;
use tollgate_api::profile::{Profile, ProfileMatch};
use tollgate_document::doc;

/// The version that the API server reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerRelease {
    /// Major version, such as `1`.
    pub major: String,
    /// Minor version, such as `37`; some vendors report `37+`.
    pub minor: String,
    /// Patch version, such as `0`; empty if the server does not report it.
    pub patch: String,
}

impl ServerRelease {
    /// The profile for this release, and whether it is exactly that release or the nearest one. `None` if the version
    /// cannot be parsed.
    pub fn profile(&self) -> Option<(&'static Profile, ProfileMatch)> {
        Profile::nearest_for_server(&self.version())
    }

    /// The version with its patch, if that is known: `1.37.0`.
    pub fn version(&self) -> String {
        match self.patch.as_str() {
            "" => self.to_string(),
            patch => format!("{}.{}.{patch}", self.major, self.minor.trim_end_matches('+')),
        }
    }
}

impl std::fmt::Display for ServerRelease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

pub(super) async fn fetch_release(client: &ApiClient) -> Result<ServerRelease, ApiError> {
    let text = client.get("/version").await?;
    let version = doc::parse(&text).map_err(|_error| ApiError::not_json())?;
    let field = |name: &str| version.root().get(name).str().to_owned();
    Ok(ServerRelease {
        major: field("major"),
        minor: field("minor"),
        patch: patch_number(&field("gitVersion")).to_owned(),
    })
}

/// Returns the patch number in a version such as `v1.37.0-rc.1`; empty if there is none.
fn patch_number(version: &str) -> &str {
    let patch = version.splitn(3, '.').nth(2).unwrap_or_default();
    let end = patch.find(|c: char| !c.is_ascii_digit()).unwrap_or(patch.len());
    patch.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{ServerRelease, patch_number};

    #[test]
    fn the_version_has_the_patch_that_the_server_reports() {
        let of = |minor: &str, version: &str| {
            let (minor, patch) = (minor.to_owned(), patch_number(version).to_owned());
            let release = ServerRelease { major: "1".to_owned(), minor, patch };
            (release.version(), release.profile().map(|(profile, _)| profile.name))
        };
        assert_eq!(of("37", "v1.37.0-rc.1"), ("1.37.0".to_owned(), Some("1.37.0")));
        assert_eq!(of("37", "v1.37.2"), ("1.37.2".to_owned(), Some("1.37")));
        assert_eq!(of("36+", "v1.36.4-eks-1a2b"), ("1.36.4".to_owned(), Some("1.36")));
        assert_eq!(of("37", ""), ("1.37".to_owned(), Some("1.37")));
        assert_eq!(of("37", "v1.37.x"), ("1.37".to_owned(), Some("1.37")));
    }
}
