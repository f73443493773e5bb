//! Runs that succeed: their results, and their order.

use std::time::Duration;

use super::*;

#[test]
fn a_model_gives_the_logits_of_the_cpu_in_one_run_and_in_several() {
    needs_driver!();
    MODELS.into_iter().for_each(check_runs);
}

#[test]
fn a_model_gives_the_same_logits_with_the_kernels_of_gpus() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    let models = ["llama", "gemma3", "format-q4_k", "qwen2", "qwen3", "format-q6_k", "format-q8_0"];
    models.into_iter().take(cases(2, 7)).for_each(check_runs);
}

/// Small models with mixtures of experts: with biases and clamped gates, factors of experts, joined gates and ups, a softmax of the
/// chosen, groups and biases of the choice, gates of a ReLU, bounds of gates, experts without gates, small experts of groups, shared experts,
/// and dense layers beside them.
const MIXTURES: [&str; 36] = [
    "qwen3moe",
    "gpt-oss",
    "llama-experts",
    "gemma4-experts",
    "glm4moe",
    "qwen2moe",
    "bailingmoe2",
    "granitemoe",
    "smallthinker",
    "dbrx",
    "grok",
    "hunyuan-moe",
    "minimax-m2",
    "afmoe",
    "arctic",
    "cohere2moe",
    "cohere2moe-rms",
    "deepseek",
    "dots1",
    "ernie4_5-moe",
    "exaone-moe",
    "granite-experts",
    "granite_swa-experts",
    "grok-1",
    "glm4moe-defaults",
    "hy_v3",
    "mellum",
    "olmoe",
    "qwen3vlmoe",
    "deepseek2",
    "step35",
    "step35-plain",
    "laguna",
    "laguna-values",
    "grovemoe",
    "maple",
];

#[test]
fn a_model_with_experts_gives_the_logits_of_the_cpu_in_one_run_and_in_several() {
    needs_driver!();
    MIXTURES.into_iter().take(cases(6, MIXTURES.len())).for_each(check_runs);
}

#[test]
fn a_model_with_experts_gives_the_same_logits_with_the_kernels_of_gpus() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    MIXTURES.into_iter().take(cases(2, 5)).for_each(check_runs);
}

#[test]
fn stages_of_a_model_with_experts_that_end_between_any_nodes_give_the_same_logits() {
    needs_driver!();
    let case = case_of("qwen3moe");
    let nodes = case.graph.nodes().len();
    let mut device = case.queue();
    let whole = case.run_stages(&mut device, 5, &[0, nodes]);
    for cut in (1..nodes).step_by(cases(5, 1)) {
        let found = case.run_stages(&mut device, 5, &[0, cut, nodes]);
        assert!(found == whole, "a cut before node {cut}");
    }
}

pub(super) fn check_runs(model: &str) {
    let case = case_of(model);
    let wanted = case.wanted(40);
    let vocab = wanted.len() / 40;
    let whole = case.run(&mut case.queue(), case.work(0..40, MemoryDomain::Host)).expect("a run");
    assert_close(&whole, &wanted);
    // Other divisions give the same bits, in host memory and in the device's.
    for (cuts, to) in [(&[0, 1, 33, 40][..], MemoryDomain::Host), (&[0, 17, 18, 40], DOMAIN)] {
        let mut device = case.queue();
        for cut in cuts.windows(2) {
            let logits = case.run(&mut device, case.work(cut[0]..cut[1], to)).expect("a run");
            assert_eq!(
                logits,
                whole[cut[0] * vocab..cut[1] * vocab],
                "{model}: {cut:?} of {cuts:?}"
            );
        }
    }
}

#[test]
fn stages_that_end_between_joined_nodes_give_the_same_logits() {
    needs_driver!();
    let case = case();
    let (rows, nodes) = (5, case.graph.nodes().len());
    let mut joined = case.queue();
    let whole = case.run_stages(&mut joined, rows, &[0, nodes]);
    for cut in (1..nodes).step_by(cases(5, 1)) {
        // A device that has joined the matrices of whole layers, and one that has joined none.
        for device in [&mut joined, &mut case.queue()] {
            let found = case.run_stages(device, rows, &[0, cut, nodes]);
            assert_eq!(found, whole, "a cut before node {cut}");
        }
    }
}

#[test]
fn logits_that_stay_on_the_device_come_with_their_largest_value() {
    needs_driver!();
    let case = case();
    let wanted = case.wanted(5);
    let mut device = case.queue();
    let work = case.work(0..5, DOMAIN);
    let outputs = Runs::start(&mut device).run(&mut device, work, &mut ()).expect("a run");
    let logits = outputs.get(case.graph.output()).expect("logits");
    let top = logits.device_buffer().and_then(|buffer| buffer.top()).expect("largest values");
    assert_eq!(top.len(), 5);
    for (top, wanted) in top.iter().zip(wanted.chunks(wanted.len() / 5)) {
        let top = top.expect("a largest value");
        assert_eq!(Some(top.column as usize), lapwing_cpu::argmax(wanted));
        let logprob = lapwing_cpu::logprob(wanted, top.column);
        assert!((top.logprob - logprob).abs() < 1e-3, "{} for {logprob}", top.logprob);
    }
}

#[test]
fn runs_complete_in_order_with_two_in_the_queue() {
    needs_driver!();
    let case = case();
    let wanted = case.wanted(24);
    let vocab = wanted.len() / 24;
    let mut device = case.queue();
    let flag = Arc::new(lapwing_model::completion::Flag::default());
    let wake = Arc::clone(&flag);
    device.start(Arc::new(move || _ = wake.set()));
    for (at, cut) in [0..8, 8..16, 16..24].into_iter().enumerate() {
        device.submit(RunId(at as u64), case.work(cut, MemoryDomain::Host));
    }
    let mut done = 0;
    while done < 3 {
        flag.take();
        while let Some(completed) = device.poll(&mut ()) {
            assert_eq!(completed.run, RunId(done));
            let outputs = completed.result.expect("a result");
            let logits = outputs.get(case.graph.output()).and_then(|t| t.host()).expect("logits");
            let rows = 8 * done as usize * vocab..8 * (done as usize + 1) * vocab;
            assert_close(logits, &wanted[rows]);
            if let Some(stamps) = completed.stamps {
                assert!(stamps.begin <= stamps.end && stamps.end < Duration::from_secs(60));
            }
            done += 1;
        }
        if done < 3 {
            flag.park();
        }
    }
}
