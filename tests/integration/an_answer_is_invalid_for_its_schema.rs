//! Answers that must be valid for a JSON schema, of random models at temperature 1.

use lapwing::EndReason;
use lapwing::structured::{CallForm, Function, Grammar};
use serde_json::{Value, json};

use crate::an_answer_breaks_its_grammar::{answer, drain, engine, hot, schemas};
use crate::cases::cases;

fn assert_valid(schema: &Value, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let validator = jsonschema::options().should_validate_formats(true).build(schema);
    let result = validator.expect("a schema").validate(&value).map_err(|error| error.to_string());
    assert_eq!(result, Ok(()), "{text} for {schema}");
}

#[tokio::test]
async fn every_answer_is_valid_for_its_schema() {
    let engine = engine().await;
    for schema in schemas() {
        let streams = (0..cases(4, 20))
            .map(|seed| engine.generate(hot(Grammar::json_schema(schema.clone()), seed as u64)));
        for stream in streams.collect::<Vec<_>>() {
            let (_, text, reason) = drain(stream.await.expect("a stream")).await;
            assert_eq!(reason, EndReason::EndToken, "{text} for {schema}");
            assert_valid(&schema, &text);
        }
    }
}

#[tokio::test]
async fn integers_have_no_more_digits_than_64_bits() {
    let engine = engine().await;
    for integer in [json!({ "type": "integer" }), json!({ "type": "integer", "maximum": 1e22 })] {
        let schema = json!({
            "type": "object", "properties": { "x": integer }, "required": ["x"], "x-guidance": { "whitespace_flexible": false }
        });
        // A part of a grammar is written as text.
        let function = Function { name: "f".to_owned(), parameters: Some(schema.clone()) };
        let form = CallForm { functions: vec![function], arguments: "arguments".to_owned() };
        let digits: Vec<u32> = (0..engine.tokenizer().vocab_size() as u32)
            .filter(|id| engine.tokenizer().token_bytes(*id).is_some_and(|it| *it == *b"9"))
            .collect();
        for grammar in [Grammar::json_schema(schema), Grammar::calls(form)] {
            let mut request = hot(grammar, 1);
            request.sampling.logit_bias = digits.iter().map(|id| (*id, 100.0)).collect();
            let (_, text, reason) = answer(&engine, request).await;
            assert_eq!(reason, EndReason::EndToken, "{text}");
            let value: Value = serde_json::from_str(&text).expect("JSON");
            let value = value.get("arguments").unwrap_or(&value);
            assert!(value["x"].as_i64().is_some_and(|x| x > 100_000_000_000_000_000), "{text}");
        }
    }
}

#[tokio::test]
async fn keywords_without_effect_are_named_with_the_answer() {
    let engine = engine().await;
    let schema =
        json!({ "items": { "enum": [1] }, "type": "array", "maxItems": 2, "uniqueItems": true });
    let stream = engine.generate(hot(Grammar::json_schema(schema), 1)).await.expect("a stream");
    assert_eq!(stream.ignored_keywords(), ["schema/uniqueItems"]);
    drain(stream).await;
    let plain = engine.generate(hot(Grammar::regex("a"), 1)).await.expect("a stream");
    assert!(plain.ignored_keywords().is_empty());
    drain(plain).await;
}
