//! The user's request for a drain.

use tollgate_engine::impact::target::DeviceTarget;

/// Default taint key of a drain (`--key`).
pub const DEFAULT_KEY: &str = "tollgate.dev/drain";

/// The devices to drain, and the options of the drain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrainRequest {
    /// The targets as the user entered them.
    pub typed: Vec<String>,
    /// The parsed targets.
    pub targets: Vec<DeviceTarget>,
    /// Taint key.
    pub key: String,
    pub options: MoveOptions,
}

/// Options that decide which pods may be moved, and how many at a time. All booleans default to false, which moves
/// fewer pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct MoveOptions {
    /// `--move-unknown`: also move pods whose replacement fits only sometimes or cannot be predicted. They
    /// move one at a time.
    pub move_unknown: bool,
    /// `--force`: also move pods without a controller, which are not recreated.
    pub without_controller: bool,
    /// `--delete-emptydir-data`: also move pods with emptyDir volumes on disk.
    pub delete_empty_dir_data: bool,
    /// `--evict-daemonset-pods`: also move pods of DaemonSets. Their replacements stay Pending until the
    /// drain ends.
    pub daemon_set_pods: bool,
    /// `--ignore-do-not-disrupt`: also move pods with annotations that ask not to be disrupted.
    pub ignore_do_not_disrupt: bool,
    /// `--max-wave`: maximum number of pods in one wave. A group that moves as one unit can exceed it.
    pub max_wave: usize,
}

impl Default for MoveOptions {
    fn default() -> MoveOptions {
        MoveOptions {
            move_unknown: false,
            without_controller: false,
            delete_empty_dir_data: false,
            daemon_set_pods: false,
            ignore_do_not_disrupt: false,
            max_wave: 10,
        }
    }
}
