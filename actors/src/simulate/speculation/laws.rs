//! Laws of drafts by a model: whatever the schedule, the form, the times and the acceptance.

use std::time::Duration;

use proptest::prelude::{Just, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::*;

/// Texts of 200 tokens. Bits of `form`: a pass of its own for the last token, pre-verify, post-verify.
fn speculation(rate: f64, draft_us: u64, form: u8) -> Speculation {
    let pass = |us| Pass { one: Duration::from_micros(us), growth: 0.0, bandwidth: 0.0 };
    let bit = |number: u8| form >> number & 1 == 1;
    Speculation {
        acceptance: Acceptance::Independent { rate, seed: draft_us },
        form: DraftForm { bonus_pass: bit(0), pre_verify: bit(1), post_verify: bit(2) },
        tokens: 200,
        ..Speculation::new(pass(100_000), pass(draft_us))
    }
}

fn with(run: Speculation, is_async: bool, length: usize, own_device: bool) -> Speculation {
    let schedule = Schedule::ALL[usize::from(is_async)];
    let length = Some(length).filter(|length| *length > 0);
    Speculation { schedule, length, own_device, ..run }
}

const CASES: u32 = 48;

proptest! {
    #![proptest_config(Config::with_cases(CASES))]

    #[test]
    fn tokens_are_the_same_in_every_form(
        rate in 0.0..=1.0_f64,
        draft_us in 5_000..200_000_u64,
        form in 0..8_u8,
        is_async: bool,
        length in 0..=15_usize,
        own_device: bool,
        requests in 1..=3_usize,
        target_devices in 1..=3_usize,
    ) {
        let run = with(speculation(rate, draft_us, form), is_async, length, own_device);
        let run = Speculation { requests, target_devices, ..run };
        let plain = run.play(None).expect("a run");
        let drafted = run.play(Some(run.drafting())).expect("a run");
        prop_assert_eq!(plain.ids, drafted.ids);
    }

    #[test]
    fn nothing_is_lost_where_all_tokens_are_right(
        draft_us in 5_000..200_000_u64,
        form in 0..8_u8,
        is_async: bool,
        length in 0..=15_usize,
        own_device: bool,
    ) {
        let run = with(speculation(1.0, draft_us, form), is_async, length, own_device);
        let drafts = run.play(Some(run.drafting())).expect("a run").drafts;
        prop_assert_eq!(drafts.accepted, drafts.drafted, "{:?}", drafts);
        prop_assert_eq!(drafts.wasted, 0, "{:?}", drafts);
        prop_assert_eq!(1 + drafts.steps + drafts.accepted, run.tokens, "{:?}", drafts);
    }

    /// Each pass of the draft model, and each row that is verified in vain, is waited for once at most.
    #[test]
    fn wrong_drafts_cost_no_more_than_their_share(
        rate in prop_oneof![Just(0.0), 0.0..0.3_f64],
        draft_us in 5_000..200_000_u64,
        form in 0..8_u8,
        is_async: bool,
        length in 0..=15_usize,
        own_device: bool,
        growth in 0.0..0.5_f64,
    ) {
        let mut run = with(speculation(rate, draft_us, form), is_async, length, own_device);
        (run.target.growth, run.draft.growth) = (growth, growth);
        let plain = run.play(None).expect("a run").time.0 as f64;
        let Played { time, drafts, rows, .. } = run.play(Some(run.drafting())).expect("a run");
        let drafting = rows as f64 * run.draft.one.as_nanos() as f64;
        let verifying = drafts.drafted as f64 * growth * run.target.one.as_nanos() as f64;
        prop_assert!(time.0 as f64 <= (plain + drafting + verifying) * (1.0 + 1e-9), "{:?}", drafts);
    }

    #[test]
    fn with_pre_verify_the_target_never_waits(
        rate in 0.0..=1.0_f64,
        draft_us in 5_000..200_000_u64,
        post_verify: bool,
        length in 0..=15_usize,
    ) {
        let form = 2 + 4 * u8::from(post_verify);
        let run = with(speculation(rate, draft_us, form), true, length, true);
        let Played { time, drafts, .. } = run.play(Some(run.drafting())).expect("a run");
        prop_assert_eq!(u128::from(time.0), drafts.steps as u128 * run.target.one.as_nanos());
        let plain = run.play(None).expect("a run").time;
        prop_assert!(time <= plain, "{:?} {:?}", time, plain);
    }

    #[test]
    fn a_pass_of_its_own_costs_one_pass_for_each_draft_that_is_accepted_completely(
        rate in 0.3..1.0_f64,
        draft_us in 5_000..50_000_u64,
        length in 2..=8_usize,
        own_device: bool,
    ) {
        let played = |form| {
            let run = with(speculation(rate, draft_us, form), false, length, own_device);
            run.play(Some(run.drafting())).expect("a run")
        };
        let (usual, published) = (played(0), played(1));
        prop_assert_eq!(&usual.drafts.positions, &published.drafts.positions);
        let whole = usual.drafts.positions.get(length - 1).map_or(0, |(_, accepted)| *accepted);
        let extra = (published.time.0 - usual.time.0) as f64 / (draft_us as f64 * 1e3);
        // The last drafts of a text are shorter, or followed by none.
        prop_assert!((extra - whole as f64).abs() <= 2.0 + 1e-6, "{} {}", extra, whole);
    }
}
