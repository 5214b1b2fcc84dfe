//! `tollgate manifests`: the install manifests with the caBundle filled in.
//!
//! The files of `manifests/` are compiled in and changed by line: they are ours, so their shape is known, and a test
//! holds every result against the types of a real release.
#![expect(clippy::disallowed_methods, reason = "reads the certificates it is told to fill in")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::console::Console;
use super::outcome::{Failure, Tally};

/// What runs in the cluster, in the order it is applied.
const WORKLOAD: [&str; 5] = [
    include_str!("../../manifests/namespace.yaml"),
    include_str!("../../manifests/service.yaml"),
    include_str!("../../manifests/deployment.yaml"),
    include_str!("../../manifests/disruption.yaml"),
    include_str!("../../manifests/network.yaml"),
];
/// What tells the API server, last: a webhook that is registered before it runs refuses.
const WEBHOOKS: [&str; 2] =
    [include_str!("../../manifests/validating.yaml"), include_str!("../../manifests/mutating.yaml")];

/// What else can be registered, by the name of its folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Overlay {
    /// Claims of pods and of what makes pods
    Pods,
    /// Classic DRA (KEP-3063)
    ClassicDra,
    /// Taint options of FoundationDBClusters
    Foundationdb,
    /// ResourceSlicePatches of draft r1
    #[value(name = "kep-5055-r1")]
    Kep5055R1,
}

impl Overlay {
    fn webhooks(self) -> &'static [&'static str] {
        match self {
            Overlay::Pods => &[include_str!("../../manifests/overlays/pods/validating.yaml")],
            Overlay::ClassicDra => &[
                include_str!("../../manifests/overlays/classic-dra/validating.yaml"),
                include_str!("../../manifests/overlays/classic-dra/mutating.yaml"),
            ],
            Overlay::Foundationdb => &[include_str!("../../manifests/overlays/foundationdb/validating.yaml")],
            Overlay::Kep5055R1 => &[
                include_str!("../../manifests/overlays/kep-5055-r1/validating.yaml"),
                include_str!("../../manifests/overlays/kep-5055-r1/mutating.yaml"),
            ],
        }
    }
}

/// The line of a webhook that says where it is, up to its path.
const SERVICE: &str = "    service: {name: tollgate, namespace: tollgate-system, port: 443, path: ";
/// The name of the webhook configurations unless told otherwise, and its line in their metadata.
pub(super) const NAME: &str = "tollgate";
const NAME_LINE: &str = "  name: tollgate";
/// Where everything is installed unless told otherwise.
pub(super) const NAMESPACE: &str = "tollgate-system";
const IMAGE: &str = "image: tollgate:0.1.0";

/// Print the install manifests with the caBundle filled in
///
/// With --cert-dir also a Secret with the server certificate of that directory. With --url the API server calls that
/// address instead of the Service, and only the webhook configurations are printed.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Directory of `tollgate certs` or `tollgate serve --cert-dir`
    #[arg(long, value_name = "DIR", env = "TOLLGATE_CERT_DIR")]
    cert_dir: Option<PathBuf>,

    /// CA certificates, PEM
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cert_dir", "ca_bundle"])]
    ca_file: Option<PathBuf>,

    /// CA certificates, PEM in base64, as `tollgate serve` prints them
    #[arg(long, value_name = "BASE64", conflicts_with = "cert_dir")]
    ca_bundle: Option<String>,

    /// Where the API server finds the webhook outside of the cluster: https://host:port
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The namespace to install into
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    namespace: String,

    /// Register more kinds than the base does; the folders of `manifests/overlays`
    #[arg(long, value_name = "OVERLAY", value_delimiter = ',')]
    with: Vec<Overlay>,

    /// The image to run
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let bundle = self.bundle()?;
        if let Some(url) = &self.url
            && !url.starts_with("https://")
        {
            return Err(Failure::Usage("--url begins with https://".to_owned()));
        }
        let mut documents: Vec<String> = Vec::new();
        if self.url.is_none() {
            documents.extend(WORKLOAD.map(|text| self.placed(text)));
            documents.extend(self.secret()?);
        }
        let place = self.place();
        documents.extend(place.webhooks(bundle.as_deref()));
        for text in self.with.iter().flat_map(|overlay| overlay.webhooks()) {
            documents.push(place.registered(text, bundle.as_deref()));
        }
        writeln!(console, "{}", documents.join("---\n").trim_end())?;
        Ok(Tally::default())
    }

    fn bundle(&self) -> Result<Option<String>, Failure> {
        let file = match (&self.cert_dir, &self.ca_file) {
            (Some(directory), _) => Some(directory.join("ca.crt")),
            (None, file) => file.clone(),
        };
        match file {
            Some(file) => Ok(Some(STANDARD.encode(read(&file)?))),
            None => Ok(self.ca_bundle.clone()),
        }
    }

    /// The Secret the deployment mounts, if there is a directory to take it from.
    fn secret(&self) -> Result<Option<String>, Failure> {
        let Some(directory) = &self.cert_dir else { return Ok(None) };
        let mut text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: tollgate-tls\n  namespace: {}\ntype: kubernetes.io/tls\ndata:\n",
            self.namespace
        );
        for name in ["tls.crt", "tls.key"] {
            // A `String` takes everything.
            _ = writeln!(text, "  {name}: {}", STANDARD.encode(read(&directory.join(name))?));
        }
        Ok(Some(text))
    }

    /// A manifest in the namespace and with the image asked for.
    fn placed(&self, text: &str) -> String {
        let text = text.replace(NAMESPACE, &self.namespace);
        match &self.image {
            Some(image) => text.replace(IMAGE, &format!("image: {image}")),
            None => text,
        }
    }

    fn place(&self) -> Place {
        let (url, namespace) = (self.url.clone(), self.namespace.clone());
        Place { url, namespace, name: NAME.to_owned(), only: None }
    }
}

/// Where the API server finds the webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Outside of the cluster; else the Service of the manifests.
    pub(super) url: Option<String>,
    /// Where the Service is.
    pub(super) namespace: String,
    /// The name of both configurations.
    pub(super) name: String,
    /// Only objects with this label (`key`, `value`) are sent here.
    pub(super) only: Option<(String, String)>,
}

impl Place {
    /// The webhook configurations, validating first.
    pub(super) fn webhooks(&self, bundle: Option<&str>) -> [String; 2] {
        WEBHOOKS.map(|text| self.registered(text, bundle))
    }

    /// A webhook configuration with its caBundle and address.
    fn registered(&self, text: &str, bundle: Option<&str>) -> String {
        let mut registered = String::new();
        for line in text.lines() {
            let path = line.strip_prefix(SERVICE).and_then(|rest| rest.strip_suffix('}'));
            let line = match (path, &self.url) {
                (Some(path), Some(url)) => format!("    url: {}{path}", url.trim_end_matches('/')),
                _ if line == NAME_LINE => format!("  name: {}", self.name),
                _ => line.to_owned(),
            };
            registered.push_str(&line);
            registered.push('\n');
            if let (Some(_), Some(bundle)) = (path, bundle) {
                _ = writeln!(registered, "    caBundle: {bundle}");
            }
            if let (Some(_), Some((key, value))) = (path, &self.only) {
                _ = writeln!(registered, "  objectSelector: {{matchLabels: {{{key:?}: {value:?}}}}}");
            }
        }
        registered.replace(NAMESPACE, &self.namespace)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::Input(format!("{}: {error}", file.display())))
}
