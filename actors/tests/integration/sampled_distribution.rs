//! Sampled text has the target's distribution with every drafter. The target is a Markov chain over six tokens. A
//! chi-square test compares the sampled transitions with its probabilities.

use lapwing_actors::draft::{
    DraftStats, DraftTree, Drafter, DrafterUnion, Drafts, PromptLookup, RecentText, Schedule,
    SuffixDrafter,
};
use lapwing_actors::message::{Generate, StreamEvent, Task};
use lapwing_actors::sample::{Sampler, SamplingParams};
use lapwing_kernels::device::{BlockingDevice, DeviceError, ModelId, StageRun, Tensor};
use lapwing_kernels::graph::ValueId;
use lapwing_traces::Nanos;

use crate::oracle::VOCAB;
use crate::two_models::{Engine, Setup};

/// Tokens of the chain.
pub(crate) const STATES: usize = 6;

/// The probabilities of the token after each token.
pub(crate) type Table = [[f64; STATES]; STATES];

/// A model that knows only the last token.
#[derive(Clone, Debug)]
pub(crate) struct Markov {
    pub(crate) table: Table,
    pub(crate) logits: ValueId,
}

impl BlockingDevice for Markov {
    fn name(&self) -> &str {
        "markov"
    }

    fn run(&mut self, work: StageRun<'_>) -> Result<(), DeviceError> {
        if work.writes.contains(&self.logits) {
            let row = |row: &usize| {
                let mut logits = [f32::NEG_INFINITY; VOCAB];
                let next = self.table[work.batch.ids[*row] as usize % STATES];
                logits.iter_mut().zip(next).for_each(|(logit, p)| *logit = p.ln() as f32);
                logits
            };
            let values: Vec<f32> = work.batch.selected.iter().flat_map(row).collect();
            work.outputs.put(self.logits, Tensor::new(VOCAB, values));
        }
        Ok(())
    }
}

/// Probabilities proportional to integers that the seed scrambles.
pub(crate) fn table(seed: usize) -> Table {
    let weight = |from: usize, to: usize| 1.0 + ((from * 31 + to * 17 + seed * 7) % 11) as f64;
    std::array::from_fn(|from| {
        let sum: f64 = (0..STATES).map(|to| weight(from, to)).sum();
        std::array::from_fn(|to| weight(from, to) / sum)
    })
}

/// Proposes tokens that depend on nothing but the length of the text.
#[derive(Debug)]
struct Fixed;

impl Drafter for Fixed {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        (0..most.min(3)).map(|at| ((ids.len() + at) % STATES) as u32).collect()
    }
}

/// Proposes every token that may follow, and two after each.
#[derive(Debug)]
struct Every;

impl Drafter for Every {
    fn draft(&mut self, _: &[u32], _: usize) -> Vec<u32> {
        Vec::new()
    }

    fn draft_tree(&mut self, ids: &[u32], most: usize) -> DraftTree {
        let mut tree = DraftTree::default();
        for token in 0..STATES as u32 {
            let path = [token, (token + ids.len() as u32) % STATES as u32];
            tree.add(&path[..most.min(2)]);
            tree.add(&[&path[..1], &[5]].concat()[..most.min(2)]);
        }
        tree
    }
}

/// Transitions of 200 texts of 100 tokens, and what the drafts did.
fn transitions(drafts: &dyn Fn() -> Option<Drafts>) -> (Vec<Vec<f64>>, DraftStats) {
    let tables = [table(0), table(3)];
    let setup = Setup { markov: Some(tables), pages: [512, 512], ..Setup::default() };
    let mut counts = vec![vec![0.0; STATES]; STATES];
    let mut stats = DraftStats::default();
    for batch in 0..25 {
        let mut engine = Engine::new(&setup);
        let receivers: Vec<_> = (0..8)
            .map(|number| {
                let seed = batch * 8 + number;
                let params = SamplingParams {
                    top_k: 0,
                    top_p: 1.0,
                    min_p: 0.0,
                    temperature: 1.0,
                    seed: Some(seed),
                    ..SamplingParams::default()
                };
                let ids = [seed as u32 % STATES as u32];
                let generate = Generate {
                    sampler: Sampler::new(params, &ids),
                    stop_ids: [].into(),
                    tokens_max: 100,
                    drafts: drafts().map(Box::new),
                };
                let task = Task::Generate(Box::new(generate));
                (ids[0], engine.send(0, Nanos(0), &ids, task))
            })
            .collect();
        engine.sim.run();
        for (first, receiver) in receivers {
            let mut last = first as usize;
            for event in receiver.try_iter() {
                match event.message {
                    StreamEvent::Token(token) => {
                        counts[last][token.id as usize] += 1.0;
                        last = token.id as usize;
                    }
                    StreamEvent::Finished(end) => stats.add(&end.drafts.unwrap_or_default()),
                    other => panic!("{other:?}"),
                }
            }
        }
        engine.assert_empty("sampled texts");
    }
    (counts, stats)
}

/// Pearson's statistic of all transitions: chi-square with 30 degrees of freedom if the table is theirs.
fn chi_square(counts: &[Vec<f64>], table: &Table) -> f64 {
    let of_row = |(counts, probabilities): (&Vec<f64>, &[f64; STATES])| -> f64 {
        let total: f64 = counts.iter().sum();
        let pairs = counts.iter().zip(probabilities);
        pairs.map(|(found, p)| (found - total * p).powi(2) / (total * p)).sum()
    };
    counts.iter().zip(table).map(of_row).sum()
}

/// Exceeded with a probability of 1 in 10 000 by a right sampler: the quantile of 30 degrees of freedom. The seeds are
/// fixed, so that the test always gives the same answer.
const BOUND: f64 = 67.63;

#[test]
fn sampled_text_has_the_distribution_of_the_target_whoever_drafts() {
    type Make = Box<dyn Fn() -> Option<Drafts>>;
    let recent = RecentText::new();
    let by = |schedule| Drafts::of_model(ModelId(1), schedule).always(4);
    let (of_union, union) = (RecentText::new(), |recent: &RecentText| {
        let suffix = SuffixDrafter::new(recent);
        DrafterUnion::new(vec![Box::new(PromptLookup::new()), Box::new(suffix)])
    });
    let rows: [(&str, Make); 9] = [
        ("no drafts", Box::new(|| None)),
        ("always the same tokens", Box::new(|| Some(Drafts::new(Box::new(Fixed)).always(3)))),
        ("lookup", Box::new(|| Some(Drafts::new(Box::new(PromptLookup::new())).always(4)))),
        (
            "suffix",
            Box::new(move || Some(Drafts::new(Box::new(SuffixDrafter::new(&recent))).always(4))),
        ),
        ("a model, sync", Box::new(move || Some(by(Schedule::Synchronous)))),
        ("every token", Box::new(|| Some(Drafts::new(Box::new(Every)).always(20)))),
        (
            "lookup and suffix",
            Box::new(move || Some(Drafts::new(Box::new(union(&of_union))).always(6))),
        ),
        (
            "a model's alternatives",
            Box::new(move || Some(by(Schedule::Synchronous).always(8).width(3))),
        ),
        ("a model, async", Box::new(move || Some(by(Schedule::Asynchronous)))),
    ];
    for (name, drafts) in rows {
        let (counts, stats) = transitions(&*drafts);
        let total: f64 = counts.iter().flatten().sum();
        assert_eq!(total, 20_000.0, "{name}");
        let found = chi_square(&counts, &table(0));
        assert!(found < BOUND, "{name}: {found} > {BOUND}");
        // The test tells the target from its draft model, even where a tenth of the text is the draft model's.
        let mixed: Table = std::array::from_fn(|from| {
            std::array::from_fn(|to| 0.9 * table(0)[from][to] + 0.1 * table(3)[from][to])
        });
        let other = chi_square(&counts, &mixed);
        assert!(other > BOUND, "{name}: {other} for another distribution");
        if name != "no drafts" {
            assert!(stats.accepted > 500, "{name}: {stats:?}");
            assert!(stats.accepted < stats.drafted, "{name}: {stats:?}");
        }
    }
}
