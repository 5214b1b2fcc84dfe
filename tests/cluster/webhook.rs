//! The webhook beside a double of the API server, with certificates that the test knows.

use serde_json::Value;

use crate::client::{Client, Reply};
use crate::double::Double;
use crate::process::Process;
use crate::running::{Authority, Folder, until};

pub(crate) struct Webhook {
    pub(crate) process: Process,
    client: Client,
    folder: Folder,
}

impl Webhook {
    /// Starts one; `policy` is the text of its policy file, if it has one.
    pub(crate) fn start(name: &str, double: &Double, policy: Option<&str>, arguments: &[&str]) -> Webhook {
        let folder = Folder::new(&format!("webhook-{name}"));
        let authority = Authority::new();
        let (chain, key) = authority.pair("tollgate");
        let place = |name: &str, text: &str| {
            let path = folder.0.join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("UTF-8").to_owned()
        };
        let (certificate, key) = (place("tls.crt", &chain), place("tls.key", &key));
        let policy = policy.map(|text| place("policy.yaml", text));
        let mut all = vec!["--tls-cert", &certificate, "--tls-key", &key];
        all.extend(arguments);
        all.extend(policy.iter().flat_map(|policy| ["--policy", policy]));
        let process = Process::start(double, &all);
        let client = Client::new(process.address, &authority.pem);
        Webhook { process, client, folder }
    }

    pub(crate) fn until_ready(&self) {
        until("ready", || self.process.get("/readyz").status == 200);
    }

    /// Replaces the text of its policy file.
    pub(crate) fn write_policy(&self, text: &str) {
        std::fs::write(self.folder.0.join("policy.yaml"), text).expect("written");
    }

    /// Sends a review and returns the response.
    pub(crate) fn post(&self, review: &[u8]) -> Reply {
        self.client.post("/validate", review).expect("an answer")
    }

    /// The response to a review.
    pub(crate) fn send_review(&self, review: &[u8]) -> Value {
        let reply = self.post(review);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
        answer["response"].clone()
    }
}
