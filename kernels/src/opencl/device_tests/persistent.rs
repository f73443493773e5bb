//! Runs of few rows in one launch, by a persistent kernel.

use super::*;

#[test]
fn a_persistent_kernel_gives_the_bits_of_launches() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    ops::PERSISTENT.set(true);
    // A driver compiles for half a minute for each.
    let models = ["llama", "gemma3", "format-q4_k", "format-q6_k"];
    for model in models.into_iter().take(cases(1, 4)) {
        let case = case_of(model);
        let mut device = case.queue();
        assert_eq!(device.notes(), Vec::<String>::new(), "{model}");
        assert!(device.has_persistent(), "{model}");
        // Too many rows for it.
        let whole = case.run(&mut device, case.work(0..40, MemoryDomain::Host)).expect("a run");
        let vocab = whole.len() / 40;
        for (rows, to) in [(1, DOMAIN), (3, MemoryDomain::Host), (4, DOMAIN), (2, DOMAIN)] {
            let mut device = case.queue();
            for first in (0..40).step_by(rows) {
                let rows = first..40.min(first + rows);
                let logits = case.run(&mut device, case.work(rows.clone(), to)).expect("a run");
                assert!(logits == whole[rows.start * vocab..rows.end * vocab], "{model}: {rows:?}");
            }
        }
    }
}

#[test]
fn groups_that_wait_in_vain_end_the_run_with_an_error() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    ops::PERSISTENT.set(true);
    let case = case();
    let mut device = case.queue();
    case.run(&mut device, case.work(0..1, DOMAIN)).expect("a run");
    // They wait for one more group than there is.
    device.session().expect_group();
    for rows in [1..2, 2..3] {
        let failed = case.run(&mut device, case.work(rows, DOMAIN)).expect_err("no results");
        assert!(failed.to_string().contains("waited for each other in vain"), "{failed}");
    }
}
