//! Greedy generation, with and without drafts.

use lapwing_actors::draft::{DraftTree, Drafter, Drafts};
use lapwing_actors::message::{Generate, Task};
use lapwing_actors::sample::{Sampler, SamplingParams};

use crate::oracle::{STOP, VOCAB, next_token};

/// Greedy generation that ends at [`STOP`].
pub fn generate(prompt: &[u32], tokens_max: usize) -> Task {
    Task::Generate(Box::new(Generate {
        sampler: Sampler::new(SamplingParams::greedy(), prompt),
        stop_ids: [STOP].into(),
        tokens_max,
        drafts: None,
    }))
}

/// As [`generate`], with a drafter that knows the next tokens and is wrong at random: the output must be
/// the same.
pub fn generate_drafted(prompt: &[u32], tokens_max: usize, seed: u64) -> Task {
    let Task::Generate(mut generate) = generate(prompt, tokens_max) else { unreachable!() };
    let guess = Box::new(Guess(seed | 1));
    // The control of the length declines most drafts that are wrong so often.
    let drafts = if seed.is_multiple_of(4) {
        Drafts::new(guess)
    } else {
        Drafts::new(guess).always(usize::MAX)
    };
    generate.drafts = Some(Box::new(drafts));
    Task::Generate(generate)
}

#[derive(Debug)]
struct Guess(u64);

impl Drafter for Guess {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        let mut below = |limit: u64| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (self.0 >> 33) % limit
        };
        let mut ids = ids.to_vec();
        let known = ids.len();
        for _ in 0..below(5).min(most as u64) {
            let right = next_token(&ids);
            // Now and then another token, or one outside the vocabulary, which ends the draft.
            ids.push(if below(4) > 0 { right } else { below(VOCAB as u64 + 3) as u32 });
        }
        ids.split_off(known)
    }

    /// Sometimes up to three drafts, each after some tokens of the one before.
    fn draft_tree(&mut self, ids: &[u32], most: usize) -> DraftTree {
        let mut path = self.draft(ids, most);
        let mut tree = DraftTree::from(path.clone());
        for _ in 0..self.0 % 3 {
            path.truncate((self.0 >> 40) as usize % (path.len() + 1));
            let longer = [ids, &path].concat();
            path.extend(self.draft(&longer, most - path.len()));
            tree.add(&path);
        }
        tree
    }
}
