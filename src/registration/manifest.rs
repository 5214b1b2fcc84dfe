//! The webhook configurations as text: the files of `manifests/webhooks`, with address and caBundle filled in.
//!
//! The files are compiled in and changed by line. Their shape is known, because they are part of this crate, and a test
//! decodes every result as the types of a real release.

use std::fmt::Write as _;

use super::{POLICIES, WebhookEntries};

/// The base configurations, and the entries that only derived registrations have; validating first.
const BASE_MANIFESTS: [[&str; 2]; 2] = [
    [
        include_str!("../../manifests/webhooks/validating.yaml"),
        include_str!("../../manifests/webhooks/derived-validating.yaml"),
    ],
    [
        include_str!("../../manifests/webhooks/mutating.yaml"),
        include_str!("../../manifests/webhooks/derived-mutating.yaml"),
    ],
];

tollgate_formats::named_enum! {
    /// Other APIs that can be registered, each in its own webhook configurations. The names are those in `--with`, and
    /// in the names of the configurations, such as `pods` in `tollgate-pods`.
    pub(crate) enum OptionalApi {
        /// Claims of pods and workloads.
        Pods = "pods",
        /// Classic DRA (KEP-3063).
        ClassicDra = "classic-dra",
        /// Taint options of FoundationDBClusters.
        Foundationdb = "foundationdb",
        /// ResourceSlicePatches of draft r1.
        Kep5055R1 = "kep-5055-r1",
    }
}

impl OptionalApi {
    /// Returns its webhook configurations: the label of each in metrics, and its manifest.
    pub(crate) fn metric_labels_and_manifests(self) -> &'static [(&'static str, &'static str)] {
        match self {
            OptionalApi::Pods => {
                &[("pods-validating", include_str!("../../manifests/webhooks/pods-validating.yaml"))]
            }
            OptionalApi::ClassicDra => &[
                (
                    "classic-dra-validating",
                    include_str!("../../manifests/webhooks/classic-dra-validating.yaml"),
                ),
                ("classic-dra-mutating", include_str!("../../manifests/webhooks/classic-dra-mutating.yaml")),
            ],
            OptionalApi::Foundationdb => &[(
                "foundationdb-validating",
                include_str!("../../manifests/webhooks/foundationdb-validating.yaml"),
            )],
            OptionalApi::Kep5055R1 => &[
                (
                    "kep-5055-r1-validating",
                    include_str!("../../manifests/webhooks/kep-5055-r1-validating.yaml"),
                ),
                ("kep-5055-r1-mutating", include_str!("../../manifests/webhooks/kep-5055-r1-mutating.yaml")),
            ],
        }
    }
}

/// The line with the Service of a webhook, up to the path.
const SERVICE_LINE: &str = "    service: {name: tollgate, namespace: tollgate-system, port: 443, path: ";
/// End of the list of exempt namespaces, with the namespace of the server. It is omitted for a server outside
/// the cluster, because anyone who can create a namespace with this name would be exempt.
const EXEMPT_NAMESPACES_END: &str = ", tollgate-system]";
/// Prefix of the name line of every configuration.
const NAME_LINE: &str = "  name: tollgate";
/// The line of an entry that fails open.
const FAILS_OPEN_LINE: &str = "  failurePolicy: Ignore";
/// The line of the manifest that precedes the list of webhooks.
const WEBHOOKS_LINE: &str = "webhooks:\n";

/// How the API server reaches the webhook (Service or URL), and the names and common fields of the webhook
/// configurations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WebhookDestination {
    /// URL of a webhook outside of the cluster; `None` for the Service of the manifests.
    pub url: Option<String>,
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the base configurations; the others add their own.
    pub name: String,
    /// Label (`key`, `value`) of the objects that are sent to the webhook; `None` for all objects.
    pub only: Option<(String, String)>,
    /// True if every entry fails closed.
    pub fail_closed: bool,
}

impl WebhookDestination {
    /// Default name of the webhook configurations.
    pub(crate) const DEFAULT_NAME: &'static str = "tollgate";
    /// Default namespace of the Service.
    pub(crate) const DEFAULT_NAMESPACE: &'static str = "tollgate-system";

    /// A webhook at the Service of the manifests in this namespace, with default names.
    #[cfg(feature = "serve")]
    pub(crate) fn default_service(namespace: &str) -> WebhookDestination {
        let (namespace, name) = (namespace.to_owned(), WebhookDestination::DEFAULT_NAME.to_owned());
        WebhookDestination { url: None, namespace, name, only: None, fail_closed: false }
    }

    /// Returns the host name that the API server connects to, for which the certificate must be valid.
    pub(crate) fn url_or_service_host_name(&self) -> String {
        match &self.url {
            Some(url) => host_of_url(url).to_owned(),
            None => format!("{}.{}.svc", WebhookDestination::DEFAULT_NAME, self.namespace),
        }
    }

    /// Returns the two base configurations as YAML, validating first, with these entries. Their lists of webhooks
    /// may be empty.
    pub(crate) fn base_configurations(&self, entries: &WebhookEntries, bundle: Option<&str>) -> [String; 2] {
        BASE_MANIFESTS.map(|[text, derived]| {
            let (head, all) = text.split_once(WEBHOOKS_LINE).unwrap_or((text, ""));
            let more = derived.split_once(WEBHOOKS_LINE).map_or("", |(_, more)| more);
            let found: Vec<(&str, &str)> =
                split_webhook_entries(all).chain(split_webhook_entries(more)).collect();
            let chosen =
                entries.names.iter().filter_map(|name| found.iter().find(|(found, _)| found == name));
            let webhooks: String = chosen.map(|(_, text)| *text).collect();
            let list = if webhooks.is_empty() { "webhooks: []\n" } else { WEBHOOKS_LINE };
            self.fill_in_address_and_failure_policy(&format!("{head}{list}{webhooks}"), entries, bundle)
        })
    }

    /// Returns the base configurations that have an entry, as YAML.
    pub(crate) fn nonempty_base_configurations(
        &self,
        entries: &WebhookEntries,
        bundle: Option<&str>,
    ) -> Vec<String> {
        let is_needed = |files: [&'static str; 2]| {
            files.into_iter().flat_map(split_webhook_entries).any(|(name, _)| entries.names.contains(&name))
        };
        let base = self.base_configurations(entries, bundle).into_iter().zip(BASE_MANIFESTS);
        base.filter(|(_, files)| is_needed(*files)).map(|(text, _)| text).collect()
    }

    /// Returns the configurations of an optional API as YAML.
    pub(crate) fn optional_configurations(
        &self,
        api: OptionalApi,
        entries: &WebhookEntries,
        bundle: Option<&str>,
    ) -> Vec<String> {
        api.metric_labels_and_manifests()
            .iter()
            .map(|(_, text)| self.fill_in_address_and_failure_policy(text, entries, bundle))
            .collect()
    }

    /// Returns a configuration with name, address and caBundle filled in, and with the failure policy that the
    /// entries require.
    fn fill_in_address_and_failure_policy(
        &self,
        text: &str,
        entries: &WebhookEntries,
        bundle: Option<&str>,
    ) -> String {
        let mut fill = String::new();
        let (mut fails_closed, mut is_policies) = (self.fail_closed, false);
        let in_namespace = |line: &str| line.replace(WebhookDestination::DEFAULT_NAMESPACE, &self.namespace);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("- name: ") {
                is_policies = name == POLICIES;
                fails_closed = !is_policies && (self.fail_closed || entries.fails_closed(name));
            }
            let path = line.strip_prefix(SERVICE_LINE).and_then(|rest| rest.strip_suffix('}'));
            let line = match (path, &self.url, line.strip_prefix(NAME_LINE)) {
                (Some(path), Some(url), _) => format!("    url: {}{path}", url.trim_end_matches('/')),
                (None, _, Some(rest)) => format!("  name: {}{rest}", self.name),
                (None, Some(_), None) if line.contains(EXEMPT_NAMESPACES_END) => {
                    line.replace(EXEMPT_NAMESPACES_END, "]")
                }
                _ if fails_closed && line == FAILS_OPEN_LINE => "  failurePolicy: Fail".to_owned(),
                _ => in_namespace(line),
            };
            fill.push_str(&line);
            fill.push('\n');
            // Writing to a `String` cannot fail.
            if let (Some(_), Some(bundle)) = (path, bundle) {
                _ = writeln!(fill, "    caBundle: {bundle}");
            }
            // Policies are not among the objects to which a gradual rollout can be limited.
            if let (Some(_), Some((key, value)), false) = (path, &self.only, is_policies) {
                _ = writeln!(fill, "  objectSelector: {{matchLabels: {{{key:?}: {value:?}}}}}");
            }
        }
        fill
    }
}

/// Returns the host of `https://host:port/…`.
fn host_of_url(url: &str) -> &str {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Splits a `webhooks` list into entries: the name of each, and its text with the comments before it.
fn split_webhook_entries(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let at = line_start_where(rest, |line| line.starts_with("- name: "))?;
        let (before, entry) = rest.split_at_checked(at)?;
        let (first, fields) = entry.split_once('\n')?;
        // An entry ends where the next one, or its comment, begins.
        let length = line_start_where(fields, |line| line.starts_with(['-', '#'])).unwrap_or(fields.len());
        let (whole, next) = rest.split_at_checked(before.len() + first.len() + 1 + length)?;
        rest = next;
        Some((first.strip_prefix("- name: ")?, whole))
    })
}

/// Returns the byte at which the first line starts for which `has` is true.
fn line_start_where(text: &str, has: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if has(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{
        BASE_MANIFESTS, FAILS_OPEN_LINE, OptionalApi, POLICIES, WEBHOOKS_LINE, WebhookDestination,
        host_of_url, split_webhook_entries,
    };
    use crate::registration::{ALL_ENTRIES, WebhookEntries};

    #[test]
    fn every_entry_has_a_text_and_every_text_is_an_entry() {
        let mut names: Vec<&str> = Vec::new();
        for text in BASE_MANIFESTS.as_flattened() {
            let (_, list) = text.split_once(WEBHOOKS_LINE).expect("a list");
            let entries: Vec<(&str, &str)> = split_webhook_entries(list).collect();
            assert_eq!(entries.iter().map(|(_, text)| *text).collect::<String>(), list, "nothing is lost");
            names.extend(entries.iter().map(|(name, _)| *name));
        }
        names.sort_unstable();
        let mut all = ALL_ENTRIES.to_vec();
        all.sort_unstable();
        assert_eq!(names, all);
    }

    fn entries(names: &[&'static str]) -> WebhookEntries {
        WebhookEntries { names: names.to_vec(), closed: Vec::new() }
    }

    fn here() -> WebhookDestination {
        WebhookDestination {
            url: None,
            namespace: "a".into(),
            name: "b".into(),
            only: None,
            fail_closed: false,
        }
    }

    #[test]
    fn an_installation_that_fails_closed_has_no_entry_that_fails_open() {
        let all = |here: &WebhookDestination| {
            let base = here.base_configurations(&entries(&ALL_ENTRIES), None);
            let others = OptionalApi::ALL
                .into_iter()
                .flat_map(|api| here.optional_configurations(api, &entries(&[]), None));
            base.into_iter().chain(others).collect::<String>()
        };
        let (open, closed) = (all(&here()), all(&WebhookDestination { fail_closed: true, ..here() }));
        let entries = open.matches("\n- name: ").count();
        assert!(open.contains(FAILS_OPEN_LINE) && open.matches("\n  failurePolicy: ").count() == entries);
        assert_eq!(closed.matches("\n  failurePolicy: Fail\n").count(), entries - 1, "{closed}");
        // Whoever made a mistake in a policy must be able to mend it while the webhook is down.
        let (_, rest) = closed.split_once(POLICIES).expect("the entry for policies");
        assert_eq!(rest.lines().find(|line| line.contains("failurePolicy")), Some(FAILS_OPEN_LINE));
    }

    #[test]
    fn the_name_of_the_server_is_in_the_url() {
        for (url, expected) in [
            ("https://a:8443", "a"),
            ("https://a.b/x", "a.b"),
            ("https://[::1]:8443", "::1"),
            ("https://1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(host_of_url(url), expected);
        }
        assert_eq!(here().url_or_service_host_name(), "tollgate.a.svc");
    }

    #[test]
    fn a_configuration_has_only_the_chosen_entries() {
        let here = here();
        let [validating, mutating] = here.base_configurations(&entries(&ALL_ENTRIES[2..3]), None);
        assert_eq!(validating.matches("- name: claim-details.validate").count(), 1);
        assert_eq!(validating.matches("\n- name: ").count(), 1, "{validating}");
        assert!(mutating.ends_with("webhooks: []\n"), "{mutating}");
        assert!(!validating.contains("tollgate-system") && validating.contains("  name: b\n"));
        let url = Some("https://hook.tollgate-system.svc.example.org".to_owned());
        let [validating, _] =
            WebhookDestination { url, ..here }.base_configurations(&entries(&ALL_ENTRIES[..1]), None);
        assert!(
            validating.contains("url: https://hook.tollgate-system.svc.example.org/validate\n"),
            "{validating}"
        );
    }

    #[test]
    fn only_the_namespace_of_the_server_is_exempt() {
        let every = entries(&ALL_ENTRIES);
        let texts = |here: &WebhookDestination| -> Vec<String> {
            let others = OptionalApi::ALL
                .into_iter()
                .flat_map(|api| here.optional_configurations(api, &entries(&[]), None));
            here.base_configurations(&every, None).into_iter().chain(others).collect()
        };
        let inside = texts(&here()).concat();
        let exempt = |text: &str| text.matches("operator: NotIn, values: [kube-system, a]").count();
        assert_eq!(exempt(&inside), inside.matches("operator: NotIn").count());
        assert!(exempt(&inside) > 0);
        let url = Some("https://example.org".to_owned());
        let outside = texts(&WebhookDestination { url, ..here() }).concat();
        let kept = outside.matches("operator: NotIn, values: [kube-system]}").count();
        assert_eq!(kept, exempt(&inside), "{outside}");
    }
}
