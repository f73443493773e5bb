//! Options that select devices and the strategy, and set how they work together.

use std::sync::OnceLock;

use clap::Args;
use lapwing_engine::devices::{DeviceSpec, DeviceSpecError, PresentDevices};
use lapwing_engine::plan::{MomentRoutes, OrderSwap, Ratio, Strategies, StrategyOptions};
use lapwing_engine::{WaitLink, WaitMode};

use super::failure::Failure;
use super::parse::{at_least_one, order_swap, wait};
use super::session::Session;

/// Devices and strategy.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Devices")]
pub(crate) struct DeviceArgs {
    /// Add a device, as in cpu, gpu=opencl or npu=openvino; repeat it, or join several with +
    ///
    /// Presets: cpu; gpu and npu for those of this machine, emulated where no driver has one; phone for all
    /// three, always emulated, in a phone's proportions. Others: NAME=FORM:KEY=VALUE,…, as in gpu=opencl,
    /// npu=openvino, npu=qnn, gpu=throttled:gflops=40,gbps=8,sync=20us or npu=systolic:gflops=80
    /// (`lapwing devices` explains the keys) [default: cpu]
    #[arg(long = "device", value_name = "DEVICE")]
    pub(crate) device: Vec<String>,

    /// Strategy that places ops on devices; `lapwing devices` lists them
    ///
    /// A strategy may have parameters, as in chunked:chunk=64.
    /// [default: cpu-only; with several devices the one predicted to be fastest; with only a GPU gpu-only]
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<String>,

    /// Run the last N layers on the GPU and the others on the CPU, for a model that is larger than the
    /// GPU's memory; N at or above the number of layers runs all on the GPU [default: the strategy's own
    /// choice, and as many as fit where that is larger than the GPU's memory]
    #[arg(long, value_name = "N", conflicts_with = "strategy", hide_short_help = true)]
    pub(crate) gpu_layers: Option<usize>,

    /// Allow the NPU to swap the operands of matmuls: on or off [default: on]
    #[arg(long, value_name = "on|off", value_parser = order_swap, hide_short_help = true)]
    pub(crate) order_swap: Option<OrderSwap>,

    /// Routes that auto may choose for a chunk while devices are busy: class (those of devices that give the same bits), any
    /// (all: answers may then depend on what else the devices do) or off (the route for idle devices) [default: class]
    #[arg(long, value_name = "any|class|off", hide_short_help = true)]
    pub(crate) moment: Option<MomentRoutes>,

    /// Ratio in which row-cut and hybrid-cut divide output channels between NPU, GPU and CPU, as far as
    /// present, as in 6:2:1 [default: 3:1; decode with row-cut: by predicted speed]
    #[arg(long, value_name = "N:G[:C]", hide_short_help = true)]
    pub(crate) ratio: Option<Ratio>,

    /// Maximum rows that multi-sequence-cut leaves to the NPU's helper while a graph fits [default: 64]
    #[arg(long, value_name = "ROWS", hide_short_help = true)]
    pub(crate) edge_rows: Option<usize>,

    /// Place ops on a device regardless of the strategy, as in 'layers.*.ffn=npu'; may be repeated, the
    /// last match wins
    #[arg(long, value_name = "OPS=DEVICE", hide_short_help = true)]
    pub(crate) place: Vec<String>,

    /// Let requests wait for prepared graphs of an NPU that are not ready [default: until they are, the CPU or the GPU
    /// computes in its place, and graphs are made while there is no request]
    #[arg(long, hide_short_help = true)]
    pub(crate) wait_for_graphs: bool,

    /// Wait mode of actors: devices= or scheduler=, then callback, blocking, spin or sleep-then-spin
    /// [default: devices of several sleep then spin in each wait where it pays, otherwise callback]
    #[arg(long, value_name = "LINK=MODE", value_parser = wait, hide_short_help = true)]
    pub(crate) wait: Vec<(WaitLink, WaitMode)>,

    /// Maximum prompt chunks in flight [default: 2, of two devices 4, of more 8]
    #[arg(long, value_name = "N", value_parser = at_least_one, hide_short_help = true)]
    pub(crate) permits: Option<usize>,

    /// The devices, once they have been looked for.
    #[arg(skip)]
    present: OnceLock<PresentDevices>,
    /// Set once it was said what they are.
    #[arg(skip)]
    noted: OnceLock<()>,
}

impl DeviceArgs {
    /// These devices, with defaults for everything else.
    pub(crate) fn of(device: Vec<String>) -> DeviceArgs {
        DeviceArgs { device, ..DeviceArgs::default() }
    }

    /// As these, with other devices.
    pub(crate) fn with(&self, device: String) -> DeviceArgs {
        let (present, noted) = Default::default();
        DeviceArgs { device: vec![device], present, noted, ..self.clone() }
    }

    /// The devices.
    pub(crate) fn specs(&self) -> Result<Vec<DeviceSpec>, Failure> {
        self.present().map(|present| present.devices.clone())
    }

    /// Says once which processors the devices are, and which of them are emulated.
    pub(crate) fn note(&self, session: &Session) -> Result<(), Failure> {
        let notes = &self.present()?.notes;
        if self.noted.set(()).is_ok() {
            notes.iter().for_each(|note| session.note(&format!("note: {note}")));
        }
        Ok(())
    }

    fn present(&self) -> Result<&PresentDevices, Failure> {
        if let Some(present) = self.present.get() {
            return Ok(present);
        }
        let wrong = |error: DeviceSpecError| Failure::usage(format!("--device: {error}"));
        let present = match self.device.is_empty() {
            true => PresentDevices::default(),
            false => DeviceSpec::list_present(&self.device.join("+")).map_err(wrong)?,
        };
        Ok(self.present.get_or_init(|| present))
    }

    /// Options of built-in strategies.
    pub(super) fn options(&self) -> StrategyOptions {
        let default = StrategyOptions::default();
        StrategyOptions {
            order_swap: self.order_swap.unwrap_or(default.order_swap),
            ratio: self.ratio.clone(),
            edge_rows: self.edge_rows,
            moment: self.moment.unwrap_or(default.moment),
            ..default
        }
    }

    /// Checks that there is such a strategy.
    pub(crate) fn check_strategy(name: &str) -> Result<(), Failure> {
        let checked = Strategies::builtin().check(name);
        checked.map_err(|error| Failure::usage(format!("--strategy: {error}")))
    }
}
