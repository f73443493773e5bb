//! No strategy changes a token: tiny models with true values, in virtual time, on a CPU, a GPU emulated
//! by a second CPU device, and an NPU in software.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lapwing_actors::drive::mailbox::ChannelSink;
use lapwing_actors::drive::simulated::{SimulatedDevice, Simulation, SimulationParts};
use lapwing_actors::message::{SchedulerMessage, StreamEvent, Submit, Traced};
use lapwing_actors::policy::{ClientId, Fcfs, Urgency};
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::scheduler::{KvPages, Scheduler, SchedulerConfig, SchedulerParts};
use lapwing_actors::sequence::AdmissionLimit;
use lapwing_kernels::cpu::{Cpu, CpuDevice, CpuDeviceParts, Isa};
use lapwing_kernels::device::{Blocking, Device, DeviceInfo, DeviceKind, ModelId, SlotPool};
use lapwing_kernels::graph::Graph;
use lapwing_kernels::kv::{KvPool, KvStore};
use lapwing_kernels::model::Model;
use lapwing_kernels::npu::array::Array;
use lapwing_kernels::npu::{NpuDevice, NpuDeviceParts};
use lapwing_kernels::weights::WeightFile;
use lapwing_plan::cost::Modelled;
use lapwing_plan::place::{Placed, Places};
use lapwing_plan::planner::{Planner, PlannerParts};
use lapwing_plan::strategy::{CpuOnly, OrderSwap, Ratio, Strategy, StrategyOptions, all, by_name};
use lapwing_plan::time::TimeModel;
use lapwing_traces::Nanos;

use crate::plan_support::{Rate, devices};
use crate::support::generate;

const TOKENS: usize = 32;
const PAGES: u32 = 512;

/// A tiny model.
struct Tiny {
    file: WeightFile,
    model: Model,
}

impl Tiny {
    fn open(name: &str) -> Tiny {
        let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tiny");
        let file = WeightFile::open(&tiny.join(format!("{name}.gguf"))).expect("a tiny model");
        let model = Model::from_weights(&file).expect("a model");
        Tiny { file, model }
    }

    fn simulation(&self, names: &str, strategy: Arc<dyn Strategy>) -> Simulation {
        let name = strategy.name().to_owned();
        let layout = self.model.config.kv_layout();
        let graph = Arc::new(self.model.graph.clone());
        let kv = Arc::new(KvStore::new(layout.clone(), PAGES).expect("memory"));
        let slots = SlotPool::default();
        let infos = devices(names);
        let cpu = || Cpu::new(1, Isa::best());
        let device = |info: &DeviceInfo| -> Box<dyn Device> {
            let (name, graph, slots) = (info.name.clone(), Arc::clone(&graph), slots.clone());
            if info.kind == DeviceKind::Npu {
                let parts = NpuDeviceParts { name, graph, slots, budget: 1 << 30 };
                let npu = NpuDevice::systolic(parts, cpu(), Array::default(), &self.file);
                let npu = npu.expect("a device");
                return Box::new(Blocking::new(info.clone(), npu));
            }
            let parts = CpuDeviceParts { name, cpu: cpu(), graph, kv: Arc::clone(&kv), slots };
            let cpu = CpuDevice::new(parts, &self.file).expect("a device");
            Box::new(Blocking::new(info.clone(), cpu))
        };
        let models = models(&graph, &infos);
        let cost =
            Modelled { devices: models.clone(), sync: Duration::from_micros(15), copy_rate: 1e10 };
        let scheduler = Scheduler::new(SchedulerParts {
            config: SchedulerConfig {
                context: 2048,
                sequences_max: 4,
                permits: 3,
                vocab: graph.value(graph.output()).width,
            },
            planner: Planner::new(PlannerParts {
                model: ModelId::default(),
                graph: Arc::clone(&graph),
                devices: infos.clone(),
                cost: Arc::new(cost),
                strategy,
                chunk_rows: 1024,
            }),
            kv: KvPages { pool: KvPool::new(PAGES), states: KvPool::new(0), layout },
            policy: Box::new(Fcfs),
        });
        let simulated = infos.iter().zip(models);
        Simulation::new(SimulationParts {
            scheduler: scheduler.unwrap_or_else(|error| panic!("{name} on {names}: {error}")),
            devices: simulated
                .map(|(info, time)| SimulatedDevice { device: device(info), time })
                .collect(),
            graphs: vec![graph],
            slots,
            copy_rate: 1e10,
        })
    }

    /// Greedy tokens after a prompt of that length, and the virtual time.
    fn tokens(&self, names: &str, strategy: Arc<dyn Strategy>, rows: usize) -> (Vec<u32>, Nanos) {
        let name = strategy.name().to_owned();
        let mut simulation = self.simulation(names, strategy);
        let tokens = self.model.graph.vocab().min(250) as u32;
        let ids: Vec<u32> = (0..rows as u32).map(|i| (7 + i * i * 13 + i * 5) % tokens).collect();
        let (sink, receiver) = ChannelSink::new(TOKENS + 2);
        let admission = AdmissionLimit::new(1);
        let submit = Submit {
            task: generate(&ids, TOKENS),
            ids,
            client: ClientId::anonymous(),
            urgency: Urgency::default(),
            prefix: PrefixUse::default(),
            sink,
            model: ModelId::default(),
            admission: admission.try_take().expect("a permit"),
            trace: tracing::Span::none(),
        };
        simulation.send_at(Nanos(0), SchedulerMessage::Submit(Box::new(submit)));
        let end = simulation.run();
        let mut tokens = Vec::new();
        let mut finished = false;
        for Traced { message, .. } in receiver.try_iter() {
            match message {
                StreamEvent::Token(token) => tokens.push(token.id),
                StreamEvent::Failed(error) => panic!("{name} on {names}, {rows} rows: {error}"),
                StreamEvent::Finished(_) => finished = true,
                StreamEvent::Scores(_) | StreamEvent::Hidden(_) | StreamEvent::Prompt(_) => {}
            }
        }
        assert!(finished, "{name} on {names}, {rows} rows: the stream has no end");
        (tokens, end)
    }
}

fn models(graph: &Arc<Graph>, infos: &[DeviceInfo]) -> Vec<Arc<dyn TimeModel>> {
    let model = |info: &DeviceInfo| -> Arc<dyn TimeModel> {
        let flops_per_us = match info.kind {
            DeviceKind::Cpu => 1000,
            DeviceKind::Gpu | DeviceKind::Own(_) => 2000,
            DeviceKind::Npu => 10_000,
        };
        let per_stage = Duration::from_micros(2);
        Arc::new(Rate { graph: Arc::clone(graph), per_stage, flops_per_us })
    };
    infos.iter().map(model).collect()
}

/// Tiny models are narrow: with this ratio every processor gets output channels.
fn options() -> StrategyOptions {
    let ratio = Ratio::new(&[1, 1]).expect("a ratio");
    StrategyOptions { ratio: Some(ratio), chunk: Some(64), ..StrategyOptions::default() }
}

#[test]
fn no_strategy_changes_a_token() {
    let tiny = Tiny::open("llama");
    for rows in [1, 31, 64, 135, 300, 525, 600, 1000] {
        let (want, _) = tiny.tokens("cpu", Arc::new(CpuOnly), rows);
        assert_eq!(want.len(), TOKENS);
        for names in ["cpu npu", "cpu gpu npu"] {
            for strategy in all(&options()) {
                if names == "cpu npu" && strategy.name() == "gpu-only" {
                    continue;
                }
                let what = format!("{} on {names}, {rows} rows", strategy.name());
                let (found, _) = tiny.tokens(names, strategy, rows);
                assert_eq!(found, want, "{what}");
            }
        }
    }
}

#[test]
fn no_architecture_breaks_a_cut_or_a_placement() {
    for name in ["gemma2", "gemma3", "qwen2", "qwen3", "internlm2", "minicpm3"] {
        let tiny = Tiny::open(name);
        let (want, _) = tiny.tokens("cpu", Arc::new(CpuOnly), 77);
        let three = Ratio::new(&[1, 1, 1]).expect("a ratio");
        let options = StrategyOptions { ratio: Some(three), ..options() };
        let mut strategies: Vec<Arc<dyn Strategy>> =
            ["row-cut", "multi-sequence-cut", "hybrid-cut", "chunk-graph", "auto-place"]
                .into_iter()
                .map(|name| by_name(name, &options).expect("is known"))
                .collect();
        strategies.push(Arc::new(Placed {
            inner: by_name("multi-sequence-cut", &options).expect("is known"),
            places: Places::parse(["layers.*.ffn=npu", "output=npu", "layers.0.ffn.down=gpu"])
                .expect("placements"),
            order_swap: OrderSwap::On,
        }));
        for strategy in strategies {
            let what = format!("{} of {name}", strategy.name());
            let (found, _) = tiny.tokens("cpu gpu npu", strategy, 77);
            assert_eq!(found, want, "{what}");
        }
    }
}

#[test]
fn chunks_overlap_attention_with_linear_layers() {
    let tiny = Tiny::open("llama");
    let makespan = |chunk| {
        let options = StrategyOptions { chunk: Some(chunk), ..options() };
        let strategy = by_name("chunk-graph", &options).expect("is known");
        tiny.tokens("cpu npu", strategy, 512).1
    };
    // The same rows on the same devices, once whole and once in chunks.
    assert!(makespan(128) < makespan(512), "{:?} {:?}", makespan(128), makespan(512));
}
