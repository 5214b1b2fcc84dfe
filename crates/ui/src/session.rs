//! Tokens, each of which opens one session, and the sessions.
//!
//! A token is in an address, so it ends up in the history of a browser and on a screen. It is therefore of use only
//! once. The secret of the session is in a cookie that scripts cannot read.
//!
//! Invariant: a secret is 256 random bits, and comparing one with a guess takes the same time for every guess.

use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Maximum number of open sessions, and of tokens that wait for their first use. The oldest ones end first.
const MAX_SECRETS: usize = 16;

/// The tokens and sessions of a server.
#[derive(Debug)]
pub(crate) struct Sessions {
    cookie: String,
    secrets: Mutex<Secrets>,
}

#[derive(Default, Debug)]
struct Secrets {
    tokens: Vec<String>,
    sessions: Vec<String>,
}

impl Sessions {
    /// Creates a store without sessions. The name of the cookie contains the port, because cookies do not distinguish
    /// ports.
    pub(crate) fn new(port: u16) -> Sessions {
        Sessions { cookie: format!("tollgate-{port}"), secrets: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a token that opens one session.
    pub(crate) fn issue_token(&self) -> anyhow::Result<String> {
        let token = random_secret()?;
        add_secret_evicting_oldest(&mut self.lock().tokens, token.clone());
        Ok(token)
    }

    /// Opens a session for a token, which is of no use afterwards. Returns the value of `Set-Cookie`; `None` if the
    /// token is unknown or was used.
    pub(crate) fn exchange_token_for_set_cookie(&self, token: &str) -> Option<String> {
        let session = random_secret().ok()?;
        let mut secrets = self.lock();
        let place = secrets.tokens.iter().position(|known| is_equal_in_constant_time(known, token))?;
        secrets.tokens.swap_remove(place);
        add_secret_evicting_oldest(&mut secrets.sessions, session.clone());
        Some(format!("{}={session}; Path=/; HttpOnly; SameSite=Strict", self.cookie))
    }

    /// True if the cookies of a request contain a session.
    pub(crate) fn has_open_session(&self, cookies: &str) -> bool {
        let prefix = format!("{}=", self.cookie);
        let mut values = cookies.split("; ").filter_map(|cookie| cookie.strip_prefix(prefix.as_str()));
        let secrets = self.lock();
        values.any(|value| secrets.sessions.iter().any(|known| is_equal_in_constant_time(known, value)))
    }
}

fn add_secret_evicting_oldest(secrets: &mut Vec<String>, secret: String) {
    if secrets.len() >= MAX_SECRETS {
        secrets.remove(0);
    }
    secrets.push(secret);
}

fn random_secret() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("cannot get random numbers: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// True if both texts are equal. The comparison takes a time that depends only on their lengths.
fn is_equal_in_constant_time(known: &str, guess: &str) -> bool {
    let differences = known.bytes().zip(guess.bytes()).fold(0, |found, (left, right)| found | (left ^ right));
    known.len() == guess.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::{MAX_SECRETS, Sessions};

    #[test]
    fn a_token_opens_one_session() {
        let sessions = Sessions::new(8000);
        let token = sessions.issue_token().unwrap();
        assert_eq!(token.len(), 43);
        assert_eq!(sessions.exchange_token_for_set_cookie(""), None);
        assert_eq!(sessions.exchange_token_for_set_cookie(&token[..42]), None);
        let cookie = sessions.exchange_token_for_set_cookie(&token).unwrap();
        assert_eq!(sessions.exchange_token_for_set_cookie(&token), None, "once");
        let (pair, flags) = cookie.split_once("; ").unwrap();
        assert_eq!(flags, "Path=/; HttpOnly; SameSite=Strict");
        assert!(sessions.has_open_session(pair));
        assert!(sessions.has_open_session(&format!("other=1; {pair}; more=2")));
        assert!(!sessions.has_open_session("tollgate-8000="));
        assert!(
            !sessions.has_open_session(&format!("tollgate-8000={token}")),
            "the token is not the session"
        );
        assert!(!sessions.has_open_session(&pair.replace("tollgate-8000", "tollgate-8001")));
    }

    #[test]
    fn the_oldest_secrets_end_first() {
        let sessions = Sessions::new(1);
        let first = sessions.issue_token().unwrap();
        let others: Vec<_> = (0..MAX_SECRETS).map(|_| sessions.issue_token().unwrap()).collect();
        assert_eq!(sessions.exchange_token_for_set_cookie(&first), None);
        assert!(others.iter().all(|token| sessions.exchange_token_for_set_cookie(token).is_some()));
    }
}
