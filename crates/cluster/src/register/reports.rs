//! How a registration says what is wrong: log lines, and the text of `/readyz?verbose`.

use std::time::Duration;

use super::{ApiError, Registrar, WebhookConfigRef};

impl Registrar {
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
        tracing::warn!(resource, name, "cannot register the webhook configuration; retrying: {error}{hint}");
        self.status.update(|state| {
            state.ok = false;
            state.failed += 1;
            state.message = format!("not registered: {error}{hint}");
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
