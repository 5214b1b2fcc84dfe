//! What the user asks a drain for.

use tollgate_engine::impact::target::DeviceTarget;

/// The taint key of a drain, unless `--key` says otherwise.
pub const DEFAULT_KEY: &str = "tollgate.dev/drain";

/// What is drained, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrainRequest {
    /// The targets as they were typed, in their order.
    pub typed: Vec<String>,
    /// The same targets, parsed.
    pub targets: Vec<DeviceTarget>,
    /// The key of the taint.
    pub key: String,
    pub options: MoveOptions,
}

/// Which pods may be moved, and how many at a time. Everything that is false keeps pods where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct MoveOptions {
    /// `--move-unknown`: pods whose replacements fit sometimes, or whose outcome is not known. They go one at a time.
    pub move_unknown: bool,
    /// `--force`: pods without a controller, which nothing makes again.
    pub without_controller: bool,
    /// `--delete-emptydir-data`: pods with emptyDir volumes on disk.
    pub delete_empty_dir_data: bool,
    /// `--evict-daemonset-pods`: pods of DaemonSets. Their replacements stay Pending until the devices are open again.
    pub daemon_set_pods: bool,
    /// `--ignore-do-not-disrupt`: pods with annotations that ask not to be disrupted.
    pub ignore_do_not_disrupt: bool,
    /// `--max-wave`: the most pods in one wave. A group that moves as one unit can have more.
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
