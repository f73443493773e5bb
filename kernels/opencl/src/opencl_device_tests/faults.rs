//! Runs that fail, and drivers that do.

use super::*;

#[test]
fn a_driver_that_never_calls_back_delays_a_run_and_does_not_lose_it() {
    needs_driver!();
    let case = case();
    let mut device = case.queue();
    device.inject(Fault::NoCallback);
    let logits = case.run(&mut device, case.work(0..6, MemoryDomain::Host)).expect("a run");
    assert_close(&logits, &case.wanted(6));
}

#[test]
fn a_run_that_fails_ends_with_an_error_and_so_does_every_later_one() {
    needs_driver!();
    let case = case();
    for (fault, reason) in
        [(Fault::Failed(-5), "CL_OUT_OF_RESOURCES (-5)"), (Fault::Silent, "no progress for 180 s")]
    {
        let mut device = case.queue();
        device.inject(fault);
        let result = case.run(&mut device, case.work(0..6, MemoryDomain::Host));
        let error = result.expect_err("a lost device");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.to_string().contains("not used any further"), "{error}");
        let again = case.run(&mut device, case.work(0..6, MemoryDomain::Host));
        assert_eq!(again, Err(error));
    }
}

#[test]
fn an_id_beyond_the_vocabulary_fails_that_run_only() {
    needs_driver!();
    let case = case();
    let mut device = case.queue();
    let mut work = case.work(0..6, MemoryDomain::Host);
    let mut payload = Payload::default();
    payload.batch = work.payload.batch.clone();
    payload.batch.ids[3] = 99_999;
    work.payload = Arc::new(payload);
    let error = case.run(&mut device, work).expect_err("an unknown id");
    assert!(matches!(error, DeviceError::TokenId { id: 99_999, .. }), "{error}");
    let logits = case.run(&mut device, case.work(0..6, MemoryDomain::Host)).expect("a run");
    assert_close(&logits, &case.wanted(6));
}
