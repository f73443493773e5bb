//! A constraint holds for every token, and no draft changes one.

use lapwing_actors::RunError;
use lapwing_actors::draft::{Drafter, Drafts, Schedule};
use lapwing_actors::message::{FinishReason, Generate, StreamEvent, Task};
use lapwing_actors::sample::{
    Accepted, Constraint, ConstraintError, Sampler, SamplingParams, TokenMask,
};
use lapwing_kernels::device::ModelId;
use lapwing_traces::Nanos;

use crate::sampled_distribution::{STATES, table};
use crate::two_models::{Engine, Setup};

/// Tokens of a complete text.
const LENGTH: usize = 30;

/// Allows tokens that differ from the one before by less than 3, and [`LENGTH`] tokens in all.
#[derive(Clone, Debug)]
struct Steps {
    last: u32,
    count: usize,
    fails_at: usize,
}

impl Steps {
    fn allows(&self, id: u32) -> bool {
        (id as usize) < STATES && id.abs_diff(self.last) < 3
    }
}

impl Constraint for Steps {
    fn allowed(&mut self) -> Result<TokenMask, ConstraintError> {
        match self.count == self.fails_at {
            true => Err(ConstraintError { reason: "on purpose".to_owned() }),
            false => Ok((0..STATES as u32).filter(|id| self.allows(*id)).collect()),
        }
    }

    fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
        assert!(self.allows(id), "{id} after {}", self.last);
        (self.last, self.count) = (id, self.count + 1);
        Ok(if self.count == LENGTH { Accepted::Complete } else { Accepted::Open })
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }
}

/// Proposes tokens of which some are allowed, and some are right.
#[derive(Debug)]
struct Upwards;

impl Drafter for Upwards {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        (0..most.min(4)).map(|at| ((ids[ids.len() - 1] as usize + at) % STATES) as u32).collect()
    }
}

type Answer = (Vec<u32>, Result<FinishReason, RunError>);

fn answers(fails_at: usize, drafts: &dyn Fn() -> Option<Drafts>) -> Vec<Answer> {
    let setup = Setup { markov: Some([table(0), table(3)]), pages: [512, 512], ..Setup::default() };
    let mut engine = Engine::new(&setup);
    let receivers: Vec<_> = (0..8)
        .map(|seed| {
            let params = SamplingParams { seed: Some(seed), min_p: 0.0, ..Default::default() };
            let ids = [seed as u32 % STATES as u32];
            let constraint = Box::new(Steps { last: ids[0], count: 0, fails_at });
            let sampler = Sampler::new(params, &ids).with_constraint(constraint, None);
            let tokens_max = if seed == 7 { LENGTH - 5 } else { 100 };
            let drafts = drafts().map(Box::new);
            let generate = Generate { sampler, stop_ids: [].into(), tokens_max, drafts };
            engine.send(0, Nanos(0), &ids, Task::Generate(Box::new(generate)))
        })
        .collect();
    engine.sim.run();
    let answers = receivers.into_iter().map(|receiver| {
        let (mut ids, mut end) = (Vec::new(), None);
        for event in receiver.try_iter() {
            match event.message {
                StreamEvent::Token(token) => ids.push(token.id),
                StreamEvent::Finished(finished) => end = Some(Ok(finished.reason)),
                StreamEvent::Failed(error) => end = Some(Err(error)),
                other => panic!("{other:?}"),
            }
        }
        (ids, end.expect("an end"))
    });
    let answers = answers.collect();
    engine.assert_empty("constrained texts");
    answers
}

#[test]
fn a_constraint_holds_for_every_token_and_no_draft_changes_one() {
    let model = |schedule| move || Some(Drafts::of_model(ModelId(1), schedule).always(4));
    for fails_at in [usize::MAX, 0, 12] {
        let plain = answers(fails_at, &|| None);
        for (number, (ids, end)) in plain.iter().enumerate() {
            let (length, wanted) = match (fails_at, number) {
                (usize::MAX, 7) => (LENGTH - 5, Ok(FinishReason::Length)),
                (usize::MAX, _) => (LENGTH, Ok(FinishReason::Stop)),
                _ => (fails_at, Err(RunError::Constraint { reason: "on purpose".to_owned() })),
            };
            assert_eq!((ids.len(), end), (length, &wanted));
        }
        let drafters: [&dyn Fn() -> Option<Drafts>; 4] = [
            &|| Some(Drafts::new(Box::new(Upwards))),
            &|| Some(Drafts::new(Box::new(Upwards)).always(4)),
            &model(Schedule::Synchronous),
            &model(Schedule::Asynchronous),
        ];
        for (number, drafts) in drafters.into_iter().enumerate() {
            let drafted = answers(fails_at, drafts);
            for ((found, end), (wanted, wanted_end)) in drafted.iter().zip(&plain) {
                assert_eq!(end, wanted_end, "drafter {number}");
                // A step that fails yields none of its tokens.
                let shown = if end.is_ok() { wanted } else { &wanted[..found.len().min(fails_at)] };
                assert_eq!(found, shown, "drafter {number}");
            }
        }
    }
}
