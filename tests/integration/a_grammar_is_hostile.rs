//! Wrong grammars are named, and hostile ones end in bounded time.

use lapwing::ErrorKind;
use lapwing::structured::Grammar;
use serde_json::{Value, json};

use crate::an_answer_breaks_its_grammar::{answer, engine, hot};

#[tokio::test]
async fn a_wrong_grammar_is_refused_with_its_reason() {
    let engine = engine().await;
    let rows = [
        (Grammar::regex("a("), "regular expression"),
        (Grammar::regex("(?=a)b"), "look-around"),
        (Grammar::lark("start: nothing"), "nothing"),
        (Grammar::lark("begin: \"a\""), "start"),
        (Grammar::gbnf("root ::= \"a\"\nb"), "line 2, column 2"),
        (Grammar::gbnf("other ::= \"a\""), "no rule 'root'"),
        (Grammar::choice(Vec::<String>::new()), "empty"),
        (Grammar::json_schema(json!({"type": "nonsense"})), "nonsense"),
        (Grammar::json_schema(json!({"items": 3})), "schema/items"),
        (Grammar::json_schema(json!({"not": {}})), "JSON schema"),
        (Grammar::json_schema(json!({"$ref": "#/$defs/missing"})), "missing"),
        (Grammar::json_schema(json!({"enum": []})), "JSON schema"),
        (Grammar::json_schema(json!(7)), "JSON schema"),
        (Grammar::json_schema(json!(false)), "JSON schema"),
    ];
    for (grammar, says) in rows {
        let error = engine.generate(hot(grammar.clone(), 0)).await.expect_err("a wrong grammar");
        assert_eq!(error.kind(), ErrorKind::Request, "{grammar:?}: {error}");
        assert!(error.to_string().contains(says), "{grammar:?}: {error}");
        assert!(!error.to_string().contains("backtrace"), "{error}");
    }
    let both = hot(Grammar::json_object(), 0).ignore_eos();
    let error = engine.generate(both).await.expect_err("a contradiction");
    assert!(error.to_string().contains("cannot ignore end tokens"), "{error}");
}

/// A schema of references, each of which leads to the next one.
fn refs(count: usize) -> Value {
    let name = |at: usize| format!("d{at}");
    let link =
        |at: usize| json!({"anyOf": [{"$ref": format!("#/$defs/d{}", at + 1)}, {"type": "null"}]});
    let mut defs: serde_json::Map<_, _> = (0..count).map(|at| (name(at), link(at))).collect();
    defs.insert(name(count), json!({"type": "boolean"}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

/// A schema each of whose levels holds the next one twice.
fn meeting(count: usize) -> Value {
    let next = |at: usize| json!({"$ref": format!("#/$defs/d{}", at + 1)});
    let level = |at: usize| {
        (format!("d{at}"), json!({"allOf": [next(at), next(at)], "properties": {"a": true}}))
    };
    let mut defs: serde_json::Map<_, _> = (0..count).map(level).collect();
    defs.insert(format!("d{count}"), json!({"properties": {"b": true}}));
    json!({"$ref": "#/$defs/d0", "$defs": defs})
}

#[tokio::test]
async fn hostile_grammars_end_and_the_engine_goes_on() {
    let engine = engine().await;
    let rules = |count: usize| -> String {
        let chain = (0..count).map(|at| format!("r{at}: r{} \"a\" | \"b\"\n", at + 1));
        format!("start: r0\n{}r{count}: \"c\"\n", chain.collect::<String>())
    };
    let gbnf = |count: usize| -> String {
        let chain = (0..count).map(|at| format!("r{at} ::= r{} r{}\n", at + 1, at + 1));
        format!("root ::= r0\n{}r{count} ::= \"c\"\n", chain.collect::<String>())
    };
    let mut deep = json!({"type": "string", "maxLength": 3});
    for _ in 0..90 {
        deep = json!({"type": "array", "items": deep});
    }
    let mut too_deep = deep.clone();
    for _ in 0..200 {
        too_deep = json!({"type": "array", "items": too_deep});
    }
    let rows = [
        ("exponential automaton", Grammar::regex("(?:a|b)*a(?:a|b){40}c")),
        ("repeated repeats", Grammar::regex("(?:(?:(?:a{1000}){1000}){1000}){1000}")),
        ("nested stars", Grammar::regex("(?:(?:(?:a*)*b*)*c*)*")),
        ("a long class list", Grammar::regex("[a-z]{1,50}".repeat(2000))),
        ("deep groups", Grammar::regex(format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000)))),
        ("deep brackets", Grammar::lark(format!("start: {}", "(".repeat(900_000)))),
        (
            "deep brackets that close",
            Grammar::lark(format!("start: {}\"a\"{}", "(".repeat(900), ")".repeat(900))),
        ),
        ("a long chain of rules", Grammar::lark(rules(20_000))),
        ("doubling rules", Grammar::gbnf(gbnf(60))),
        ("left recursion", Grammar::lark("start: start start | \"a\"")),
        ("endless recursion", Grammar::lark("start: start")),
        ("many repetitions", Grammar::gbnf("root ::= ((\"a\" | root){1,9999}){1,9999}")),
        ("many operators", Grammar::gbnf(format!("root ::= \"a\"{}", "*".repeat(500_000)))),
        ("a huge grammar", Grammar::lark("start: \"a\"\n".repeat(200_000))),
        ("a deep schema", Grammar::json_schema(deep)),
        ("too deep a schema", Grammar::json_schema(too_deep)),
        ("a schema of itself", Grammar::json_schema(json!({"$ref": "#"}))),
        ("a tree", Grammar::json_schema(json!({"type": "array", "items": {"$ref": "#"}}))),
        ("a long chain of references", Grammar::json_schema(refs(3000))),
        ("a long text", Grammar::json_schema(json!({"type": "string", "minLength": 1_000_000}))),
        ("many items", Grammar::json_schema(json!({"type": "array", "minItems": 10_000_000}))),
        ("references that meet again", Grammar::json_schema(meeting(200))),
        (
            "a hostile pattern",
            Grammar::json_schema(json!({"type": "string", "pattern": "^(a|b|ab)*(a|b){60}$"})),
        ),
    ];
    for (name, grammar) in rows {
        // Either is right, as long as it ends: the work of a grammar is limited.
        let outcome = match engine.generate(hot(grammar, 1).max_tokens(8)).await {
            Ok(stream) => stream.into_text().await,
            Err(error) => Err(error),
        };
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Request, "{name}: {error}");
            assert!(error.to_string().len() < 1000, "{name}: {error}");
        }
    }
    let (_, text, _) = answer(&engine, hot(Grammar::choice(["fine"]), 1)).await;
    assert_eq!(text, "fine");
}
