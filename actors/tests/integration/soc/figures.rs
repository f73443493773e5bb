//! Published figures of Llama-3-8B on the Snapdragon 8 Gen 3, and the numbers that were fitted.

use lapwing_actors::simulate::soc::{SocOptions, SocOutcome};
use lapwing_plan::soc::{Soc, SyncMode};

use super::{model, near, of, run, sd8gen3};

/// Published figures to which no number was fitted.
#[test]
fn a_published_figure_is_missed_by_more_than_a_tenth() {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    let speed =
        |strategy: &str, prompt| run(&llama, &soc, strategy, &of(prompt)).prefill_tokens_per_second;
    let rows = [
        ("gpu-only", 256, 63.7),
        ("layer-level", 256, 190.5),
        ("layer-level", 1024, 180.5),
        ("tensor-level", 256, 236.92),
        ("tensor-level", 1024, 247.9),
    ];
    for (strategy, prompt, published) in rows {
        near(&format!("{strategy} {prompt}"), speed(strategy, prompt), published, 0.1);
    }
    let tensor = speed("tensor-level", 525);
    let (padding, pipe) = (speed("npu-padding", 525), speed("pipe", 525));
    near("padding / tensor", tensor / padding, 2.21, 0.1);
    near("pipe / tensor", tensor / pipe, 1.35, 0.1);
    let online = speed("online-prepare", 525);
    assert!(tensor > pipe && pipe > padding && pipe > online, "{tensor} {pipe} {padding} {online}");
    for prompt in [64, 256, 1024] {
        let speed = |strategy| speed(strategy, prompt);
        assert!(speed("tensor-level") > speed("layer-level"), "{prompt}");
        assert!(speed("layer-level") > speed("gpu-only"), "{prompt}");
    }
}

/// The numbers of the CPU are fitted to the speeds of MNN with 4 threads on this chip.
#[test]
fn the_cpu_alone_reads_a_prompt_as_fast_as_mnn_does() {
    let (qwen, soc) = (model("qwen2-1.5b"), sd8gen3());
    for prompt in [64, 256, 512] {
        let speed = run(&qwen, &soc, "cpu-only", &of(prompt));
        near(&format!("cpu-only {prompt}"), speed.prefill_tokens_per_second, 302.49, 0.05);
        near("decode", speed.decode_tokens_per_second.expect("steps"), 41.42, 0.02);
    }
}

/// Cost of slow synchronisation: the time with it divided by the time with fast synchronisation.
fn gain(strategy: &str, prompt: usize) -> (f64, f64) {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    let fast = run(&llama, &soc, strategy, &of(prompt));
    let slow = SocOptions { sync: SyncMode::Slow, ..of(prompt) };
    let slow = run(&llama, &soc, strategy, &slow);
    let decode = |o: &SocOutcome| o.decode_ms.expect("steps");
    (slow.prefill_ms / fast.prefill_ms, decode(&slow) / decode(&fast))
}

#[test]
fn fast_synchronisation_gains_less_in_longer_prompts_and_most_in_decoding() {
    let gains = [64, 256, 1024].map(|prompt| gain("tensor-level", prompt));
    assert!(gains[0].0 > gains[1].0 && gains[1].0 > gains[2].0, "{gains:?}");
    assert!(gains.iter().all(|(prefill, decode)| *decode > 1.5 * prefill), "{gains:?}");
}

/// The fitted numbers still match, within 1 %, the errors of these pins: the pin of the launch and both of decode pull at one another.
#[test]
fn a_pin_does_not_hold() {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    let outcome = |strategy: &str| run(&llama, &soc, strategy, &of(256));
    let decode = |o: &SocOutcome| o.decode_tokens_per_second.expect("steps");
    let watts = |o: &SocOutcome| o.prefill.power_w.expect("known powers");
    let [gpu, layer, tensor] = ["gpu-only", "layer-level", "tensor-level"].map(outcome);
    near("GPU-only decode", decode(&gpu), 11.35, 0.01);
    near("tensor decode", decode(&tensor), 14.01, 0.01);
    near("GPU-only power", watts(&gpu), 4.34, 0.01);
    near("layer power", watts(&layer), 2.23, 0.02);
    near("tensor power", watts(&tensor), 2.75, 0.01);
    let beside_game = run(&llama, &soc, "gpu-only", &SocOptions { renderer: true, ..of(256) });
    near("decode beside a game", decode(&beside_game) / decode(&gpu), 1.0 - 0.177, 0.01);
}

/// Preparation time of four graphs, in addition to the time of the same rows with prepared graphs.
#[test]
fn graphs_of_equal_products_are_prepared_more_than_once() {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    for (prompt, published) in [(135, 408.4), (1000, 2050.0)] {
        let mut free = soc.clone();
        free.set("npu.prepare_short", 0.0).expect("a number");
        free.set("npu.prepare_long", 0.0).expect("a number");
        let time = |soc: &Soc| run(&llama, soc, "online-prepare", &of(prompt)).prefill_ms;
        near(&format!("{prompt} rows"), time(&soc) - time(&free), published, 0.02);
    }
}

#[test]
fn a_game_gets_no_frames_beside_divided_kernels_or_many_beside_whole_ones() {
    let (llama, soc) = (model("llama-3-8b"), sd8gen3());
    let frames = |strategy| {
        let options = SocOptions { renderer: true, decode: 0, ..of(256) };
        run(&llama, &soc, strategy, &options).prefill.frames_per_second
    };
    let (gpu, layer) = (frames("gpu-only"), frames("layer-level"));
    assert!(gpu < 30.0 && layer > 55.0, "{gpu} {layer}");
}
