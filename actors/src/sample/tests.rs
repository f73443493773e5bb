use super::*;

const LOGITS: [f32; 5] = [1.0, 3.0, 2.0, -1.0, 2.5];

fn params() -> SamplingParams {
    SamplingParams { top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, ..Default::default() }
}

fn support(params: SamplingParams, prompt: &[u32]) -> Vec<u32> {
    let mut seen: Vec<u32> = (0..2000)
        .filter_map(|seed| {
            Sampler::new(SamplingParams { seed: Some(seed), ..params.clone() }, prompt)
                .sample(&LOGITS)
                .ok()
        })
        .map(|s| s.id)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn each_filter_keeps_exactly_its_set() {
    let p = params();
    assert_eq!(support(p.clone(), &[]), vec![0, 1, 2, 3, 4]);
    assert_eq!(support(SamplingParams { top_k: 2, ..p.clone() }, &[]), vec![1, 4]);
    // Probabilities are 0.064, 0.470, 0.173, 0.009, 0.285.
    assert_eq!(support(SamplingParams { top_p: 0.46, ..p.clone() }, &[]), vec![1]);
    assert_eq!(support(SamplingParams { top_p: 0.5, ..p.clone() }, &[]), vec![1, 4]);
    assert_eq!(support(SamplingParams { min_p: 0.35, ..p.clone() }, &[]), vec![1, 2, 4]);
    assert_eq!(support(SamplingParams { min_p: 1.0, ..p.clone() }, &[]), vec![1]);
    let bias = vec![(1, f32::NEG_INFINITY), (99, 5.0)];
    assert_eq!(support(SamplingParams { logit_bias: bias, ..p }, &[]), vec![0, 2, 3, 4]);
}

#[test]
fn frequencies_follow_the_softmax() {
    let draws = 20_000;
    let mut sampler = Sampler::new(SamplingParams { seed: Some(0), ..params() }, &[]);
    let mut counts = [0u32; 5];
    for _ in 0..draws {
        counts[sampler.sample(&LOGITS).expect("finite").id as usize] += 1;
    }
    for (id, count) in counts.into_iter().enumerate() {
        let expected = f64::from(logprob(&LOGITS, id as u32)).exp();
        let found = f64::from(count) / f64::from(draws);
        assert!((found - expected).abs() < 0.015, "id {id}: {found} for {expected}");
    }
}

#[test]
fn same_seed_gives_same_tokens_and_another_seed_others() {
    let run = |seed| -> (Vec<u32>, u64) {
        let mut s = Sampler::new(SamplingParams { seed, ..params() }, &[]);
        ((0..64).filter_map(|_| s.sample(&LOGITS).ok()).map(|t| t.id).collect(), s.seed())
    };
    assert_eq!(run(Some(7)), run(Some(7)));
    assert_ne!(run(Some(7)).0, run(Some(8)).0);
    let (free, seed) = run(None);
    assert_ne!(free, run(None).0, "without a seed every sampler draws its own");
    assert_eq!(free, run(Some(seed)).0, "the seed it reports repeats it");
}

#[test]
fn penalties_move_tokens_of_the_window_only() {
    let greedy = SamplingParams::greedy();
    let first = |p: SamplingParams, prompt: &[u32]| Sampler::new(p, prompt).sample(&LOGITS).ok();
    let id = |p: SamplingParams, prompt: &[u32]| first(p, prompt).map(|s| s.id);
    let rep = SamplingParams { repetition_penalty: 1.5, ..greedy.clone() };
    assert_eq!(id(greedy.clone(), &[1]), Some(1));
    assert_eq!(id(rep.clone(), &[1]), Some(4));
    assert_eq!(id(SamplingParams { penalty_window: 1, ..rep }, &[1, 0]), Some(1));
    let presence = SamplingParams { presence_penalty: 0.6, ..greedy.clone() };
    assert_eq!(id(presence, &[1]), Some(4));
    let frequency = SamplingParams { frequency_penalty: 0.3, ..greedy };
    assert_eq!(id(frequency.clone(), &[1]), Some(1));
    assert_eq!(id(frequency, &[1, 1]), Some(4));
}

#[test]
fn the_probability_reported_is_the_models_own() {
    let p = SamplingParams { logit_bias: vec![(3, 100.0)], ..SamplingParams::greedy() };
    let token = Sampler::new(p, &[]).sample(&LOGITS).expect("finite");
    assert_eq!(token.id, 3);
    assert!((token.logprob - logprob(&LOGITS, 3)).abs() < 1e-6);
    assert!((token.logprob + 4.755).abs() < 1e-3, "{}", token.logprob);
}

#[test]
fn the_most_likely_tokens_are_reported_in_order_whatever_is_chosen() {
    let bias = vec![(3, 100.0)];
    let p = SamplingParams { logit_bias: bias, ..SamplingParams::greedy() };
    let token = Sampler::new(p, &[]).with_top_logprobs(3).sample(&LOGITS).expect("finite");
    assert_eq!(token.id, 3);
    assert_eq!(token.top.iter().map(|t| t.id).collect::<Vec<_>>(), [1, 4, 2]);
    for t in &token.top {
        assert!((t.logprob - logprob(&LOGITS, t.id)).abs() < 1e-5, "{t:?}");
    }
    let mut best = Sampler::new(SamplingParams::greedy(), &[]).with_top_logprobs(99);
    let best = best.sample(&LOGITS).expect("finite");
    assert_eq!((best.top.len(), best.top[0].id), (5, 1));
    assert_eq!(best.top[0].logprob.to_bits(), best.logprob.to_bits());
    let total: f64 = best.top.iter().map(|t| f64::from(t.logprob).exp()).sum();
    assert!((total - 1.0).abs() < 1e-5, "{total}");
    let none = Sampler::new(params(), &[]).sample(&LOGITS).expect("finite");
    assert!(none.top.is_empty());
}

#[test]
fn broken_logits_give_nothing_instead_of_a_wrong_token() {
    let mut s = Sampler::new(params(), &[]);
    assert_eq!(s.sample(&[f32::NAN, f32::NAN]), Err(SampleError::NoToken));
    assert_eq!(s.sample(&[f32::NEG_INFINITY]), Err(SampleError::NoToken));
    let mut s = Sampler::new(SamplingParams::greedy(), &[]);
    assert_eq!(s.sample(&[]), Err(SampleError::NoToken));
}

#[test]
fn senseless_parameters_are_named() {
    let rows = [
        (SamplingParams { temperature: -1.0, ..params() }, "temperature"),
        (SamplingParams { temperature: f32::NAN, ..params() }, "temperature"),
        (SamplingParams { top_p: 0.0, ..params() }, "top_p"),
        (SamplingParams { min_p: 1.5, ..params() }, "min_p"),
        (SamplingParams { repetition_penalty: 0.0, ..params() }, "repetition_penalty"),
        (SamplingParams { presence_penalty: f32::INFINITY, ..params() }, "presence_penalty"),
        (SamplingParams { logit_bias: vec![(0, f32::NAN)], ..params() }, "logit_bias"),
    ];
    for (params, name) in rows {
        assert_eq!(params.check().map_err(|e| e.name), Err(name));
    }
    assert_eq!(params().check(), Ok(()));
}

#[test]
fn end_tokens_are_forbidden_until_enough_tokens_are_chosen() {
    let ends = Sampler::new(SamplingParams::greedy(), &[]).with_min_tokens(2, [1, 4, 99].into());
    let mut sampler = ends.fork();
    assert!(!sampler.takes(1) && sampler.takes(2), "the most likely one, if it is no end");
    let mut taking = sampler.fork();
    assert_eq!([2, 2].map(|id| taking.take(id, -1.0).id), [2, 2]);
    assert!(taking.takes(1), "two tokens are chosen");
    let first = sampler.sample(&LOGITS).expect("finite");
    assert_eq!(first.id, 2);
    assert!((first.logprob - logprob(&LOGITS, 2)).abs() < 1e-6, "the model's own");
    let mut fork = sampler.fork();
    for sampler in [&mut sampler, &mut fork] {
        let ids = [(); 2].map(|()| sampler.sample(&LOGITS).expect("finite").id);
        assert_eq!(ids, [2, 1]);
        assert!(sampler.takes(1));
    }
    let none = Sampler::new(SamplingParams::greedy(), &[]).with_min_tokens(9, [].into());
    assert!(none.takes(1), "a model without end tokens");
}

#[test]
fn a_bias_that_lowers_other_tokens_leaves_the_most_likely_one() {
    let low = f32::NEG_INFINITY;
    let rows = [
        (vec![(2, low), (4, -1.0)], true),
        (vec![(1, low)], false),
        (vec![(2, 0.5)], false),
        (vec![], true),
    ];
    for (logit_bias, takes) in rows {
        let params = SamplingParams { logit_bias: logit_bias.clone(), ..SamplingParams::greedy() };
        let mut sampler = Sampler::new(params, &[]);
        assert_eq!(sampler.takes(1), takes, "{logit_bias:?}");
        let found = sampler.sample(&LOGITS).expect("finite");
        assert!(!takes || found.id == 1, "{logit_bias:?}");
    }
}

#[test]
fn a_scored_token_has_the_probabilities_of_a_chosen_one() {
    let mut sampler = Sampler::new(SamplingParams::greedy(), &[]).with_top_logprobs(3);
    let chosen = sampler.sample(&LOGITS).expect("finite");
    let scored = Scored::of(&LOGITS, chosen.id, 3);
    assert_eq!((scored.id, scored.logprob, scored.top), (chosen.id, chosen.logprob, chosen.top));
    assert!(Scored::of(&LOGITS, 0, 0).top.is_empty());
}

/// Allows these ids at each position; the text is complete after the last one.
#[derive(Clone, Debug)]
struct Listed(Vec<Vec<u32>>);

impl Constraint for Listed {
    fn allowed(&mut self) -> Result<TokenMask, ConstraintError> {
        match self.0.first() {
            Some(ids) => Ok(ids.iter().copied().collect()),
            None => Err(ConstraintError { reason: "it has ended".to_owned() }),
        }
    }

    fn accept(&mut self, id: u32) -> Result<Accepted, ConstraintError> {
        assert!(self.0.remove(0).contains(&id));
        Ok(if self.0.is_empty() { Accepted::Complete } else { Accepted::Open })
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }
}

fn listed(params: SamplingParams, ids: &[&[u32]]) -> Sampler {
    let constraint = Listed(ids.iter().map(|ids| ids.to_vec()).collect());
    Sampler::new(params, &[]).with_constraint(Box::new(constraint), None)
}

#[test]
fn a_mask_forbids_exactly_the_other_tokens() {
    let ids = [0, 31, 32, 64, 95];
    let mask: TokenMask = ids.into_iter().collect();
    for vocab in [0, 1, 31, 32, 33, 64, 96, 97, 200] {
        let mut logits = vec![1.0; vocab];
        mask.apply(&mut logits);
        for (id, logit) in logits.iter().enumerate() {
            assert_eq!(logit.is_finite(), ids.contains(&(id as u32)), "{id} of {vocab}");
            assert_eq!(mask.contains(id as u32), ids.contains(&(id as u32)));
        }
    }
    assert!(mask.is_within(&[0, 31, 32, 64, 95, 95, 7]) && !mask.is_within(&[0, 31, 32, 64]));
    assert_eq!(TokenMask::from_words(vec![1 << 31 | 1]), [0, 31].into_iter().collect());
}

#[test]
fn a_constraint_comes_before_every_other_step_and_ends_the_text() {
    let greedy = SamplingParams::greedy();
    let mut sampler = listed(greedy.clone(), &[&[0, 3], &[2, 4]]).with_top_logprobs(1);
    assert!(!sampler.takes(0));
    let first = sampler.sample(&LOGITS).expect("a token");
    assert_eq!((first.id, first.finish, first.top[0].id), (0, None, 1));
    assert!((first.logprob - logprob(&LOGITS, 0)).abs() < 1e-6, "the model's own");
    let mut fork = sampler.fork();
    let last = sampler.sample(&LOGITS).expect("a token");
    assert_eq!((last.id, last.finish), (4, Some(FinishReason::Stop)));
    // Drafts go on without constraint.
    let drafted = [(); 2].map(|()| fork.sample(&LOGITS).expect("a token"));
    assert_eq!(drafted.map(|token| (token.id, token.finish)), [(4, None), (1, None)]);
    // The filters count allowed tokens only.
    let hot = SamplingParams { top_k: 2, seed: Some(1), ..params() };
    let ids: Vec<u32> = (0..40)
        .map(|seed| SamplingParams { seed: Some(seed), ..hot.clone() })
        .map(|p| listed(p, &[&[0, 2, 3]]).sample(&LOGITS).expect("a token").id)
        .collect();
    assert!(ids.contains(&0) && ids.contains(&2) && !ids.contains(&3), "{ids:?}");
}

#[test]
fn a_constraint_without_a_possible_token_is_an_error() {
    let bias = SamplingParams { logit_bias: vec![(3, f32::NEG_INFINITY)], ..params() };
    assert_eq!(listed(bias, &[&[3]]).sample(&LOGITS), Err(SampleError::NoAllowedToken));
    let mut ended = listed(params(), &[]);
    let error = SampleError::Constraint(ConstraintError { reason: "it has ended".to_owned() });
    assert_eq!(ended.sample(&LOGITS), Err(error));
    // Only an end token is allowed: it is taken, though it is too early.
    let ends: std::sync::Arc<[u32]> = [3].into();
    let mut early = listed(params(), &[&[3]]).with_min_tokens(9, ends.clone());
    assert_eq!(early.sample(&LOGITS).map(|token| token.id), Ok(3));
    let mut late = listed(SamplingParams::greedy(), &[&[0, 3]]).with_min_tokens(9, ends);
    assert_eq!(late.sample(&LOGITS).map(|token| token.id), Ok(0));
}
