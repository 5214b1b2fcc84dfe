//! Fuzz targets for what a kubeconfig and an API server say. Built only for fuzzing and for the test that replays the
//! stored inputs; `fuzz/` has the other targets.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a fuzz target fails by a panic"
)]

use kube::config::Kubeconfig;

/// A kubeconfig: it is used or refused, and no error shows a token of it.
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
    let contexts = kubeconfig.contexts.iter().take(3).map(|context| Some(context.name.as_str()));
    for context in contexts.chain([None]) {
        let Err(error) = crate::kubeconfig::configure(&kubeconfig, context) else { continue };
        let error = format!("{error:#}");
        assert!(!error.contains("SECRET"), "{error}");
    }
}

/// The stream of a watch: whatever it says, reading it ends, and nothing is stored that was not sent.
pub fn watch(data: &[u8]) {
    crate::watch::fuzzing::read_stream(data);
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    fn replay(target: &str, run: fn(&[u8])) {
        let path = format!("{}/../../fuzz/corpus/{target}.gz", env!("CARGO_MANIFEST_DIR"));
        #[expect(clippy::disallowed_methods, reason = "reads the stored inputs")]
        let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("gzip");
        let (mut rest, mut count) = (bytes.as_slice(), 0);
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (input, after) = after.split_at(u32::from_le_bytes(*length) as usize);
            run(input);
            (rest, count) = (after, count + 1);
        }
        assert!(count > 0, "{path} has no inputs");
    }

    #[test]
    fn stored_kubeconfigs_are_used_or_refused() {
        replay("kubeconfig", super::kubeconfig);
    }

    #[test]
    fn stored_watches_end() {
        replay("watch", super::watch);
    }
}
