use std::time::Duration;

use super::*;

fn speculation(rate: f64, ratio: f64, schedule: Schedule) -> Speculation {
    let pass =
        |ms: f64| Pass { one: Duration::from_secs_f64(ms * 1e-3), growth: 0.0, bandwidth: 0.0 };
    Speculation {
        target: pass(100.0),
        draft: pass(100.0 * ratio),
        acceptance: Acceptance::Independent { rate, seed: 1 },
        schedule,
        target_devices: 1,
        form: DraftForm::default(),
        own_device: true,
        length: Some(4),
        requests: 1,
        prompt: 4,
        tokens: 4000,
    }
}

/// Equation 1 and theorem 3.8 of Leviathan et al. (2023): (1 − α^(γ+1)) / ((1 − α)(γc + 1)).
#[test]
fn synchronous_drafts_gain_what_the_formula_says() {
    for (alpha, ratio, length) in [(0.8, 0.1, 4), (0.6, 0.2, 2), (0.9, 0.05, 8), (0.3, 0.3, 1)] {
        for own_device in [false, true] {
            let run = Speculation {
                length: Some(length),
                own_device,
                tokens: 40_000,
                ..speculation(alpha, ratio, Schedule::Synchronous)
            };
            let outcome = run.run().expect("an outcome");
            let gamma = length as f64;
            let tokens = (1.0 - alpha.powf(gamma + 1.0)) / (1.0 - alpha);
            let expected = tokens / (gamma * ratio + 1.0);
            let found = outcome.speed_up();
            // After a draft that is accepted completely, the next one begins with a pass of two rows, which takes
            // no longer here.
            assert!(
                (found / expected - 1.0).abs() < 0.03,
                "{alpha} {ratio} {length}: {found} {expected}"
            );
        }
    }
}

#[test]
fn a_right_draft_on_its_own_device_costs_the_target_nothing() {
    let outcome = speculation(1.0, 0.25, Schedule::Asynchronous).run().expect("an outcome");
    // While the target verifies, four tokens are drafted.
    assert!((outcome.speed_up() - 4.0).abs() < 0.2, "{}", outcome.speed_up());
    let waits = speculation(1.0, 0.25, Schedule::Synchronous).run().expect("an outcome");
    assert!((waits.speed_up() - 2.5).abs() < 0.05, "{}", waits.speed_up());
}

#[test]
fn a_wrong_draft_model_is_switched_off() {
    for schedule in Schedule::ALL {
        let run = Speculation { length: None, ..speculation(0.0, 0.3, schedule) };
        let outcome = run.run().expect("an outcome");
        assert!(outcome.speed_up() > 0.97, "{schedule:?}: {}", outcome.speed_up());
        assert_eq!(outcome.drafts.accepted, 0);
    }
}

#[test]
fn shared_bandwidth_takes_the_gain_of_drafting_meanwhile() {
    let gain = |bandwidth: f64| {
        let mut run = speculation(0.8, 0.5, Schedule::Asynchronous);
        (run.target.bandwidth, run.draft.bandwidth) = (bandwidth, bandwidth);
        run.run().expect("an outcome").speed_up()
    };
    let (own, half, all) = (gain(0.0), gain(0.5), gain(1.0));
    assert!((own / half - 1.0).abs() < 1e-9, "half of it each is enough: {own} {half}");
    assert!(all < 0.85 * own, "{all} {own}");
}

#[test]
fn a_recorded_text_is_accepted_where_it_was() {
    let positions: Arc<[bool]> = [true, true, true, false].into();
    let run = Speculation {
        acceptance: Acceptance::Recorded(positions),
        ..speculation(0.0, 0.1, Schedule::Synchronous)
    };
    let outcome = run.run().expect("an outcome");
    assert!((outcome.drafts.tokens_per_step() - 4.0).abs() < 0.01, "{:?}", outcome.drafts);
}

/// The draft model reads the prompt while the target waits for its first draft.
#[test]
fn a_prompt_is_read_before_the_first_draft() {
    let time = |prompt: usize| {
        let mut run =
            Speculation { prompt, tokens: 40, ..speculation(1.0, 0.1, Schedule::Synchronous) };
        run.draft.growth = 0.5;
        run.run().expect("an outcome").time
    };
    let (short, long) = (time(4), time(104));
    // A hundred further rows of half a pass of 10 ms each.
    assert_eq!(long.0 - short.0, 500_000_000, "{short:?} {long:?}");
}

/// Gains of asynchronous over synchronous drafts with Llama 3.2 1B and Llama 3.1 8B: AMUSD (McDanel, 2024), whose
/// repository states the gains and has the log of a text of each, and of PipeSpec, whose repository has the logs of ten
/// texts. Acceptance and times of passes are those of the synchronous logs, whose drafts have five tokens.
#[test]
fn published_gains_are_simulated_within_a_tenth() {
    let rows = [
        ("AMUSD, HumanEval", 0.952, (11.69, 26.63), 17.88 / 14.08),
        ("AMUSD, RefactorChat", 0.962, (11.74, 31.19), 19.18 / 13.96),
        ("PipeSpec, HumanEval", 0.931, (11.07, 26.11), 18.60 / 14.53),
    ];
    for (name, rate, (draft, target), published) in rows {
        let speed = |schedule: Schedule, length| {
            let run = Speculation {
                length,
                tokens: 20_000,
                ..speculation(rate, draft / target, schedule)
            };
            run.run().expect("an outcome").speed_up()
        };
        let gain = speed(Schedule::Asynchronous, None) / speed(Schedule::Synchronous, Some(5));
        assert!((gain / published - 1.0).abs() < 0.1, "{name}: {gain} {published}");
    }
}

#[test]
fn impossible_numbers_are_refused() {
    let base = speculation(0.5, 0.5, Schedule::Synchronous);
    let rows = [
        Speculation { length: Some(0), ..base.clone() },
        Speculation { length: Some(DRAFT_MAX + 1), ..base.clone() },
        Speculation { tokens: 1, ..base.clone() },
        Speculation { prompt: 0, ..base.clone() },
        Speculation { requests: 0, ..base.clone() },
        Speculation { acceptance: Acceptance::Independent { rate: 1.5, seed: 0 }, ..base.clone() },
        Speculation { acceptance: Acceptance::Recorded([].into()), ..base.clone() },
        Speculation { acceptance: Acceptance::of_counts(&[], 0), ..base.clone() },
        Speculation { target_devices: 0, ..base.clone() },
        Speculation { target: Pass { one: Duration::ZERO, ..base.target }, ..base.clone() },
        Speculation { draft: Pass { growth: f64::NAN, ..base.draft }, ..base.clone() },
    ];
    for wrong in rows {
        assert!(wrong.run().is_err(), "{wrong:?}");
    }
}

/// Counted by hand: the text has a first token, and then `tokens - 1` more.
#[test]
fn wasted_rows_are_counted_exactly() {
    // Name, whether all drafts are right, length, tokens; steps, drafted tokens, and wasted rows of the target; rows of
    // the draft model, and wasted ones of them.
    let rows = [
        // Steps with 9, 8, … 1 tokens left verify 2, 2, … 1, 0 tokens. The draft model computes a row for each of them,
        // of which the second of a draft follows a wrong token.
        ("all wrong", false, 2, 10, (9, 15, 15), (15, 7)),
        // Three steps of four tokens. The draft model computes three rows, and then twice four: the last token of the
        // draft, the one after it, and two of the next draft.
        ("all right", true, 3, 13, (3, 9, 0), (11, 0)),
        // A draft of one token needs only the row before it.
        ("all wrong, short", false, 1, 10, (9, 8, 8), (8, 0)),
    ];
    for (name, right, length, tokens, of_target, of_draft) in rows {
        let run = Speculation {
            acceptance: Acceptance::Recorded([right].into()),
            length: Some(length),
            tokens,
            ..speculation(0.0, 0.1, Schedule::Synchronous)
        };
        let drafts = run.run().expect("an outcome").drafts;
        assert_eq!((drafts.steps, drafts.drafted, drafts.wasted), of_target, "{name}: {drafts:?}");
        assert_eq!((drafts.draft_rows, drafts.draft_rows_wasted), of_draft, "{name}: {drafts:?}");
    }
}

/// With its layers on four devices, a target computes several passes at a time, if the draft model is fast enough.
#[test]
fn passes_ahead_use_all_devices_of_a_target() {
    let gain = |schedule, target_devices| {
        let run = Speculation {
            target_devices,
            length: Some(1),
            tokens: 1000,
            ..speculation(1.0, 0.05, schedule)
        };
        run.run().expect("an outcome").speed_up()
    };
    let (one, four) = (gain(Schedule::Asynchronous, 1), gain(Schedule::Asynchronous, 4));
    assert!(four > 2.0 * gain(Schedule::Synchronous, 4), "{four}");
    assert!(four > 3.0, "{four} on four devices, {one} on one");
}

/// A run with these rates reports them again: the counts of a real run lead to the same acceptance.
#[test]
fn acceptance_by_position_is_reproduced() {
    let rates = [0.9, 0.6, 0.8, 0.3];
    let run = |acceptance: Acceptance| {
        let run = Speculation {
            acceptance,
            tokens: 20_000,
            ..speculation(0.0, 0.1, Schedule::Synchronous)
        };
        run.run().expect("an outcome")
    };
    let first = run(Acceptance::ByPosition { rates: rates.into(), seed: 3 });
    let second = Acceptance::of_counts(&first.drafts.positions, 4);
    let Acceptance::ByPosition { rates: found, .. } = &second else { panic!("{second:?}") };
    // Of drafts of four tokens that were accepted completely, the next one goes on behind them.
    assert!(found.len() == 4 && (found[0] - rates[0]).abs() < 0.06, "{found:?}");
    for (found, rate) in found.iter().zip(rates).skip(1) {
        assert!((found - rate).abs() < 0.06, "{found:?} {rate}");
    }
    let (first, second) = (first.speed_up(), run(second.clone()).speed_up());
    assert!((first / second - 1.0).abs() < 0.04, "{first} {second}");
}

/// Requests wait for their own drafts, and so get out of step. On one device their passes run one after another.
#[test]
fn requests_share_the_devices_of_a_target() {
    let speed = |schedule, requests, target_devices| {
        let mut run = Speculation {
            requests,
            target_devices,
            length: None,
            tokens: 1000,
            ..speculation(0.8, 0.05, schedule)
        };
        (run.target.growth, run.draft.growth) = (0.02, 0.02);
        run.run().expect("an outcome").speed_up()
    };
    let (sync, meanwhile) = (Schedule::Synchronous, Schedule::Asynchronous);
    // Requests, devices, schedule, and the least gain over one device.
    let rows = [
        (2, 2, sync, 1.35),
        (3, 2, sync, 1.3),
        (4, 2, sync, 1.3),
        (4, 4, sync, 1.55),
        (2, 2, meanwhile, 1.25),
        (3, 2, meanwhile, 1.2),
        (4, 2, meanwhile, 1.15),
        (4, 4, meanwhile, 1.35),
        // Each has two passes in flight.
        (2, 4, meanwhile, 1.35),
    ];
    for (requests, devices, schedule, least) in rows {
        let [one, many] = [1, devices].map(|devices| speed(schedule, requests, devices));
        let what = format!("{requests} requests, {devices} devices, {}", schedule.name());
        assert!(many > least * one, "{what}: {many} against {one}");
    }
}

#[test]
fn each_request_of_a_run_has_its_own_text_and_is_counted() {
    let run = |requests| {
        let run = Speculation { requests, ..speculation(0.7, 0.1, Schedule::Synchronous) };
        run.run().expect("an outcome")
    };
    let (one, two) = (run(1), run(2));
    // A draft has 4 tokens, so that steps show the acceptance of both texts.
    let steps = one.drafts.steps..2 * one.drafts.steps + one.drafts.steps / 8;
    assert!(steps.contains(&two.drafts.steps), "{:?} {:?}", one.drafts, two.drafts);
    let acceptance = |run: &SpeculationOutcome| run.drafts.next_acceptance().expect("drafts");
    assert!((acceptance(&two) - 0.7).abs() < 0.03, "{}", acceptance(&two));
    assert_ne!(two.drafts.accepted, 2 * one.drafts.accepted, "both texts are the same");
}
