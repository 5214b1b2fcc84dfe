//! `tollgate devices`: who holds which device, and how many are left.
//!
//! Reads a dump or the running cluster, calls `tollgate_forecast::report_devices`, and prints the devices that the
//! flags select. Totals are those of the selected devices. It changes nothing and denies nothing.

mod json;
mod text;

use std::collections::BTreeSet;
use std::io::Write as _;

use super::clock;
use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use super::picture::{self, StateSource};
use super::shared::{ReleaseArgs, StateArgs};
use super::state::{self, DumpOmissions, INCOMPLETE_DUMP_TEXTS, StateObjects};
use tollgate_api::profile::Profile;
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_forecast::{
    DeviceCounts, DeviceReport, DeviceState, ObjectKind, ReportedDevice, State, StoredObject, report_devices,
};

/// Show devices: who holds them, their taints and classes, and how many are free
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Devices to show, as DRIVER[/POOL[/DEVICE]] or node/NAME (default: all)
    ///
    /// node/NAME selects the devices that only this node can use.
    #[arg(value_name = "TARGET", value_parser = DeviceTarget::parse)]
    targets: Vec<DeviceTarget>,

    #[command(flatten)]
    state: StateArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    /// In text, print one row per node, pool, class, driver or namespace instead of one row per device
    #[arg(long, value_name = "GROUP")]
    by: Option<Grouping>,

    /// Show only devices that a taint keeps from being allocated
    #[arg(long)]
    tainted: bool,

    /// Show only devices that the scheduler would allocate to a pod
    #[arg(long, conflicts_with = "tainted")]
    free: bool,

    /// Show only the devices of this node; can be repeated
    #[arg(long, value_name = "NODE", value_delimiter = ',', hide_short_help = true)]
    node: Vec<String>,

    /// Show only devices that match this DeviceClass; can be repeated
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    class: Vec<String>,

    /// Show only devices that claims in this namespace hold; can be repeated
    #[arg(short, long, value_name = "NAMESPACE", value_delimiter = ',')]
    namespace: Vec<String>,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    release: ReleaseArgs,
}

const AFTER_HELP: &str = "\
States of a device; several can apply:
  allocated    a claim holds the device
  tainted      a taint keeps the scheduler from allocating the device, unless the request tolerates the taint
  blocked      the scheduler cannot allocate the device: shared counters are used up, the pool is incomplete, …
  shared       several claims can hold the device; the remaining capacity is shown
  unpublished  a claim holds the device, but no ResourceSlice contains it
  free         none of these: the scheduler would allocate the device

To create a dump, run `tollgate snapshot`.

Exit codes:
  0  the devices were reported
  2  usage error
  3  some input could not be read, some objects could not be listed, or the dump is incomplete
  4  internal error";

/// How the devices are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// Text with all columns
    Wide,
    /// JSON, for programs
    Json,
    /// One HTML file with a map of the devices, for people
    Html,
}

/// What a row of the text stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Grouping {
    /// The node that can use the devices
    Node,
    /// The pool of a driver
    Pool,
    /// The DeviceClass; a device can match several
    Class,
    /// The driver
    Driver,
    /// The namespaces of the claims that hold the devices
    Namespace,
}

/// Kinds that the report is computed from. If a list of one of them is truncated in the dump, the report is
/// incomplete.
pub(super) const REPORT_KINDS: [ObjectKind; 6] = [
    ObjectKind::Node,
    ObjectKind::ResourceSlice,
    ObjectKind::ResourceClaim,
    ObjectKind::DeviceClass,
    ObjectKind::DeviceTaintRule,
    ObjectKind::Pod,
];

/// A dump without any object of one of these kinds is reported as incomplete, unless `--assume-complete` is set.
pub(super) const REQUIRED_DUMP_KINDS: [ObjectKind; 3] =
    [ObjectKind::ResourceSlice, ObjectKind::ResourceClaim, ObjectKind::DeviceClass];

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        #[cfg(feature = "cluster")]
        if self.state.paths.is_empty() {
            return self.run_live(console);
        }
        let texts = state::read_texts(&self.state.paths)?;
        let objects = StateObjects::parse(&texts)?;
        let profile = require_one_profile(&self.release.dump_profiles(&objects.inventory, console)?)?;
        let mut tally = ExitCounts::default();
        let parts = objects.inventory.incomplete_parts_for_kinds(&REPORT_KINDS);
        let kinds = objects
            .inventory
            .missing_object_kinds_message(&REQUIRED_DUMP_KINDS)
            .filter(|_| !self.state.assume_complete);
        let omissions = DumpOmissions { parts, kinds };
        let incomplete =
            omissions.print_as_note_or_error_and_collect(false, INCOMPLETE_DUMP_TEXTS, &mut tally, console);
        let source = StateSource::from_dump(&self.state.paths, &objects.inventory);
        self.print_devices(&objects.state(), &source, profile, &incomplete, console)?;
        Ok(tally)
    }

    /// Reports the devices of the running cluster.
    #[cfg(feature = "cluster")]
    fn run_live(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let asked = self.release.live_server()?;
        let profile = require_one_profile(&self.release.live_profiles()?)?;
        let (objects, incomplete, failures) = super::live::read_device_report_objects(asked, console);
        let source = StateSource::from_cluster(asked);
        self.print_devices(&objects.state(), &source, profile, &incomplete, console)?;
        Ok(ExitCounts { unreadable: failures, ..ExitCounts::default() })
    }

    /// Prints the devices of a state that the flags select. `incomplete` has a message for each thing that the
    /// state lacks.
    pub(super) fn print_devices(
        &self,
        state: &State<'_>,
        source: &StateSource,
        profile: &Profile,
        incomplete: &[String],
        console: &mut Console,
    ) -> Result<(), Failure> {
        let mut report = report_devices(state, profile);
        let classes = self.selected_class_indexes(&report)?;
        self.refuse_targets_without_devices(&report)?;
        self.refuse_unknown_nodes(&report, state)?;
        report.devices.retain(|device| self.selects(device, classes.as_deref()));
        let shown = self.shown_class_indexes(&report, classes.as_deref());
        let at = self.clock.now();
        let record = || json::devices_record(&report, &shown, (profile.name, &at), incomplete);
        match self.output {
            Output::Json => writeln!(console, "{}", super::to_safe_json(&record())?)?,
            Output::Html => {
                let page =
                    tollgate_picture::pages::devices(record().get(), &source.page_metadata(incomplete));
                picture::write_page(page, console)?;
            }
            Output::Text | Output::Wide => {
                let is_wide = self.output == Output::Wide;
                let header = format!("{}, at {at}", profile.name);
                console.write_sanitized_text(&text::render(&report, &header, (self.by, is_wide), &shown))?;
            }
        }
        Ok(())
    }

    /// Returns the indexes of the classes of `--class`; `None` without the flag. A class that does not exist is
    /// an error, because it is most likely misspelt.
    fn selected_class_indexes(&self, report: &DeviceReport<'_>) -> Result<Option<Vec<usize>>, Failure> {
        if self.class.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = report.classes.iter().map(|class| class.name).collect();
        let place = |wanted: &String| {
            let hint = || super::shared::did_you_mean(wanted, &names);
            let missing = || Failure::Input(format!("there is no DeviceClass `{wanted}`{}", hint()));
            names.iter().position(|name| name == wanted).ok_or_else(missing)
        };
        self.class.iter().map(place).collect::<Result<_, _>>().map(Some)
    }

    /// Returns an error for a target that no device matches, because it is most likely misspelt.
    fn refuse_targets_without_devices(&self, report: &DeviceReport<'_>) -> Result<(), Failure> {
        let is_empty =
            |target: &&DeviceTarget| !report.devices.iter().any(|device| is_in_target(target, device));
        match self.targets.iter().find(is_empty) {
            None => Ok(()),
            Some(DeviceTarget::Node(node)) => {
                let nodes: Vec<&str> = report.devices.iter().filter_map(|device| device.node).collect();
                let hint = super::shared::did_you_mean(node, &nodes);
                Err(Failure::Input(format!("no device belongs to node `{node}` alone{hint}")))
            }
            Some(DeviceTarget::Devices(names)) => {
                let criteria: Vec<String> =
                    names.specified_names().map(|(field, value)| format!("{field} `{value}`")).collect();
                Err(Failure::Input(format!("there is no device with {}", criteria.join(", "))))
            }
        }
    }

    /// An error if `--node` names a node that neither the state nor a device has: it is most likely misspelt.
    fn refuse_unknown_nodes(&self, report: &DeviceReport<'_>, state: &State<'_>) -> Result<(), Failure> {
        if self.node.is_empty() {
            return Ok(());
        }
        let known = state.objects_of_kind(ObjectKind::Node).iter().map(StoredObject::name);
        let names: BTreeSet<&str> =
            known.chain(report.devices.iter().filter_map(|device| device.node)).collect();
        let Some(wanted) = self.node.iter().find(|wanted| !names.contains(wanted.as_str())) else {
            return Ok(());
        };
        let names: Vec<&str> = names.into_iter().collect();
        let hint = super::shared::did_you_mean(wanted, &names);
        Err(Failure::Input(format!("there is no Node `{wanted}`{hint}")))
    }

    /// Returns the indexes of the classes to print: those of `--class`; or if other flags leave devices out,
    /// those that still have devices; or else all.
    fn shown_class_indexes(&self, report: &DeviceReport<'_>, selected: Option<&[usize]>) -> Vec<usize> {
        let counts = report.class_counts().into_iter().enumerate();
        let is_shown = |place: usize, count: DeviceCounts| match selected {
            Some(selected) => selected.contains(&place),
            None => !self.is_filtered() || count.total > 0,
        };
        counts.filter(|(place, count)| is_shown(*place, *count)).map(|(place, _)| place).collect()
    }

    /// True if flags leave devices out.
    fn is_filtered(&self) -> bool {
        let lists = [&self.node, &self.class, &self.namespace];
        self.tainted
            || self.free
            || !self.targets.is_empty()
            || lists.into_iter().any(|list| !list.is_empty())
    }

    /// True if the flags select a device. `classes` are the indexes of the classes that `--class` names.
    fn selects(&self, device: &ReportedDevice<'_>, classes: Option<&[usize]>) -> bool {
        let is_of_node = || device.node.is_some_and(|node| self.node.iter().any(|wanted| wanted == node));
        let holds = |namespace: &str| self.namespace.iter().any(|wanted| wanted == namespace);
        (self.targets.is_empty() || self.targets.iter().any(|target| is_in_target(target, device)))
            && (!self.tainted || device.has_state(DeviceState::Tainted))
            && (!self.free || device.has_state(DeviceState::Free))
            && (self.node.is_empty() || is_of_node())
            && classes.is_none_or(|wanted| wanted.iter().any(|class| device.classes.contains(class)))
            && (self.namespace.is_empty() || device.holders.iter().any(|holder| holds(holder.namespace)))
    }
}

/// True if a device matches the names of a target, or belongs to its node.
fn is_in_target(target: &DeviceTarget, device: &ReportedDevice<'_>) -> bool {
    match target {
        DeviceTarget::Node(node) => device.node == Some(node),
        DeviceTarget::Devices(names) => names.matches(device.driver, device.pool, device.device),
    }
}

/// Returns the only selected profile, whose scheduler is simulated; an error if several are selected.
pub(super) fn require_one_profile(profiles: &[&'static Profile]) -> Result<&'static Profile, Failure> {
    match profiles {
        [only] => Ok(only),
        _ => Err(Failure::Usage("--kubernetes: specify exactly one release".to_owned())),
    }
}
