//! Ops that are computed by the kernels of matmuls.

use super::*;

/// How many launches of each kernel a run of so many rows has: norms, gated activations, and all.
fn launches(case: &Case, rows: usize) -> [usize; 3] {
    let mut device = case.queue();
    let mut run = || {
        ops::LAUNCHED.take();
        case.run(&mut device, case.work(0..rows, MemoryDomain::Host)).expect("a run");
        ops::LAUNCHED.take()
    };
    let launched = run();
    assert_eq!(run(), launched);
    let of = |prefix: &str| launched.iter().filter(|name| name.starts_with(prefix)).count();
    [of("rms_norm"), of("gated"), launched.len()]
}

fn check() {
    // Norms of a layer, and those of them that a matmul follows.
    for (model, norms, before_matmuls) in
        [("llama", 2, 2), ("qwen2", 2, 2), ("qwen3", 4, 2), ("gemma3", 6, 2)]
    {
        let case = case_of(model);
        let layers = case.layout.layers.len();
        let [few_norms, few_gates, few] = launches(&case, 1);
        assert_eq!([few_norms, few_gates], [(norms - before_matmuls) * layers, 0], "{model}");
        let [many_norms, many_gates, many] = launches(&case, 40);
        assert_eq!([many_norms, many_gates], [norms * layers + 1, layers], "{model}");
        // The last norm is followed by a matmul, too.
        assert_eq!(many - few, (before_matmuls + 1) * layers + 1, "{model}");
    }
}

#[test]
fn a_run_of_few_rows_has_no_launches_for_norms_before_matmuls_and_for_gates() {
    needs_driver!();
    check();
}

#[test]
fn a_run_of_few_rows_has_none_of_them_on_a_gpu_either() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    check();
}
