//! Every function a device expression can call, as data: the standard library, cel-go's extensions
//! and the Kubernetes libraries.
//!
//! Sources: cel-go `common/stdlib`, `ext`, `cel/library.go`; Kubernetes `apiserver/pkg/cel/library`.
//! Absent on purpose, because the server has no such library: `math.*`, `base64.*`, `jsonpatch.*`.

mod extensions;
mod kubernetes;
mod standard;

use super::outcome::CelEnv;
use super::overload::Overload;

/// The overloads of a function that the environment declares, in declaration order.
pub(super) fn overloads(name: &str, env: CelEnv) -> impl Iterator<Item = &'static Overload> {
    // Names may be written with a leading dot, which means the root of the namespace.
    let name = name.strip_prefix('.').unwrap_or(name);
    [standard::OVERLOADS, extensions::OVERLOADS, kubernetes::OVERLOADS]
        .into_iter()
        .flatten()
        .copied()
        .flatten()
        .filter(move |overload| overload.name == name && overload.is_declared(env))
}
