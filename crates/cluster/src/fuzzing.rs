//! Fuzz targets for what a kubeconfig and an API server say. Built only for fuzzing and for the test that replays the
//! stored inputs; `fuzz/` has the other targets.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a fuzz target fails by a panic"
)]

use kube::config::Kubeconfig;
use secrecy::ExposeSecret as _;

/// The word that stands for a credential in fuzzed kubeconfigs.
const SECRET: &str = "SECRET";

/// Number of times that [`SECRET`] occurs in the credentials of a kubeconfig.
fn secret_count(kubeconfig: &Kubeconfig) -> usize {
    let count = |text: &str| text.matches(SECRET).count();
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    let in_users: usize = users
        .flat_map(|user| [&user.token, &user.password, &user.client_key_data])
        .flatten()
        .map(|secret| count(secret.expose_secret()))
        .sum();
    let clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    let in_urls: usize = clusters
        .flat_map(|cluster| [&cluster.server, &cluster.proxy_url])
        .flatten()
        .filter_map(|url| {
            let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
            // `u:1/SECRET@h` is the host u with a path.
            let (user, _) = rest.rsplit_once('@')?;
            (!user.contains('/')).then(|| count(user))
        })
        .sum();
    in_users + in_urls
}

/// Fuzz target: a kubeconfig is used or refused, and no error shows a credential of it.
pub fn kubeconfig(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(kubeconfig) = Kubeconfig::from_yaml(text) else { return };
    // Files are not read: what they are is up to the machine.
    if ["certificate-authority:", "client-certificate:", "client-key:", "tokenFile", "\\"]
        .iter()
        .any(|file| text.contains(file))
    {
        return;
    }
    // An error may show the word if it is also something else, such as the name of a context.
    if text.matches(SECRET).count() != secret_count(&kubeconfig) {
        return;
    }
    let contexts = kubeconfig.contexts.iter().take(3).map(|context| Some(context.name.as_str()));
    for context in contexts.chain([None]) {
        let Err(error) = crate::kubeconfig::config_for_context(&kubeconfig, context) else { continue };
        let error = format!("{error:#}");
        assert!(!error.contains(SECRET), "{error}");
    }
}

/// Fuzz target: reading the stream of a watch ends, whatever it contains, and stores nothing that was not sent.
pub fn watch(data: &[u8]) {
    crate::watch::fuzzing::read_stream(data);
}

#[cfg(test)]
#[path = "../../../fuzz/src/stored.rs"]
mod stored;

#[cfg(test)]
mod tests {
    use super::stored;

    #[test]
    fn stored_kubeconfigs_are_used_or_refused() {
        for input in stored::read("kubeconfig") {
            super::kubeconfig(&input);
        }
    }

    #[test]
    fn stored_watches_end() {
        for input in stored::read("watch") {
            super::watch(&input);
        }
    }
}
