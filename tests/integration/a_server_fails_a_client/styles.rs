//! Calls that a model has to make, in the styles of published models. Grammars make tiny models write them, whether the marks of a
//! style are text or control tokens of the vocabulary.

use serde_json::{Value, json};

use super::chatting;
use super::meaning::post;

/// Texts that tell a style, and those of its marks that may be control tokens.
const STYLES: [(&str, &[&str]); 19] = [
    ("<tool_call>", &["<tool_call>", "</tool_call>"]),
    ("<tool_call> <function=", &["<tool_call>", "</tool_call>"]),
    (
        "<tool_call> <arg_key>",
        &["<tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
    ),
    ("<seed:tool_call>", &["<seed:tool_call>", "</seed:tool_call>"]),
    ("[TOOL_CALLS] [ARGS]", &["[TOOL_CALLS]", "[ARGS]"]),
    ("[TOOL_CALLS]", &["[TOOL_CALLS]"]),
    ("<|tool_call|>", &["<|tool_call|>"]),
    ("<|tool_call>call:", &["<|tool_call>", "<tool_call|>", "<|\"|>"]),
    ("<|tool_call_start|>", &["<|tool_call_start|>", "<|tool_call_end|>"]),
    ("<|START_ACTION|>", &["<|START_ACTION|>", "<|END_ACTION|>"]),
    ("<|tools_prefix|>", &["<|tools_prefix|>", "<|tools_suffix|>"]),
    (
        "<|tool_calls_section_begin|>",
        &[
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
        ],
    ),
    (
        "<|channel|> <|message|>",
        &["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|constrain|>"],
    ),
    ("<|observation|>", &[]),
    ("<|open|> <|close|> <|end_of_msg|>", &["<|open|>", "<|close|>", "<|sep|>"]),
    ("]<]minimax[>[ <tool_call>", &["]<]minimax[>["]),
    (
        "<|tool_call:begin|> <|tool_call:args|>",
        &[
            "<|begin|>",
            "<|content|>",
            "<|tool_calls|>",
            "<|tool_call:begin|>",
            "<|tool_call:name|>",
            "<|tool_call:args|>",
            "<|tool_call:end|>",
        ],
    ),
    (">>>${recipient} >>>all", &[]),
    ("<|role_sep|> <|message_sep|>", &["<|role_sep|>", "<|message_sep|>"]),
];

fn tools(is_strict: bool) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "enum": ["Bern", "Uri"] }, "days": { "type": "integer", "minimum": 1, "maximum": 9 },
            "units": { "type": "array", "items": { "enum": ["C"] }, "minItems": 1, "maxItems": 1 },
        },
        "required": ["city", "units"],
        "additionalProperties": false,
    });
    json!([
        { "type": "function", "function": { "name": "weather", "parameters": schema, "strict": is_strict } },
        { "type": "function", "function": { "name": "climate", "parameters": schema, "strict": is_strict } },
    ])
}

/// A template that tells a style.
fn template(signs: &str) -> String {
    format!(
        "{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{{{{ tools|tojson }}}}{{# {signs} -#}}"
    )
}

#[tokio::test]
async fn a_required_call_is_valid_in_every_style() {
    for (number, (signs, marks)) in STYLES.into_iter().enumerate() {
        // Both for a few styles: each server prepares its vocabulary.
        let variants = if number < 3 { &[&[][..], marks][..] } else { &[marks] };
        for control in variants.iter().copied() {
            let (running, _folder) = chatting(&template(signs), control).await;
            let choice = json!({ "type": "function", "function": { "name": "climate" } });
            for (seed, choice) in [(1, choice), (2, json!("required"))] {
                let body = json!({
                    "messages": [{ "role": "user", "content": "hi" }], "tools": tools(false), "tool_choice": choice,
                    "max_tokens": 400, "temperature": 1, "seed": seed,
                });
                let answer = post(&running, "/v1/chat/completions", body).await.json();
                let message = &answer["choices"][0]["message"];
                let calls =
                    message["tool_calls"].as_array().unwrap_or_else(|| panic!("{signs}: {answer}"));
                assert_eq!(
                    (calls.len(), &message["content"]),
                    (1, &Value::Null),
                    "{signs}, {control:?}: {answer}"
                );
                let name = calls[0]["function"]["name"].as_str().expect("a name");
                let is_known = name == "climate" || seed == 2 && name == "weather";
                let arguments = calls[0]["function"]["arguments"].as_str().expect("arguments");
                let arguments: Value = serde_json::from_str(arguments).expect("JSON");
                let is_city = ["Bern", "Uri"].iter().any(|city| arguments["city"] == *city);
                let days = arguments.get("days");
                let is_days = days.is_none_or(|days| (1..=9).any(|day| *days == day));
                let is_valid = is_city && is_days && arguments["units"] == json!(["C"]);
                assert!(is_known && is_valid, "{signs}, {control:?}: {answer}");
            }
            running.stop().await;
        }
    }
}

#[tokio::test]
async fn an_answer_with_strict_functions_may_be_text() {
    for (signs, marks) in [1, 4, 12, 14, 16, 17, 18].map(|number| STYLES[number]) {
        for control in [&[][..], marks] {
            let (running, _folder) = chatting(&template(signs), control).await;
            let body = json!({
                "messages": [{ "role": "user", "content": "hi" }], "tools": tools(true), "max_tokens": 40, "temperature": 1,
                "seed": 5,
            });
            let answer = post(&running, "/v1/chat/completions", body).await.json();
            let message = &answer["choices"][0]["message"];
            let is_call = message["tool_calls"].is_array();
            assert!(is_call || message["content"].is_string(), "{signs}, {control:?}: {answer}");
            running.stop().await;
        }
    }
}

#[tokio::test]
async fn a_message_of_a_form_has_nothing_around_it() {
    let schema = json!({
        "type": "object", "properties": { "city": { "enum": ["Bern", "Uri"] } }, "required": ["city"], "additionalProperties": false,
    });
    for (signs, marks) in [12, 14, 16, 17].map(|number| STYLES[number]) {
        let (running, _folder) = chatting(&template(signs), marks).await;
        for seed in 0..4 {
            let body = json!({
                "messages": [{ "role": "user", "content": "hi" }], "max_tokens": 200, "temperature": 1, "seed": seed,
                "response_format": { "type": "json_schema", "json_schema": { "name": "city", "schema": schema } },
            });
            let answer = post(&running, "/v1/chat/completions", body).await.json();
            let content = answer["choices"][0]["message"]["content"].as_str();
            let content = content.unwrap_or_else(|| panic!("{signs}: {answer}"));
            let read: Value =
                serde_json::from_str(content).unwrap_or_else(|_| panic!("{signs}: {answer}"));
            assert!(["Bern", "Uri"].iter().any(|city| read["city"] == *city), "{signs}: {answer}");
        }
        running.stop().await;
    }
}
