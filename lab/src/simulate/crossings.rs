//! What crosses between processors in a layer: counted from the routes, so from the graph and its cuts.

use lapwing_plan::Route;
use lapwing_plan::soc::Soc;
use serde::Serialize;

use super::error::SimulateError;
use super::scenario::Scenario;
use super::world;

/// What crosses between processors, as means over the layers of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Crossings {
    /// The strategy.
    pub strategy: String,
    /// `prefill` or `decode`.
    pub phase: &'static str,
    /// Stages that are divided between processors.
    pub cuts: f64,
    /// Buffers that arrive at the NPU. Queries, keys and values are three.
    pub to_npu: f64,
    /// Buffers that arrive at the GPU.
    pub to_gpu: f64,
    /// Graphs that the NPU launches.
    pub launches: f64,
    /// Parts on the GPU that start with an empty queue after copies, with slow synchronisation.
    pub restarts: f64,
}

impl Crossings {
    /// What crosses in the first chunk of a prompt, and in a step of decode.
    ///
    /// # Errors
    /// When the processors are no SoC, or the strategy does not fit.
    pub fn new(scenario: &Scenario) -> Result<[Crossings; 2], SimulateError> {
        let (model, _) = scenario.load_model()?;
        let nodes = model.graph.nodes();
        let layers = nodes.iter().filter_map(|node| node.layer).max().map_or(1, |last| last + 1);
        let [prefill, decode] = world::routes(scenario, scenario.soc()?)?;
        let count = |phase, route: &Route| {
            let mut sums = [0; 5];
            for (stage, flow) in route.stages.iter().zip(&route.flows) {
                let in_layer = nodes.get(stage.nodes.start).is_some_and(|n| n.layer.is_some());
                if !stage.computes() || !in_layer {
                    continue;
                }
                let copies = flow.arrivals.iter().any(|count| *count > 0);
                sums[0] += usize::from(stage.parts.len() > 1);
                for (part, arrivals) in stage.parts.iter().zip(flow.arrivals.iter()) {
                    match Soc::KINDS[part.device.0].name() {
                        "npu" => {
                            sums[1] += arrivals;
                            sums[3] += part.part.graphs.len();
                        }
                        _ => {
                            sums[2] += arrivals;
                            sums[4] += usize::from(copies);
                        }
                    }
                }
            }
            let [cuts, to_npu, to_gpu, launches, restarts] =
                sums.map(|sum| sum as f64 / layers as f64);
            let strategy = scenario.strategy_name().to_owned();
            Crossings { strategy, phase, cuts, to_npu, to_gpu, launches, restarts }
        };
        Ok([count("prefill", &prefill), count("decode", &decode)])
    }

    /// Of the strategies that use both processors, with a prompt of 256 tokens.
    pub(super) fn of_both(base: &Scenario) -> Result<Vec<Crossings>, SimulateError> {
        let mut all = Vec::new();
        for strategy in ["layer-level", "tensor-level"] {
            let mut scenario = base.clone();
            for (key, value) in [("strategy", strategy), ("prompt", "256"), ("decode", "1")] {
                scenario.set(key, value)?;
            }
            all.extend(Crossings::new(&scenario)?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_keys_and_values_are_three_buffers_of_a_layer() {
        let base = Scenario::new("sd8gen3").expect("a preset");
        let all = Crossings::of_both(&base).expect("routes");
        let of = |strategy: &str, phase: &str| {
            all.iter().find(|c| c.strategy == strategy && c.phase == phase).expect("a row")
        };
        // Four matmul kernels on the NPU. To it: the norms, the output of attention, the gated values. Back: q, k, v; the output;
        // gates and ups; downs. In the last layer, only the last row is computed after attention.
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 0.15;
        let layer = of("layer-level", "prefill");
        assert!(
            layer.cuts == 0.0 && near(layer.to_npu, 4.0) && near(layer.to_gpu, 7.0),
            "{layer:?}"
        );
        assert!(near(layer.launches, 4.0) && near(layer.restarts, 4.0), "{layer:?}");
        let alone = of("layer-level", "decode");
        assert_eq!(
            (alone.to_npu, alone.to_gpu, alone.launches, alone.restarts),
            (0.0, 0.0, 0.0, 0.0)
        );
        // A cut of q, k and v also brings three buffers back.
        let tensor = of("tensor-level", "decode");
        assert!(tensor.cuts >= 3.0 && tensor.to_gpu > tensor.cuts + 1.9, "{tensor:?}");
        assert_eq!(tensor.launches, tensor.cuts);
    }
}
