//! How a registration says what is wrong: log lines, and the text of `/readyz?verbose`.

use std::time::Duration;

use super::applied::StoredConfigState;
use super::compare::joined;
use super::rivals::last_manager_if_other;
use super::target::WebhookConfigRef;
use super::{ApiError, Registrar};
use tollgate_document::doc::Value;

impl Registrar {
    /// Warns that entries of an API that is no longer registered cannot be removed.
    pub(super) fn warn_once_of_remaining_entries(&mut self, error: &ApiError) {
        if !std::mem::replace(&mut self.has_warned, true) {
            let (resource, name) = (self.target.resource, &self.target.name);
            tracing::warn!(resource, name, %error, "cannot remove webhook entries that are no longer registered");
        }
    }

    /// Counts and logs a write.
    pub(super) fn count_and_log_write(&self, what: &str, fields: &str) {
        let WebhookConfigRef { resource, name } = &self.target;
        self.status.update(|state| state.done += 1);
        tracing::info!(resource, name, fields, "{what}");
    }

    /// Reports that the configuration is as desired.
    pub(super) fn report_state(&self, state: StoredConfigState, registered_revision: u64) {
        let WebhookConfigRef { resource, name } = &self.target;
        let place = format!("registered as {resource}/{name}");
        let message = match state {
            StoredConfigState::UpToDate => place,
            StoredConfigState::WithUnneededEntries => {
                format!("{place}, with entries that this server does not need")
            }
            StoredConfigState::NoCaBundle => {
                format!("{place} without a caBundle; waiting for one to be injected")
            }
            StoredConfigState::NotNeeded => "not registered: no policy needs it".to_owned(),
        };
        self.status.update(|status| {
            (status.ok, status.settled, status.revision) =
                (state != StoredConfigState::NoCaBundle, true, registered_revision);
            status.message = message;
        });
    }

    /// Reports that something changed the configuration since this process registered it, if so.
    pub(super) fn report_change_by_others(&self, stored: Value<'_>) -> Result<(), ApiError> {
        let Some(applied) = &self.applied else { return Ok(()) };
        let changed = applied.fields_changed_in(stored)?;
        if changed.is_empty() {
            return Ok(());
        }
        let (resource, name, fields) = (self.target.resource, &self.target.name, joined(&changed));
        let manager = last_manager_if_other(stored);
        // A manager that only removed something is not listed, and another Tollgate has the same name.
        let by = if manager.is_empty() { "not known, or another Tollgate" } else { manager.as_str() };
        tracing::warn!(resource, name, by, fields, "webhook configuration changed; reverting");
        // It is normal that replicas reload their policies at different times.
        if !manager.is_empty() {
            self.status.update(|state| {
                state.ok = false;
                state.message = format!("changed by {by} ({fields}); reverting");
            });
        }
        Ok(())
    }

    pub(super) fn report_other_server(&self, rival: &str, delay: Duration) {
        let WebhookConfigRef { resource, name } = &self.target;
        let seconds = delay.as_secs_f32();
        tracing::warn!(
            resource,
            name,
            rival,
            seconds,
            "another server registers itself under the same name; set a different --register-name"
        );
        self.status.update(|state| {
            state.ok = false;
            state.message = format!(
                "{resource}/{name} is also registered by another server ({rival}); set a different --register-name"
            );
        });
    }

    pub(super) fn report_error(&self, error: &ApiError) {
        let WebhookConfigRef { resource, name } = &self.target;
        let hint = match error.http_status_or_zero() {
            401 => "; check the credentials",
            403 => "; apply the ClusterRole of manifests/overlays/self-managed",
            _ => "",
        };
        let (log, message) = if self.is_registered {
            ("cannot check the webhook configuration", "cannot check the registration")
        } else {
            ("cannot register the webhook configuration", "not registered")
        };
        tracing::warn!(resource, name, "{log}; retrying: {error}{hint}");
        self.status.update(|state| {
            state.ok = false;
            state.failed += 1;
            state.message = format!("{message}: {error}{hint}");
        });
    }

    pub(super) fn report_missing_owner(&self, is_stored: bool) {
        let WebhookConfigRef { resource, name } = &self.target;
        let owner = self.registration.owner.as_deref().unwrap_or_default();
        let message = format!("not registered: the owner, ClusterRole {owner}, does not exist");
        if self.status.get().message != message {
            tracing::warn!(
                resource,
                name,
                owner,
                "webhook configuration not registered: its owner does not exist"
            );
        }
        // A webhook that is not registered is ready; one that is called and not trusted is not.
        self.status.update(|state| {
            (state.ok, state.message) = (false, message);
            state.settled |= !is_stored;
        });
    }

    pub(super) fn report_deleted(&self) {
        let WebhookConfigRef { resource, name } = &self.target;
        tracing::warn!(
            resource,
            name,
            "webhook configuration deleted; Tollgate does not recreate the configuration until Tollgate restarts"
        );
        self.status.update(|state| {
            state.ok = false;
            "deleted; Tollgate does not recreate the configuration until Tollgate restarts"
                .clone_into(&mut state.message);
        });
    }
}
