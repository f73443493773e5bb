//! A constraint that a client names is obeyed or refused in every interface, and what only narrows it is named.

use lapwing::Engine;
use lapwing::serve::Server;
use serde_json::{Value, json};

use super::{Running, local, start, tiny};
use crate::with_template::with_template;

/// A server of the tiny model that knows of functions.
async fn serving() -> (Running, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools and not messages %}<tool_call>{% endif -%}";
    let model = with_template(&tiny("llama.gguf"), template, folder.path());
    let engine = Engine::builder().model(model).threads(1);
    (start(Server::builder().model("tiny", engine).config(local())).await, folder)
}

/// The body of a request that every interface of conversations takes, with further fields.
fn asked(more: &Value) -> Value {
    let mut body = json!({
        "model": "tiny", "messages": [{ "role": "user", "content": "ab" }], "input": "ab",
        "max_tokens": 120, "max_output_tokens": 120, "temperature": 1, "seed": 3, "stream": false,
        "options": { "num_predict": 120, "seed": 3, "temperature": 1 },
    });
    let more = more.as_object().expect("an object").clone();
    body.as_object_mut().expect("an object").extend(more);
    body
}

/// Where the interfaces have the text of an answer.
const TEXTS: &str = "/choices/0/message/content /choices/0/text /content/0/text /output/0/content/0/text /message/content /response";

/// The text of an answer of any interface.
fn text_of(answer: &Value) -> &str {
    TEXTS.split(' ').find_map(|pointer| answer.pointer(pointer)?.as_str()).unwrap_or_default()
}

/// The body of a request of the interface at `path`.
fn asked_at(path: &str, more: &Value) -> Value {
    let mut body = asked(more);
    if [COMPLETIONS, "/api/generate"].contains(&path) {
        body["prompt"] = "ab".into();
    }
    body
}

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

#[tokio::test]
async fn every_name_of_a_constraint_has_its_effect() {
    let (running, _folder) = serving().await;
    let schema =
        json!({ "properties": { "a": { "enum": [7] } }, "required": ["a"], "type": "object" });
    let format = json!({ "type": "json_schema", "name": "x", "schema": schema });
    let nested = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema, "strict": true } });
    let tags = json!({ "type": "structural_tag", "format": { "type": "sequence", "elements": [
        { "type": "const_string", "value": "{\"a\"" }, { "type": "regex", "pattern": ":7}" },
    ] } });
    let regex = r#"\{"a": ?7\}"#;
    let grammar = r#"root ::= "{\"a\":" [7] "}""#;
    let rows: [(&str, Value); 24] = [
        (CHAT, json!({ "response_format": nested })),
        (CHAT, json!({ "response_format": format })),
        (CHAT, json!({ "response_format": { "type": "json_object", "schema": schema } })),
        (CHAT, json!({ "response_format": { "type": "regex", "pattern": regex } })),
        (CHAT, json!({ "response_format": { "type": "grammar", "grammar": grammar } })),
        (CHAT, json!({ "response_format": tags })),
        (CHAT, json!({ "json_schema": schema })),
        (CHAT, json!({ "grammar": grammar })),
        (CHAT, json!({ "guided_json": schema.to_string() })),
        (CHAT, json!({ "guided_regex": regex })),
        (CHAT, json!({ "guided_choice": ["{\"a\":7}"] })),
        (CHAT, json!({ "guided_grammar": grammar })),
        (CHAT, json!({ "structured_outputs": { "json": schema } })),
        (CHAT, json!({ "structured_outputs": { "json": schema, "whitespace_pattern": "[ ]?" } })),
        (CHAT, json!({ "structured_outputs": { "json": schema, "disable_any_whitespace": true } })),
        (CHAT, json!({ "structured_outputs": { "regex": regex } })),
        (CHAT, json!({ "structured_outputs": { "choice": ["{\"a\":7}"] } })),
        (COMPLETIONS, json!({ "structured_outputs": { "grammar": grammar } })),
        (COMPLETIONS, json!({ "structured_outputs": { "structural_tag": tags.to_string() } })),
        (
            MESSAGES,
            json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } }),
        ),
        (MESSAGES, json!({ "output_format": { "type": "json_schema", "schema": schema } })),
        (RESPONSES, json!({ "text": { "format": format } })),
        ("/api/chat", json!({ "format": schema })),
        ("/api/generate", json!({ "format": schema })),
    ];
    for (path, more) in rows {
        let answer = running.client.post(path, &asked_at(path, &more)).await;
        assert_eq!(answer.status, 200, "{path} {more}: {answer:?}");
        let body = answer.json();
        let value: Value = serde_json::from_str(text_of(&body)).unwrap_or_default();
        assert_eq!(value, json!({ "a": 7 }), "{path} {more}: {body}");
        assert!(!answer.headers.contains("x-ignored-fields: structured"), "{answer:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn constraints_that_are_not_known_or_contradict_each_other_are_refused() {
    let (running, _folder) = serving().await;
    let schema = json!({ "type": "null" });
    let call = json!([{ "type": "function", "function": { "name": "f" } }]);
    let rows: [(&str, Value, &str); 15] = [
        (CHAT, json!({ "structured_outputs": { "xml": 1 } }), "structured_outputs.xml"),
        (
            CHAT,
            json!({ "structured_outputs": { "regex": "a", "json": schema } }),
            "exclude each other",
        ),
        (CHAT, json!({ "guided_regex": "a", "regex": "b" }), "exclude each other"),
        (
            CHAT,
            json!({ "regex": "a", "response_format": { "type": "json_object" } }),
            "exclude each other",
        ),
        (
            CHAT,
            json!({ "regex": "a", "tools": call, "tool_choice": "required" }),
            "exclude each other",
        ),
        (CHAT, json!({ "response_format": { "type": "xml" } }), "'xml'"),
        (CHAT, json!({ "grammar": "root ::= \"a\"", "grammar_lazy": true }), "grammar_lazy"),
        (CHAT, json!({ "tools": [{ "type": "custom", "custom": { "name": "x" } }] }), "'custom'"),
        (
            CHAT,
            json!({ "tools": call, "tool_choice": { "type": "custom", "name": "f" } }),
            "tool_choice",
        ),
        (RESPONSES, json!({ "tools": [{ "type": "web_search" }] }), "'web_search'"),
        (RESPONSES, json!({ "text": { "format": { "type": "xml" } } }), "text.format"),
        (
            MESSAGES,
            json!({ "tools": [{ "type": "bash_20250124", "name": "bash" }] }),
            "'bash_20250124'",
        ),
        (MESSAGES, json!({ "output_format": { "type": "xml" } }), "output_format"),
        (
            CHAT,
            json!({ "response_format": { "type": "structural_tag", "format": { "type": "xml" } } }),
            "'xml'",
        ),
        ("/api/chat", json!({ "format": "xml" }), "xml"),
    ];
    for (path, more, part) in rows {
        let answer = running.client.post(path, &asked_at(path, &more)).await;
        assert_eq!(answer.status, 400, "{path} {more}: {answer:?}");
        assert!(answer.body.contains(part), "{path} {more}: {}", answer.body);
    }
    running.stop().await;
}

#[tokio::test]
async fn functions_have_definitions_of_their_own() {
    let (running, _folder) = serving().await;
    let client = &running.client;
    let parameters = |value: i32| {
        json!({
            "type": "object", "properties": { "p": { "$ref": "#/$defs/P" } }, "required": ["p"],
            "$defs": { "P": { "type": "object", "properties": { "x": { "enum": [value] } }, "required": ["x"] } },
        })
    };
    let names = [("f", 1), ("g", 2)];
    let function = |(name, value)| json!({ "name": name, "parameters": parameters(value) });
    let nested = |named| json!({ "type": "function", "function": function(named) });
    let tools: Vec<Value> = names.into_iter().map(nested).collect();
    let flat: Vec<Value> = names.into_iter().map(function).collect();
    let anthropic = |(name, value)| json!({ "name": name, "input_schema": parameters(value) });
    let anthropic: Vec<Value> = names.into_iter().map(anthropic).collect();
    for (name, value) in names {
        let want = json!({ "p": { "x": value } });
        let choice = json!({ "type": "function", "function": { "name": name } });
        let body = asked(&json!({ "tools": tools, "tool_choice": choice }));
        let answer = client.post(CHAT, &body).await.json();
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap_or_default())
            .unwrap_or_default();
        assert_eq!((&call["name"], &arguments), (&json!(name), &want), "{answer}");

        let allowed = json!({ "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": name }] });
        let body = asked(&json!({ "tools": flat, "tool_choice": allowed }));
        let answer = client.post(RESPONSES, &body).await.json();
        assert_eq!(answer["output"][0]["name"], name, "{answer}");

        let body =
            asked(&json!({ "tools": anthropic, "tool_choice": { "type": "tool", "name": name } }));
        let answer = client.post(MESSAGES, &body).await.json();
        assert_eq!(answer["content"][0]["input"], want, "{answer}");
    }
    // Without parameters, a function has none.
    let bare = json!([{ "type": "function", "function": { "name": "f" } }]);
    let answer =
        client.post(CHAT, &asked(&json!({ "tools": bare, "tool_choice": "required" }))).await;
    let arguments =
        &answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(
        arguments.as_str().map(str::trim).map(|text| text.replace([' ', '\n'], "")),
        Some("{}".into())
    );
    // With a format, the answer is a message of it or a call.
    let format = json!({ "type": "json_schema", "json_schema": { "schema": { "enum": ["yes"] } } });
    for seed in 0..6 {
        let body = asked(&json!({ "tools": tools, "response_format": format, "seed": seed }));
        let message = client.post(CHAT, &body).await.json()["choices"][0]["message"].clone();
        let is_call = message["tool_calls"][0]["function"]["name"].is_string();
        assert!(is_call || message["content"] == "\"yes\"", "{message}");
    }
    running.stop().await;
}

#[tokio::test]
async fn keywords_without_effect_are_named() {
    let (running, _folder) = serving().await;
    let client = &running.client;
    let schema = json!({ "type": "array", "items": { "enum": [1], "format": "x" }, "maxItems": 2, "uniqueItems": true });
    let names = "schema/items/format, schema/uniqueitems";
    let rows: [(&str, Value); 5] = [
        (
            CHAT,
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": schema } } }),
        ),
        (COMPLETIONS, json!({ "guided_json": schema })),
        (RESPONSES, json!({ "text": { "format": { "type": "json_schema", "schema": schema } } })),
        (MESSAGES, json!({ "output_format": { "type": "json_schema", "schema": schema } })),
        ("/api/chat", json!({ "format": schema })),
    ];
    for (path, more) in rows {
        let answer = client.post(path, &asked_at(path, &more)).await;
        assert!(answer.headers.contains(names), "{path}: {answer:?}");
    }
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": {
        "properties": { "x": schema }, "required": ["x"],
    } } }]);
    let answer =
        client.post(CHAT, &asked(&json!({ "tools": tools, "tool_choice": "required" }))).await;
    assert!(answer.headers.contains("tools.f.parameters/properties/x/uniqueitems"), "{answer:?}");
    let verbose = client.post(RESPONSES, &asked(&json!({ "text": { "verbosity": "low" } }))).await;
    assert!(verbose.headers.contains("text.verbosity"), "{verbose:?}");
    running.stop().await;
}

#[tokio::test]
async fn numbers_are_read_and_written_as_they_are() {
    let (running, _folder) = serving().await;
    let client = &running.client;
    for (path, field) in [
        (CHAT, "max_tokens"),
        (COMPLETIONS, "max_tokens"),
        (MESSAGES, "max_tokens"),
        (RESPONSES, "max_output_tokens"),
    ] {
        for (number, status) in [(json!(2.0), 200), (json!(2.5), 400)] {
            let answer = client.post(path, &asked_at(path, &json!({ field: number }))).await;
            assert_eq!(answer.status, status, "{path} {number}: {answer:?}");
        }
    }
    for (number, status) in [("2.0", 200), ("1e1", 200), ("2.5", 400)] {
        let body = asked(&json!({}))
            .to_string()
            .replace("\"num_predict\":120", &format!("\"num_predict\":{number}"));
        let answer = super::client::read(client.send("POST", "/api/chat", &body).await).await;
        assert_eq!(answer.status, status, "{number}: {answer:?}");
    }
    // Integers of any length are the client's as the model wrote them.
    let number = "12345678901234567890123";
    let call = format!(
        "<tool_call>\n{{\"name\": \"f\", \"arguments\": {{\"x\":\n {number}}}}}\n</tool_call>"
    );
    let forced = json!({ "guided_choice": [call], "tools": [{ "type": "function", "function": { "name": "f" } }] });
    let answer = client.post(CHAT, &asked(&forced)).await;
    assert!(answer.body.contains(&format!("{number}}}\"")), "{answer:?}");
    let body = json!({ "guided_choice": [call], "tools": [{ "name": "f", "input_schema": {} }] });
    let answer = client.post(MESSAGES, &asked(&body)).await;
    assert!(answer.body.contains(&format!("\"input\":{{\"x\":{number}}}")), "{answer:?}");
    running.stop().await;
}

#[tokio::test]
async fn chunks_before_the_last_have_null_for_the_requested_usage() {
    let (running, _folder) = serving().await;
    for path in [CHAT, COMPLETIONS] {
        let options = json!({ "include_usage": true });
        let more = json!({ "stream": true, "max_tokens": 3, "stream_options": options });
        let body = asked_at(path, &more);
        let events = running.client.post(path, &body).await.events();
        let (last, others) = events.split_last().expect("events");
        assert!(last["usage"]["total_tokens"].is_u64() && !others.is_empty(), "{last}");
        assert!(others.iter().all(|event| event.get("usage") == Some(&Value::Null)), "{others:?}");
        let body = asked_at(path, &json!({ "stream": true, "max_tokens": 3 }));
        let events = running.client.post(path, &body).await.events();
        assert!(events.iter().all(|event| event.get("usage").is_none()), "{events:?}");
    }
    running.stop().await;
}
