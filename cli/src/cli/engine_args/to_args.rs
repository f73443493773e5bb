//! The settings of an engine as arguments.

use lapwing_engine::Requant;
use lapwing_engine::plan::OrderSwap;

use super::EngineArgs;
use crate::cli::device_args::DeviceArgs;

impl EngineArgs {
    /// Arguments that give another process of this program the same settings.
    pub(crate) fn to_args(&self) -> Vec<String> {
        let EngineArgs { threads: _, cores, chunk, isa, kv, exact, requant, activations, .. } =
            self;
        let EngineArgs { draft, draft_schedule, draft_device, draft_width, draft_length, .. } =
            self;
        let EngineArgs { draft_pre_verify, draft_post_verify, .. } = self;
        let EngineArgs { attention, policy, reserve, token_gap, mlock, mmap, no_mmap, .. } = self;
        let EngineArgs { no_packed_cache, devices, .. } = self;
        let DeviceArgs { device, strategy, order_swap, ratio, edge_rows, place, wait, .. } =
            devices;
        let DeviceArgs { gpu_layers, permits, wait_for_graphs, moment, .. } = devices;
        let number = |number: &Option<usize>| number.map(|number| number.to_string());
        let swap = order_swap.map(|swap| match swap {
            OrderSwap::On => "on".to_owned(),
            OrderSwap::Off => "off".to_owned(),
        });
        let single = [
            ("--threads", Some(self.thread_count().to_string())),
            ("--gpu-layers", number(gpu_layers)),
            ("--cores", cores.as_ref().map(ToString::to_string)),
            ("--chunk", number(chunk)),
            ("--isa", isa.clone()),
            ("--kv", Some(kv.to_string())),
            ("--requant", requant.map(Requant::name)),
            ("--activations", (!exact).then(|| activations.name().to_owned())),
            ("--policy", policy.clone()),
            ("--reserve", reserve.map(|reserve| reserve.to_string())),
            ("--token-gap", token_gap.map(|gap| format!("{}ms", gap.as_secs_f64() * 1e3))),
            ("--draft", draft.as_ref().map(|draft| draft.0.to_string())),
            ("--draft-schedule", draft_schedule.map(|schedule| schedule.name().to_owned())),
            ("--draft-device", draft_device.clone()),
            ("--draft-width", number(draft_width)),
            ("--draft-length", number(draft_length)),
            ("--strategy", strategy.clone()),
            ("--order-swap", swap),
            ("--moment", moment.map(|moment| moment.name().to_owned())),
            ("--ratio", ratio.as_ref().map(ToString::to_string)),
            ("--edge-rows", number(edge_rows)),
            ("--permits", number(permits)),
        ];
        let single = single.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let wait = wait.iter().map(|(link, mode)| format!("{}={}", link.name(), mode.name()));
        let several = device.iter().map(|device| ("--device", device.clone()));
        let several = several.chain(place.iter().map(|place| ("--place", place.clone())));
        let several = several.chain(attention.to_args());
        let several = several.chain(wait.map(|wait| ("--wait", wait)));
        let flags = [
            ("--exact", exact),
            ("--mlock", mlock),
            ("--mmap", mmap),
            ("--no-mmap", no_mmap),
            ("--no-packed-cache", no_packed_cache),
            ("--wait-for-graphs", wait_for_graphs),
            ("--draft-pre-verify", draft_pre_verify),
            ("--draft-post-verify", draft_post_verify),
        ];
        let flags = flags.into_iter().filter(|(_, set)| **set).map(|(flag, _)| flag.to_owned());
        let pairs = single.chain(several).flat_map(|(name, value)| [name.to_owned(), value]);
        pairs.chain(flags).collect()
    }
}
