//! Options that select a model and configure the engine.

use std::time::Duration;

use clap::Args;
use lapwing_engine::draft::{DraftChoice, Schedule};
use lapwing_engine::{Activations, KvDtype, PackedMemory, Requant, Reserve};
use lapwing_kernels::cpu::{CoreSet, Cpu, Isa};

use super::attention::AttentionArgs;
use super::device_args::DeviceArgs;
use super::draft::DraftArg;
use super::failure::Failure;
use super::parse::{at_least_one, draft_length, policy, time};
use super::scales::Scales;
use super::session::Session;

/// The model that is used if none is named.
pub(crate) const DEFAULT_MODEL: &str = "smollm2-135m-instruct";

/// The model.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArg {
    /// A .gguf file, a name from `lapwing models`, or hf:owner/repo[:QUANT]
    ///
    /// Also hf:owner/repo/file.gguf, and addresses of hf.co.
    #[arg(short, long, value_name = "MODEL", default_value = DEFAULT_MODEL)]
    pub(crate) model: String,
}

/// The model, or none for the default.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct OptionalModel {
    /// A .gguf file, a name from `lapwing models`, or hf:owner/repo[:QUANT] [default:
    /// smollm2-135m-instruct]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// The model, as the argument or as the option.
#[derive(Clone, Debug, Args)]
pub(crate) struct PositionalModel {
    /// A .gguf file, a name from `lapwing models`, or hf:owner/repo/file.gguf[@revision]
    #[arg(value_name = "MODEL")]
    argument: Option<String>,

    /// The same as an option
    #[arg(short, long, value_name = "MODEL", conflicts_with = "argument", help_heading = "Model")]
    model: Option<String>,
}

impl PositionalModel {
    /// This model.
    pub(crate) fn named(model: String) -> PositionalModel {
        PositionalModel { argument: Some(model), model: None }
    }

    /// The model, if one is named.
    pub(crate) fn name(&self) -> Option<&str> {
        self.argument.as_deref().or(self.model.as_deref())
    }
}

/// Settings of the engine.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Compute threads [default: one for each hardware thread, or each of --cores]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    pub(crate) threads: Option<usize>,

    /// Pin the compute threads to cores, as in 0-3 or 0,2-3 or node0 [default: not pinned]
    ///
    /// node0 has the cores of the first NUMA node. One thread is pinned to a core if there are as many,
    /// otherwise each thread to all of them.
    #[arg(long, value_name = "CORES")]
    pub(crate) cores: Option<CoreSet>,

    /// Maximum prompt tokens in a chunk [default: 512, with an NPU the rows of its largest graph]
    #[arg(long, value_name = "ROWS", value_parser = at_least_one, hide_short_help = true)]
    pub(crate) chunk: Option<usize>,

    /// Instruction set; `lapwing devices` lists them [default: the fastest available]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) isa: Option<String>,

    /// Type of the KV cache: f32, f16 or int8
    ///
    /// int8 takes half the memory of f16 and costs accuracy.
    #[arg(long, value_name = "TYPE", default_value_t)]
    pub(crate) kv: KvDtype,

    /// Keep activations in f32 instead of rounding them to int8 or bfloat16: only rounding errors of f32
    /// sums remain; prompts take twice as long, generation four times
    #[arg(long, hide_short_help = true)]
    pub(crate) exact: bool,

    /// Columns of activations that share a scale when they are rounded to int8: block, as llama.cpp does;
    /// row, one scale for each row; or row-min, one scale and one minimum for each row. For CPUs only
    #[arg(
        long,
        value_name = "SCALES",
        default_value_t,
        value_enum,
        conflicts_with = "exact",
        hide_short_help = true,
        hide_possible_values = true
    )]
    pub(crate) activations: Scales,

    /// Requantise matrices with more bits per weight to this form: q8_0, q4_1 or q4_0; q6_k, q5_k, q5_1, q5_0,
    /// q4_k, iq4_nl, iq4_xs, mxfp4, q3_k or q2_k, whose scales a search finds; or int8[:GROUP], int4[:GROUP] or
    /// int4[:GROUP]:min, where GROUP is the number of columns that share a scale (a multiple of 32) or row, as
    /// in int4:128:min. Costs accuracy [default: use all weights exactly as stored]
    #[arg(long, value_name = "FORM", hide_short_help = true)]
    pub(crate) requant: Option<Requant>,

    #[command(flatten)]
    pub(crate) attention: AttentionArgs,

    /// Order in which requests are admitted, computed and preempted, as in vtc or mlfq:quantum=32; `lapwing
    /// devices` lists the policies [default: fcfs]
    #[arg(long, value_name = "NAME[:KEY=N,…]", value_parser = policy, hide_short_help = true)]
    pub(crate) policy: Option<String>,

    /// Room in the KV cache that a request finds when it is admitted: prompt, that of its prompt, and requests
    /// are preempted when answers fill the cache; or peak, the most that all running requests need at once, and
    /// none but background work is preempted. With peak, say how long answers may be [default: prompt]
    #[arg(long, value_name = "prompt|peak", hide_short_help = true)]
    pub(crate) reserve: Option<Reserve>,

    /// Longest time that a stream is to wait for a token while other prompts are computed, as in 250ms; a
    /// shorter time makes prompts slower [default: that of chunks of 128 rows or more, which keep 94 % of the
    /// prefill rate]
    #[arg(long, value_name = "TIME", value_parser = time, hide_short_help = true)]
    pub(crate) token_gap: Option<Duration>,

    /// Drafter of speculative decoding, as in lookup, suffix, or a smaller model
    ///
    /// One of: auto (the default), which is mtp where the file has such a layer, a CPU can run it and
    /// it pays; none; lookup, which proposes what followed the last tokens when they occurred before;
    /// suffix, which also knows recent answers; lookup+suffix, both as a tree of tokens; mtp, a layer of
    /// the model's file that predicts a second token; a smaller model with the same vocabulary, as .gguf
    /// file or name; or self:FORM, the model itself requantised as by --requant, such as self:q4_0. It
    /// changes no token.
    #[arg(long, value_name = "DRAFTER")]
    pub(crate) draft: Option<DraftArg>,

    /// When a draft model drafts: sync, while the model waits for it; or async, also while the model verifies,
    /// which pays on different devices [default: sync]
    #[arg(long, value_name = "sync|async", hide_short_help = true)]
    pub(crate) draft_schedule: Option<Schedule>,

    /// Device that runs a draft model: a CPU, a throttled processor or an OpenCL device [default: the first that
    /// computes on CPU threads, otherwise the first OpenCL device]
    #[arg(long, value_name = "DEVICE", hide_short_help = true)]
    pub(crate) draft_device: Option<String>,

    /// Tokens of a draft model that are verified at each position: the one that it chooses and the likeliest
    /// others, as a tree [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least_one, hide_short_help = true)]
    pub(crate) draft_width: Option<usize>,

    /// Tokens of each draft, whether or not they pay [default: as many as pay]
    #[arg(long, value_name = "N", value_parser = draft_length, hide_short_help = true)]
    pub(crate) draft_length: Option<usize>,

    /// With async: wait for no draft; a pass without one checks the first token of the draft that is made meanwhile (PEARL). For a
    /// draft model with a memory of its own
    #[arg(long, hide_short_help = true)]
    pub(crate) draft_pre_verify: bool,

    /// With async: choose no length; verify as many drafted tokens as are there, up to 63, whether or not they pay (PEARL)
    #[arg(long, hide_short_help = true)]
    pub(crate) draft_post_verify: bool,

    /// Lock the weights in memory, so that the system never swaps them out; fails where it refuses
    #[arg(long, hide_short_help = true)]
    pub(crate) mlock: bool,

    /// Map the cache of packed weights, so that processes share them, and say why where that is not possible [default: map it where
    /// the system can]
    #[arg(long, conflicts_with_all = ["no_mmap", "no_packed_cache"], hide_short_help = true)]
    pub(crate) mmap: bool,

    /// Read the cache of packed weights into memory of the process instead of mapping it
    #[arg(long, hide_short_help = true)]
    pub(crate) no_mmap: bool,

    /// Neither use nor write the cache of packed weights
    #[arg(long, hide_short_help = true)]
    pub(crate) no_packed_cache: bool,

    #[command(flatten)]
    pub(crate) devices: DeviceArgs,
}

impl EngineArgs {
    /// Checks everything that needs no model, before anything is fetched, and says what the devices are.
    pub(crate) fn check(&self, session: &Session) -> Result<(), Failure> {
        if let Some(name) = &self.devices.strategy {
            DeviceArgs::check_strategy(name)?;
        }
        self.check_but_strategy(session)
    }

    /// What drafts: the option, or what the model's file has.
    pub(crate) fn drafter(&self) -> DraftChoice {
        self.draft.clone().map(|given| given.0).unwrap_or_default()
    }

    /// As [`check`](EngineArgs::check), except for the strategy.
    pub(crate) fn check_but_strategy(&self, session: &Session) -> Result<(), Failure> {
        let of_model = [
            ("--draft-schedule", self.draft_schedule.is_some()),
            ("--draft-device", self.draft_device.is_some()),
            ("--draft-width", self.draft_width.is_some()),
            ("--draft-pre-verify", self.draft_pre_verify),
            ("--draft-post-verify", self.draft_post_verify),
        ];
        let ignored = of_model.into_iter().find(|(_, given)| *given && !self.drafter().is_model());
        if let Some((option, _)) = ignored {
            return Err(Failure::usage(format!(
                "{option} is for a draft model, and --draft is {}: give a model, or leave {option} out",
                self.drafter()
            )));
        }
        let verifies = self.draft_pre_verify || self.draft_post_verify;
        if verifies && self.draft_schedule != Some(Schedule::Asynchronous) {
            return Err(Failure::usage(
                "--draft-pre-verify and --draft-post-verify are for drafts made meanwhile: add --draft-schedule async",
            ));
        }
        if self.draft_length.is_some() && !self.drafter().drafts_tokens() {
            return Err(Failure::usage("--draft-length is that of drafts: add --draft DRAFTER"));
        }
        let cores = self.cores.as_ref().map(CoreSet::check).transpose();
        cores.map_err(|error| Failure::usage(format!("--cores: {error}")))?;
        let known: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
        match &self.isa {
            Some(isa) if !known.contains(&isa.as_str()) => Err(Failure::usage(format!(
                "--isa: unknown instruction set '{isa}' (expected one of {} on this machine)",
                known.join(", ")
            ))),
            _ => self.devices.note(session),
        }
    }

    /// Precision of activations that are multiplied with quantised weights.
    pub(crate) fn activations(&self) -> Activations {
        if self.exact { Activations::F32 } else { self.activations.precision() }
    }

    /// Where cached packed weights are while they are in use, if an option says so.
    pub(crate) fn packed_memory(&self) -> Option<PackedMemory> {
        match (self.mmap, self.no_mmap) {
            (true, _) => Some(PackedMemory::Mapped),
            (false, true) => Some(PackedMemory::Read),
            (false, false) => None,
        }
    }

    /// Number of compute threads.
    pub(crate) fn thread_count(&self) -> usize {
        let all = || match &self.cores {
            Some(cores) => cores.cores().len(),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        self.threads.unwrap_or_else(all)
    }

    /// A CPU with these threads, cores and instruction set.
    pub(crate) fn cpu(&self) -> Result<Cpu, Failure> {
        let isa = Isa::available().into_iter().find(|isa| isa.name() == self.isa_name());
        let isa = isa.unwrap_or_else(Isa::best);
        let cpu = Cpu::on_cores(self.thread_count(), self.cores.as_ref(), isa);
        cpu.map_err(|error| Failure::usage(format!("--cores: {error}")))
    }

    /// Name of the instruction set.
    pub(crate) fn isa_name(&self) -> String {
        self.isa.clone().unwrap_or_else(|| Isa::best().name().to_owned())
    }
}

#[cfg(test)]
mod tests;
mod to_args;
