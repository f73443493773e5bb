//! Drafts change no token, greedy or sampled, whatever they propose and on whatever devices.

use lapwing::devices::DeviceSpec;
use lapwing::draft::{DraftChoice, DraftTree, Drafter, Schedule};
use lapwing::{Engine, Prompt, Requant, Request};

use crate::a_strategy_changes_a_token::GPU;
use crate::cases::cases;
use crate::support::{SMOLLM2, builder, collect_ids, ids, needs, reference};

/// Generated tokens.
fn tokens() -> usize {
    cases(24, 64)
}

/// Proposes tokens of the text in a scrambled order: some are right, most are wrong.
#[derive(Debug)]
pub(crate) struct Scrambled(pub(crate) u64);

impl Drafter for Scrambled {
    fn draft(&mut self, ids: &[u32], most: usize) -> Vec<u32> {
        let mut below = |limit: usize| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (self.0 >> 33) as usize % limit
        };
        (0..below(most.min(8) + 1)).map(|_| ids[ids.len() - 1 - below(ids.len().min(4))]).collect()
    }

    fn draft_tree(&mut self, ids: &[u32], most: usize) -> DraftTree {
        let mut tree = DraftTree::default();
        (0..3).for_each(|_| tree.add(&self.draft(ids, most)));
        tree
    }
}

fn prompts() -> Vec<Vec<u32>> {
    let reference = reference("greedy/smollm2.json");
    let prompts = reference["prompts"].as_array().expect("prompts");
    prompts.iter().take(cases(3, 10)).map(|p| ids(&p["prompt_ids"])).collect()
}

async fn answers(engine: &Engine, prompts: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut streams = Vec::new();
    for (number, ids) in prompts.iter().enumerate() {
        let request = Request::new(Prompt::Ids(ids.clone())).max_tokens(tokens()).ignore_eos();
        let request = match number % 2 {
            0 => request.greedy(),
            _ => request.seed(number as u64).temperature(0.9).repetition_penalty(1.1),
        };
        streams.push(engine.generate(request).await.expect("a stream"));
    }
    let mut all = Vec::new();
    for stream in streams {
        all.push(collect_ids(stream).await);
    }
    all
}

#[tokio::test]
async fn answers_with_any_drafter_are_those_without() {
    needs!(SMOLLM2);
    let prompts = prompts();
    let both = format!("cpu+{GPU}");
    // Lookup and suffix run together here, and each alone with a tiny model (`a_draft_on_other_devices`). On two devices
    // the drafters of which the others are parts continue some of the prompts.
    let some = &prompts[..prompts.len().min(4)];
    let sets = [("cpu", cases(4, 5), &prompts[..]), (&both, 3, some)];
    for (devices, count, prompts) in sets.into_iter().take(cases(1, 2)) {
        let engine = |draft: DraftChoice| {
            let devices = DeviceSpec::list(devices).expect("devices");
            builder(SMOLLM2).devices(devices).draft(draft).build()
        };
        let plain = engine(DraftChoice::none()).await.expect("an engine");
        let wanted = answers(&plain, prompts).await;
        let own = DraftChoice::own(Requant::Q4_0);
        let drafts = [
            DraftChoice::lookup_and_suffix(),
            DraftChoice::made_by("scrambled", || Scrambled(7)),
            own.clone().schedule(Schedule::Asynchronous),
            own.clone().width(3),
            own,
        ];
        for draft in drafts.into_iter().take(count) {
            let name = draft.name().to_owned();
            let found = answers(&engine(draft).await.expect("an engine"), prompts).await;
            assert_eq!(found, wanted, "{name} on {devices}");
        }
    }
}

#[tokio::test]
async fn repeating_text_is_drafted_and_counted() {
    needs!(SMOLLM2);
    let engine = builder(SMOLLM2).draft(DraftChoice::lookup()).build().await.expect("an engine");
    let request = Request::text("one two three four five six ".repeat(12)).greedy().max_tokens(48);
    let mut stream = engine.generate(request).await.expect("a stream");
    let mut tokens = 0;
    while let Some(token) = stream.next().await {
        token.expect("a token");
        tokens += 1;
    }
    let drafts = stream.summary().and_then(|s| s.drafts.clone()).expect("counts of drafts");
    assert!(drafts.drafted > 0, "the first draft is verified: {drafts:?}");
    assert_eq!((drafts.tree_steps, drafts.branch_steps), (0, 0), "{drafts:?}");
    assert_eq!(1 + drafts.steps + drafts.accepted, tokens, "{drafts:?}");
    let sums = drafts.positions.iter().fold((0, 0), |(v, a), (more, right)| (v + more, a + right));
    assert_eq!(sums, (drafts.drafted, drafts.accepted), "{drafts:?}");
}
