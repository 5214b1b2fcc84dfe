//! `tollgate manifests`: the install manifests with the caBundle filled in.
//!
//! The workload comes from `manifests/base`, the webhook configurations from [`crate::registration`]. The server gets
//! the flags that were given, and the files that they name (`carried`).
//!
//! Invariant: nothing is printed that cannot work. A certificate that the API server would not trust under the name it
//! uses, and a missing CA, are errors.

mod carried;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::console::{Console, quote_for_shell};
use super::given::GivenFlags;
use super::outcome::{ExitCounts, Failure};
use super::shared::{DefaultRules, EngineArgs};
use crate::files;
use crate::registration::{OptionalApi, WebhookDestination, WebhookEntries};
use carried::ConfigMapFiles;
use tollgate_formats::names;

/// The manifests of the Deployment and the objects around it, in the order in which they are applied.
const WORKLOAD_MANIFESTS: [&str; 5] = [
    include_str!("../../manifests/base/namespace.yaml"),
    include_str!("../../manifests/base/service.yaml"),
    include_str!("../../manifests/base/deployment.yaml"),
    include_str!("../../manifests/base/disruption.yaml"),
    include_str!("../../manifests/base/network.yaml"),
];
const IMAGE_LINE: &str = "image: tollgate:0.1.0";
/// Lines of the Deployment after which arguments, mounts and volumes are inserted.
const LAST_ARGUMENT: &str = "        - --drain=15s\n";
const LAST_MOUNT: &str = "        - {name: certs, mountPath: /certs, readOnly: true}\n";
const FIRST_VOLUMES_LINE: &str = "      volumes:\n";

/// Print the installation manifests with the caBundle filled in
///
/// With --policy, also prints a ConfigMap with these policies for the server, and prints only the webhook entries that
/// the policies need. The server also gets --kubernetes, --feature-gates, --rules and --classes. With --cert-dir, also
/// prints a Secret with the server certificate from that directory; the certificate must be valid for the name that the
/// API server uses. With --url, prints only webhook configurations that contain this URL instead of the Service.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    given: GivenFlags,

    /// Certificate directory, created by `tollgate certs` or by `tollgate serve` with --cert-dir
    #[arg(long, value_name = "DIR", env = "TOLLGATE_CERT_DIR")]
    cert_dir: Option<PathBuf>,

    /// PEM file with the CA certificates
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cert_dir", "ca_bundle"])]
    ca_file: Option<PathBuf>,

    /// CA certificates as base64-encoded PEM, as printed by `tollgate serve`
    #[arg(long, value_name = "BASE64", conflicts_with = "cert_dir", value_parser = decode_ca_bundle_refusing_private_key)]
    ca_bundle: Option<String>,

    /// Omit the caBundle; use this flag if cert-manager injects the caBundle, or if the API server's host trusts the CA
    /// of the webhook at --url
    #[arg(long, conflicts_with_all = ["cert_dir", "ca_file", "ca_bundle"])]
    no_ca_bundle: bool,

    /// URL of a webhook outside the cluster: https://host:port
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    url: Option<String>,

    /// Namespace to install into
    #[arg(long, value_name = "NAME", default_value = WebhookDestination::DEFAULT_NAMESPACE, value_parser = parse_namespace)]
    namespace: String,

    /// Also register webhooks for these APIs, separated by commas: pods, classic-dra, foundationdb, kep-5055-r1
    #[arg(long, value_name = "API", value_delimiter = ',', value_parser = parse_optional_api)]
    with: Vec<OptionalApi>,

    /// Set `failurePolicy: Fail` on all webhook entries, so that objects that cannot be checked are rejected
    #[arg(long)]
    fail_closed: bool,

    /// Container image to run
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    image: Option<String>,

    #[command(flatten)]
    engine: EngineArgs,
}

/// Parses the name of an optional API.
pub(super) fn parse_optional_api(text: &str) -> Result<OptionalApi, String> {
    let names = || OptionalApi::ALL.map(OptionalApi::name).join(", ");
    OptionalApi::ALL
        .into_iter()
        .find(|api| api.name() == text)
        .ok_or_else(|| format!("use one of: {}", names()))
}

/// Parses the name of a namespace: a DNS label, so that it can stand in any manifest.
pub(super) fn parse_namespace(text: &str) -> Result<String, String> {
    let error = || {
        "use 1 to 63 lowercase letters, digits or `-`, starting and ending with a letter or digit".to_owned()
    };
    names::is_dns_label(text).then(|| text.to_owned()).ok_or_else(error)
}

/// Parses `https://host:port`, as the API server accepts it.
pub(super) fn parse_url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").map(|rest| rest.trim_end_matches('/')).unwrap_or_default();
    // upstream v1.36 ValidateWebhookURL: no user, no query, no fragment.
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%".contains(c);
    if host.is_empty() || !host.chars().all(is_legal) {
        return Err("use https://host:port".to_owned());
    }
    if let Some((host, _)) = host.split_once('/') {
        return Err(format!(
            "the server answers only at /validate and /mutate; use https://{host} without a path"
        ));
    }
    let (name, port) = match host.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => (address, port),
        Some(None) => return Err("use https://[address]:port; the `]` is missing".to_owned()),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let has_good_port = match port.strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok_and(|port| port > 0),
        None => port.is_empty(),
    };
    match (name, has_good_port) {
        ("", _) => Err("use https://host:port".to_owned()),
        (_, true) => Ok(format!("https://{host}")),
        (_, false) => {
            Err("use https://host:port with a port from 1 to 65535, and put `[` and `]` around an IPv6 \
                           address"
                .to_owned())
        }
    }
}

fn parse_image(text: &str) -> Result<String, String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    let error = || "use registry/name:tag or registry/name@digest".to_owned();
    (!text.is_empty() && text.chars().all(is_legal)).then(|| text.to_owned()).ok_or_else(error)
}

fn decode_ca_bundle_refusing_private_key(text: &str) -> Result<String, String> {
    let pem = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pem = pem.ok_or("not base64-encoded PEM; copy the caBundle that `tollgate serve` prints")?;
    refuse_private_key(pem.as_bytes())?;
    Ok(pem)
}

/// Reads a file with the CA certificates for a caBundle. An error if it also contains a private key.
pub(super) fn read_ca_file_refusing_private_key(file: &Path) -> Result<Vec<u8>, Failure> {
    let pem = read_pem(file)?;
    refuse_private_key_in(file, &pem)?;
    Ok(pem)
}

/// Returns an error that names the file if its content contains a private key.
pub(super) fn refuse_private_key_in(file: &Path, pem: &[u8]) -> Result<(), Failure> {
    refuse_private_key(pem).map_err(|error| Failure::Input(format!("{}: {error}", file.display())))
}

/// Returns an error if the PEM text contains a private key of any type. The API server accepts such a caBundle.
fn refuse_private_key(pem: &[u8]) -> Result<(), String> {
    const END_OF_KEY_LABEL: &[u8] = b"PRIVATE KEY-----";
    if pem.windows(END_OF_KEY_LABEL.len()).any(|part| part == END_OF_KEY_LABEL) {
        return Err(
            "contains a private key, which everyone who can read the webhook configurations would see; use \
                    only the certificates"
                .to_owned(),
        );
    }
    Ok(())
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let bundle = self.read_ca_bundle()?;
        let here = self.destination();
        #[cfg(feature = "serve")]
        self.check_certificates(bundle.as_deref(), &here)?;
        let entries = if self.engine.policies.paths.is_empty() {
            WebhookEntries::of_static_manifests()
        } else {
            WebhookEntries::needed_by(&self.engine.engine(DefaultRules::Webhook)?)
        };
        let flags = self.server_flags()?;
        let mut documents: Vec<String> = Vec::new();
        if let Some(url) = &self.url {
            self.print_server_flags(url, &flags, console);
        } else {
            let carried = self.config_map_files()?;
            let [namespace, workload @ ..] = WORKLOAD_MANIFESTS;
            documents.push(self.set_namespace_and_image(namespace));
            documents.extend(carried.iter().map(|files| files.config_map_manifest(&self.namespace)));
            documents.extend(workload.map(|text| {
                add_flags_and_files_to_deployment(&self.set_namespace_and_image(text), &flags, &carried)
            }));
            documents.extend(self.tls_secret_manifest_from_cert_dir()?);
            for files in carried.iter().filter(|files| files.needs_server_side_apply()) {
                let name = files.config_map_name();
                console.note(&format!(
                    "ConfigMap {name} is too large for the annotation that `kubectl apply` adds; use \
                     `kubectl apply --server-side`"
                ));
            }
        }
        let bundle = bundle.map(|bundle| STANDARD.encode(bundle));
        documents.extend(here.nonempty_base_configurations(&entries, bundle.as_deref()));
        documents.extend(
            self.with.iter().flat_map(|api| here.optional_configurations(*api, &entries, bundle.as_deref())),
        );
        if self.url.is_none() && self.cert_dir.is_none() {
            let (namespace, name) = (&self.namespace, here.url_or_service_host_name());
            console.note(&format!(
                "the output contains no Secret; create Secret tollgate-tls in namespace {namespace} with tls.crt and \
                 tls.key for {name}, signed by this CA, or use --cert-dir"
            ));
        }
        writeln!(console, "{}", documents.join("---\n").trim_end())?;
        Ok(ExitCounts::default())
    }

    /// Returns the CA bundle of the flags as PEM; `None` with `--no-ca-bundle`, and an error if no flag sets it.
    fn read_ca_bundle(&self) -> Result<Option<Vec<u8>>, Failure> {
        let in_folder = self.cert_dir.as_ref().map(|directory| directory.join("ca.crt"));
        match (in_folder.or_else(|| self.ca_file.clone()), &self.ca_bundle) {
            (Some(file), _) => Ok(Some(read_ca_file_refusing_private_key(&file)?)),
            (None, Some(pem)) => Ok(Some(pem.clone().into_bytes())),
            (None, None) if self.no_ca_bundle => Ok(None),
            (None, None) => Err(Failure::Usage(
                "no CA is set: without a caBundle, the API server cannot call the webhook and rejects claims with \
                 tolerations and DeviceTaintRules. Use --cert-dir, --ca-file or --ca-bundle, or --no-ca-bundle if \
                 cert-manager injects the caBundle"
                    .to_owned(),
            )),
        }
    }

    /// Checks that an API server with this bundle trusts the certificate in `--cert-dir`. Without that flag, only the
    /// bundle itself is checked.
    #[cfg(feature = "serve")]
    fn check_certificates(&self, bundle: Option<&[u8]>, here: &WebhookDestination) -> Result<(), Failure> {
        use super::clock;
        use crate::server::{check_ca_bundle_is_unexpired, check_server_cert};
        let Some(bundle) = bundle else { return Ok(()) };
        check_ca_bundle_is_unexpired(bundle, clock::unix_seconds())
            .map_err(|error| Failure::Input(format!("invalid CA bundle: {error:#}")))?;
        let Some(directory) = &self.cert_dir else { return Ok(()) };
        let (chain, key) = (read_pem(&directory.join("tls.crt"))?, read_pem(&directory.join("tls.key"))?);
        let name = here.url_or_service_host_name();
        check_server_cert(&chain, &key, bundle, &name, clock::unix_seconds()).map_err(|error| {
            let shown = directory.display().to_string();
            let (shown, word) = (tollgate_formats::sanitize::sanitize_as_line(&shown).into_owned(), quote_for_shell(&shown));
            Failure::Input(format!(
                "{shown}: the API server would not trust this certificate: {error:#}. Create a certificate with \
                 `tollgate certs {word} --dns-name {name}`, and run `tollgate serve` with the same --dns-name"
            ))
        })
    }

    /// Returns the manifest of the Secret with the certificates of `--cert-dir`; `None` without that flag.
    fn tls_secret_manifest_from_cert_dir(&self) -> Result<Option<String>, Failure> {
        let Some(directory) = &self.cert_dir else { return Ok(None) };
        let mut text = format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: tollgate-tls\n  namespace: {}\n  labels: {{app.kubernetes.io/name: tollgate}}\ntype: kubernetes.io/tls\ndata:\n",
            self.namespace
        );
        for name in ["tls.crt", "tls.key"] {
            // Writing to a `String` cannot fail.
            _ = writeln!(text, "  {name}: {}", STANDARD.encode(read_pem(&directory.join(name))?));
        }
        Ok(Some(text))
    }

    /// Sets the namespace and image of a manifest.
    fn set_namespace_and_image(&self, text: &str) -> String {
        let text = text.replace(WebhookDestination::DEFAULT_NAMESPACE, &self.namespace);
        match &self.image {
            Some(image) => text.replace(IMAGE_LINE, &format!("image: {image}")),
            None => text,
        }
    }

    /// Returns the given flags that the server also has, except those with files. `--kubernetes cluster` becomes
    /// the current release of the cluster, because the server has no access to the API server.
    fn server_flags(&self) -> Result<Vec<String>, Failure> {
        let mut flags = Vec::new();
        if ["kubernetes", "context"].iter().any(|name| self.given.get(name).is_some()) {
            let names: Vec<&str> =
                self.engine.release.profiles()?.iter().map(|profile| profile.name).collect();
            flags.push(format!("--kubernetes={}", names.join(",")));
        }
        for (name, flag) in [("feature_gates", "--feature-gates"), ("rules", "--rules")] {
            flags.extend(self.given.get(name).map(|given| format!("{flag}={}", given.value)));
        }
        Ok(flags)
    }

    /// Reads the files of `--policy` and `--classes`, for ConfigMaps.
    fn config_map_files(&self) -> Result<Vec<ConfigMapFiles>, Failure> {
        let (policies, classes) = (&self.engine.policies.paths, &self.engine.classes);
        let mut carried = Vec::new();
        if !policies.is_empty() {
            carried.push(ConfigMapFiles::read_policies_with_schemas(policies)?);
        }
        if !classes.is_empty() {
            carried.push(ConfigMapFiles::read_resource_classes(classes)?);
        }
        Ok(carried)
    }

    /// Prints the flags of the server at `--url`, which runs outside the manifests and must be started with them.
    fn print_server_flags(&self, url: &str, flags: &[String], console: &mut Console) {
        let paths = |flag: &'static str, paths: &[PathBuf]| {
            let word = move |path: &PathBuf| format!("{flag}={}", path.display());
            paths.iter().map(word).collect::<Vec<_>>()
        };
        let EngineArgs { policies, classes, .. } = &self.engine;
        let files = [paths("--policy", &policies.paths), paths("--classes", classes)].concat();
        let words: Vec<String> = files.iter().chain(flags).map(|flag| quote_for_shell(flag)).collect();
        if !words.is_empty() {
            console.note(&format!("start the server at {url} with the same flags: {}", words.join(" ")));
        }
    }

    fn destination(&self) -> WebhookDestination {
        let (url, namespace) = (self.url.clone(), self.namespace.clone());
        let (name, fail_closed) = (WebhookDestination::DEFAULT_NAME.to_owned(), self.fail_closed);
        WebhookDestination { url, namespace, name, only: None, fail_closed }
    }
}

/// Adds arguments, mounts and volumes to the Deployment; returns any other manifest unchanged.
fn add_flags_and_files_to_deployment(text: &str, flags: &[String], carried: &[ConfigMapFiles]) -> String {
    let mut arguments = LAST_ARGUMENT.to_owned();
    for argument in flags.iter().cloned().chain(carried.iter().map(ConfigMapFiles::server_argument)) {
        // Writing to a `String` cannot fail.
        _ = writeln!(arguments, "        - {argument:?}");
    }
    let mounts: String = carried.iter().map(ConfigMapFiles::mount_yaml).collect();
    let volumes: String = carried.iter().map(ConfigMapFiles::volume_yaml).collect();
    text.replace(LAST_ARGUMENT, &arguments)
        .replace(LAST_MOUNT, &format!("{LAST_MOUNT}{mounts}"))
        .replace(FIRST_VOLUMES_LINE, &format!("{FIRST_VOLUMES_LINE}{volumes}"))
}

/// Reads a file with a certificate or key. The size is limited, because the path may be a device such as
/// `/dev/zero`.
pub(super) fn read_pem(file: &Path) -> Result<Vec<u8>, Failure> {
    Ok(files::read_bytes(file, files::MAX_PEM)?)
}
