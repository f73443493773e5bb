//! Drafts for which the target does not wait, or of which no length is chosen, and passes of one row: they change no token and leak
//! nothing, whatever the interleaving.

use lapwing_actors::draft::{DraftForm, Drafts, Schedule};
use lapwing_kernels::device::ModelId;
use lapwing_traces::{Nanos, Scope};

use crate::cases::cases;
use crate::drafts_by_model::{placements, play, random_of, submit};
use crate::oracle::foretell;
use crate::support::prompt;
use crate::two_models::{Engine, Setup};

const PRE: DraftForm = DraftForm { bonus_pass: false, pre_verify: true, post_verify: false };
const POST: DraftForm = DraftForm { bonus_pass: false, pre_verify: false, post_verify: true };
const BOTH: DraftForm = DraftForm { post_verify: true, ..PRE };
const BONUS: DraftForm = DraftForm { bonus_pass: true, pre_verify: false, post_verify: false };

/// Makes drafts of a model with a schedule.
type Kind = fn(ModelId, Schedule) -> Drafts;

const KINDS: [Kind; 4] = [
    |model, schedule| Drafts::of_model(model, schedule).form(PRE),
    |model, schedule| Drafts::of_model(model, schedule).form(POST),
    |model, schedule| Drafts::of_model(model, schedule).form(BOTH),
    |model, schedule| Drafts::of_model(model, schedule).form(BONUS),
];

const PREDICTORS: [Kind; 4] = [
    |model, schedule| Drafts::of_predictor(model, schedule).form(PRE),
    |model, schedule| Drafts::of_predictor(model, schedule).form(POST),
    |model, schedule| Drafts::of_predictor(model, schedule).form(BOTH),
    |model, schedule| Drafts::of_predictor(model, schedule).if_they_pay(),
];

#[test]
fn random_schedules_change_no_token_and_leak_nothing() {
    for seed in 0..cases(600, 8000) {
        random_of(seed, Scope::Off, KINDS[seed as usize % KINDS.len()], |_, _| {});
    }
}

#[test]
fn random_schedules_with_a_predictor_change_no_token_and_leak_nothing() {
    for seed in 0..cases(300, 6000) {
        let kind = PREDICTORS[seed as usize % PREDICTORS.len()];
        random_of(seed, Scope::Off, kind, |setup, dice| {
            setup.given = true;
            setup.prefixes = dice.below(2) == 0;
        });
    }
}

/// On every placement, a right draft model is still always accepted, and drafts still save steps; but not on a device that computes
/// the passes of both models by turns, if the target waits for no draft: each token is drafted when the target has it.
#[test]
fn a_right_draft_model_is_always_accepted() {
    for (name, strategies) in placements() {
        let shares = ["the same device", "both on both devices"].contains(&name);
        for (number, kind) in KINDS.into_iter().enumerate() {
            for schedule in Schedule::ALL {
                let what = format!("{name}, {}", schedule.name());
                let strategies = strategies.clone();
                let mut engine =
                    Engine::new(&Setup { wrong: None, strategies, ..Setup::default() });
                let ids = (0..).map(|i| prompt(i, 20)).find(|ids| foretell(ids, 64).0.len() == 64);
                let drafts = Some(kind(ModelId(1), schedule).always(15));
                let ids = ids.expect("a long text");
                let mut requests = [submit(&mut engine, Nanos(0), ids, 64, drafts)];
                play(&mut engine, &mut requests, &what);
                requests[0].check(&what);
                let stats = requests[0].stats();
                assert_eq!(stats.accepted, stats.drafted, "{what}: {stats:?}");
                let waits = schedule == Schedule::Synchronous || [1, 3].contains(&number);
                assert!(stats.steps < 63 || shares && !waits, "{what}: {stats:?}");
            }
        }
    }
}
