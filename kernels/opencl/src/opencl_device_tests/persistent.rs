//! Runs of few rows in one launch, by a persistent kernel.

use super::*;

/// Runs of 1 to 4 rows have the bits of a run that is too long for the persistent kernel. A driver compiles for half
/// a minute, so that the models are divided among tests.
fn check(model: &str) {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    ops::PERSISTENT.set(true);
    let case = case_of(model);
    let mut device = case.queue();
    assert_eq!(device.notes(), Vec::<String>::new(), "{model}");
    assert!(device.has_persistent(), "{model}");
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
    // Values and pages in place, which the kernel names by address.
    for kind in kinds() {
        let case = case_of(model).in_place(kind);
        let mut device = case.queue();
        assert!(device.has_persistent(), "{model}, {kind}");
        for rows in [0..2, 2..3, 3..7] {
            let work = case.work(rows.clone(), MemoryDomain::Host);
            let logits = case.run(&mut device, work).expect("a run");
            let wanted = &whole[rows.start * vocab..rows.end * vocab];
            assert!(logits == wanted, "{model}, {kind}: {rows:?}");
        }
    }
}

#[test]
fn a_persistent_kernel_that_is_turned_off_is_not_built() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    ops::PERSISTENT.set(true);
    let case = case();
    let parts = OpenClDeviceParts { persistent: false, ..case.parts() };
    let device = OpenClDevice::new(parts, &case.file).expect("a device");
    assert!(!device.has_persistent());
    assert_eq!(device.notes(), Vec::<String>::new(), "it was not tried");
    // Nor for another model on the same device.
    let kv = Arc::new(KvStore::new(case.layout.clone(), 4).expect("memory"));
    let second = device.with_model(Arc::clone(&case.graph), kv, None, &case.file);
    assert!(!second.expect("a device").has_persistent());
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn a_persistent_kernel_gives_the_bits_of_launches() {
    check("llama");
}

#[test]
#[ignore = "long: sh tests/all.sh full runs it"]
fn a_persistent_kernel_with_windows_and_caps_gives_the_bits_of_launches() {
    check("gemma3");
}

#[test]
#[ignore = "long: sh tests/all.sh full runs it"]
fn a_persistent_kernel_with_sinks_gives_the_bits_of_launches() {
    check("granite_swa");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn a_persistent_kernel_with_4_bit_weights_gives_the_bits_of_launches() {
    check("format-q4_k");
}

#[test]
#[ignore = "long: sh tests/all.sh full runs it"]
fn a_persistent_kernel_beside_launches_of_experts_gives_the_bits_of_launches() {
    check("qwen3moe");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn a_persistent_kernel_with_states_gives_the_bits_of_launches() {
    check("qwen35");
}

#[test]
#[ignore = "long: sh tests/all.sh full runs it"]
fn a_persistent_kernel_with_6_bit_weights_gives_the_bits_of_launches() {
    check("format-q6_k");
}

#[test]
#[ignore = "long: sh tests/all.sh runs it"]
fn a_barrier_that_times_out_ends_the_run_with_an_error() {
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
        assert!(failed.to_string().contains("timed out"), "{failed}");
    }
}
