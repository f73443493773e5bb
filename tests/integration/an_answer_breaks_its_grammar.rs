//! Answers that must follow a grammar, of random models at temperature 1.

use std::path::{Path, PathBuf};

use lapwing::draft::{DraftChoice, Schedule};
use lapwing::structured::{CallForm, Function, Grammar, Tag};
use lapwing::traces::Scope;
use lapwing::{EndReason, Engine, EngineBuilder, Requant, Request, TokenStream};
use serde_json::{Value, json};

use crate::a_draft_changes_a_token::Scrambled;
use crate::cases::cases;

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf")
}

fn builder() -> EngineBuilder {
    Engine::builder().model(tiny()).threads(1)
}

pub(crate) async fn engine() -> Engine {
    builder().build().await.expect("an engine")
}

pub(crate) fn hot(grammar: Grammar, seed: u64) -> Request {
    Request::text("ab").grammar(grammar).temperature(1.0).top_k(0).min_p(0.0).top_p(1.0).seed(seed)
}

/// Ids, text and reason of an answer.
pub(crate) async fn drain(mut stream: TokenStream) -> (Vec<u32>, String, EndReason) {
    let (mut ids, mut text) = (Vec::new(), String::new());
    while let Some(token) = stream.next().await {
        let token = token.expect("a token");
        ids.push(token.id);
        text.push_str(&token.text);
    }
    (ids, text, stream.summary().expect("an end").reason.clone())
}

pub(crate) async fn answer(engine: &Engine, request: Request) -> (Vec<u32>, String, EndReason) {
    drain(engine.generate(request).await.expect("a stream")).await
}

/// The schemas, without white space between the parts of an answer: a random model would fill the context with it.
pub(crate) fn schemas() -> Vec<Value> {
    let rows: Vec<Value> =
        serde_json::from_str(include_str!("../support/schemas.json")).expect("JSON");
    let mut schemas: Vec<Value> = rows.into_iter().map(|row| row["schema"].clone()).collect();
    for schema in &mut schemas {
        schema["x-guidance"] = json!({"whitespace_flexible": false});
    }
    schemas
}

#[tokio::test]
async fn every_answer_follows_its_grammar_of_any_kind() {
    const LIST: &str = "root ::= \"[\" (item (\",\" item){0,2})? \"]\"\nitem ::= root | [a-c]\n";
    const LARK: &str = "start: \"(\" inner \")\"\ninner: start | /[0-9]{1,3}/\n";
    type Holds = fn(&str) -> bool;
    let nested = |text: &str| {
        let quoted: String = text
            .chars()
            .map(|c| if c.is_alphabetic() { "0".into() } else { c.to_string() })
            .collect();
        serde_json::from_str::<Vec<Value>>(&quoted).is_ok()
    };
    let rows: [(Grammar, Holds); 8] = [
        (Grammar::regex("^[a-f]{3}-[0-9]{2}$"), |text| {
            text.len() == 6 && text.as_bytes()[3] == b'-'
        }),
        (Grammar::regex("é{2}|日本"), |text| ["éé", "日本"].contains(&text)),
        (Grammar::choice(["yes", "no", "no!", "a/b \"c\""]), |text| {
            ["yes", "no", "no!", "a/b \"c\""].contains(&text)
        }),
        (Grammar::regex(" th[a-z]{1,4}"), |text| text.starts_with(" th")),
        (Grammar::gbnf("root ::= \"a\"+ [^a\\n] \"\\x41\"{2}"), |text| {
            text.starts_with('a') && text.ends_with("AA")
        }),
        (Grammar::gbnf(LIST), nested),
        (Grammar::lark(LARK), |text| text.starts_with('(') && text.ends_with(')')),
        (Grammar::json_object(), |text| text.starts_with('{')),
    ];
    let engine = engine().await;
    for (grammar, holds) in rows {
        let mut complete = 0;
        for seed in 0..cases(6, 40) {
            let (_, text, reason) = answer(&engine, hot(grammar.clone(), seed as u64)).await;
            complete += usize::from(reason == EndReason::EndToken);
            assert!(reason == EndReason::Length || holds(&text), "{text:?} for {grammar:?}");
            assert!(!text.contains('\u{FFFD}') || reason == EndReason::Length, "{text:?}");
        }
        let is_bounded = grammar != Grammar::json_object();
        assert!(complete > 0 || !is_bounded, "no answer to {grammar:?} ended");
    }
}

#[tokio::test]
async fn parts_of_a_text_follow_grammars_of_their_own() {
    let engine = engine().await;
    let digits = |count: usize| Grammar::regex(format!("[0-9]{{{count}}}"));
    let row = [Grammar::choice(["<"]), digits(2), Grammar::choice([">"])];
    let either = Grammar::one_of([
        Grammar::sequence(row),
        Grammar::json_schema(json!({ "enum": [1, [2]] })),
    ]);
    let function = |name: &str, value: i32| Function {
        name: name.to_owned(),
        parameters: Some(
            json!({ "properties": { "x": { "$ref": "#/$defs/x" } }, "required": ["x"], "$defs": { "x": { "const": value } } }),
        ),
    };
    let functions =
        vec![function("f", 1), function("g", 2), Function { name: "h".into(), parameters: None }];
    let calls = Grammar::calls(CallForm { functions, arguments: "arguments".to_owned() });
    let called = [
        json!({ "name": "f", "arguments": { "x": 1 } }),
        json!({ "name": "g", "arguments": { "x": 2 } }),
        json!({ "name": "h", "arguments": {} }),
    ];
    let tag = Tag {
        trigger: "e".to_owned(),
        begin: "ef".to_owned(),
        inside: digits(2),
        end: ";".to_owned(),
    };
    let tagged = Grammar::tagged([tag]);
    // A random model would rarely write the trigger.
    let tokenizer = engine.tokenizer();
    let ids = (0..tokenizer.vocab_size() as u32)
        .filter(|id| tokenizer.token_bytes(*id).is_some_and(|bytes| *bytes == *b"e"));
    let triggers: Vec<(u32, f32)> = ids.map(|id| (id, 4.0)).collect();
    let mut tags = 0;
    for seed in 0..cases(12, 60) as u64 {
        let (_, text, _) = answer(&engine, hot(either.clone(), seed)).await;
        let is_row = text.len() == 4 && text.starts_with('<') && text[1..3].parse::<u8>().is_ok();
        assert!(
            is_row || text == "1" || text.replace([' ', '\n', '\r', '\t'], "") == "[2]",
            "{text:?}"
        );
        let (_, text, reason) = answer(&engine, hot(calls.clone(), seed)).await;
        assert_eq!(reason, EndReason::EndToken);
        assert!(called.contains(&serde_json::from_str(&text).expect("JSON")), "{text}");
        let mut request = hot(tagged.clone(), seed).max_tokens(60);
        request.sampling.logit_bias.clone_from(&triggers);
        let (_, text, _) = answer(&engine, request).await;
        let parts: Vec<&str> = text.split('e').collect();
        for (at, part) in parts.iter().enumerate().skip(1) {
            let inside = part.strip_prefix('f').and_then(|rest| rest.split_once(';'));
            let is_tag = inside.is_some_and(|(inside, _)| inside.len() == 2);
            // The last tag may be cut.
            assert!(is_tag || at + 1 == parts.len(), "{part:?} in {text:?}");
            tags += usize::from(is_tag);
        }
    }
    assert!(tags > 0, "no text has a tag");
}

#[tokio::test]
async fn the_most_likely_tokens_follow_the_grammar_too() {
    let engine = engine().await;
    let grammar = Grammar::regex("[x-z]{5}");
    let request = Request::text("ab").greedy().grammar(grammar.clone()).top_logprobs(2);
    let mut stream = engine.generate(request.clone()).await.expect("a stream");
    let mut text = String::new();
    let mut unlikely = false;
    while let Some(token) = stream.next().await {
        let token = token.expect("a token");
        assert_eq!(token.top_logprobs.len(), 2);
        // The log-probabilities are the model's own, so that tokens outside the grammar are among the best.
        unlikely |= token.logprob < token.top_logprobs[0].logprob;
        text.push_str(&token.text);
    }
    assert!(text.len() == 5 && text.bytes().all(|b| (b'x'..=b'z').contains(&b)), "{text}");
    assert!(unlikely);
    let plain = Request::text("ab").greedy().grammar(grammar);
    assert_eq!(answer(&engine, plain).await.1, text);
}

#[tokio::test]
async fn limits_stop_texts_and_seeds_hold_with_a_grammar() {
    let engine = engine().await;
    let word = || hot(Grammar::regex("[a-z]{20}"), 3);
    let (ids, whole, reason) = answer(&engine, word()).await;
    assert_eq!((whole.len(), reason), (20, EndReason::EndToken));
    assert_eq!(answer(&engine, word()).await.0, ids, "the seed repeats it");
    assert_ne!(answer(&engine, word().seed(4)).await.0, ids);
    let (_, cut, reason) = answer(&engine, word().max_tokens(5)).await;
    assert_eq!((cut.as_str(), reason), (&whole[..cut.len()], EndReason::Length));
    let stop = whole[7..9].to_owned();
    let (_, cut, reason) = answer(&engine, word().stop(&stop)).await;
    assert_eq!(
        (cut.as_str(), reason),
        (whole.split(&stop).next().expect("one"), EndReason::StopText(stop))
    );
    // An answer that may end at once goes on for as long as end tokens are forbidden, but not past its grammar.
    for (least, lengths) in [(6, 6..=8), (50, 8..=8)] {
        let request = hot(Grammar::regex("[xyz]{0,8}"), 1).min_tokens(least);
        let (_, text, reason) = answer(&engine, request).await;
        assert!(lengths.contains(&text.len()), "{text} with at least {least} tokens");
        assert_eq!(reason, EndReason::EndToken);
    }
    let empty = answer(&engine, hot(Grammar::choice([""]), 1)).await;
    assert_eq!((empty.1.as_str(), empty.2), ("", EndReason::EndToken));
}

#[tokio::test]
async fn requests_with_several_grammars_and_none_run_together() {
    let engine = engine().await;
    let requests: Vec<Request> = (0..24)
        .map(|number| match number % 3 {
            0 => hot(Grammar::json_schema(schemas()[number % 25].clone()), number as u64),
            1 => hot(Grammar::choice(["left", "right"]), number as u64),
            _ => Request::text("ab").seed(number as u64).max_tokens(20),
        })
        .collect();
    let mut alone = Vec::new();
    for request in &requests {
        alone.push(answer(&engine, request.clone()).await);
    }
    let streams: Vec<_> = requests.iter().map(|r| engine.generate(r.clone())).collect();
    let mut open = Vec::new();
    for stream in streams {
        open.push(stream.await.expect("a stream"));
    }
    for (stream, alone) in open.into_iter().zip(alone) {
        assert_eq!(drain(stream).await, alone);
    }
}

#[tokio::test]
async fn drafts_change_no_token_of_a_grammar() {
    let schemas = schemas();
    let answers = async |draft: DraftChoice| {
        let engine = builder().draft(draft).build().await.expect("an engine");
        let mut all = Vec::new();
        for (number, schema) in schemas.iter().step_by(2).enumerate() {
            let request = hot(Grammar::json_schema(schema.clone()), number as u64);
            let request = if number % 2 == 0 { request } else { request.greedy() };
            all.push(engine.generate(request.max_tokens(120)).await.expect("a stream"));
        }
        let mut found = Vec::new();
        for stream in all {
            found.push(drain(stream).await);
        }
        found
    };
    let plain = answers(DraftChoice::none()).await;
    let own = DraftChoice::own(Requant::Q8_0);
    let drafts = [
        DraftChoice::lookup(),
        DraftChoice::suffix(),
        DraftChoice::made_by("scrambled", || Scrambled(7)),
        own.clone(),
        own.schedule(Schedule::Asynchronous),
    ];
    for draft in drafts {
        let name = draft.name().to_owned();
        assert_eq!(answers(draft).await, plain, "{name}");
    }
}

#[tokio::test]
async fn masks_are_spans_of_a_recording() {
    let engine = engine().await;
    engine.recorder().set_scope(Scope::All);
    let (ids, ..) = answer(&engine, hot(Grammar::regex("[a-z]{9}"), 1)).await;
    engine.shutdown(lapwing::Shutdown::Drain).await.expect("an end");
    let timeline = lapwing::traces::timeline::Timeline::new(&engine.recorder().recording());
    let lane = timeline.lanes.iter().position(|lane| lane.name == "masks").expect("a lane");
    let masks = timeline.spans.iter().filter(|span| span.lane == lane).count();
    assert_eq!(masks, ids.len(), "one for each token");
}
