//! Fields of requests without effect: each is named, or refused if the answer would be of another kind.

use serde_json::{Value, json};

use super::meaning::{asked, post, schema};
use super::{Answer, chatting};

/// A template that lets its caller decide about thoughts.
const DECIDES: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}[assistant]\
                       {% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif -%}";
/// The names in the header `x-ignored-fields`.
fn ignored(answer: &Answer) -> Vec<&str> {
    let header = answer.headers.lines().find_map(|line| line.strip_prefix("x-ignored-fields: "));
    header.map(|names| names.split(", ").collect()).unwrap_or_default()
}

/// Fields added to a request on a path, and the names of those without effect.
type Row = (&'static str, Value, Vec<&'static str>);

/// The smallest request on a path, with these fields.
fn request(path: &str, fields: &Value) -> Value {
    let mut body = match path {
        "/v1/responses" => json!({ "input": "hi", "max_output_tokens": 1 }),
        "/api/generate" => json!({ "prompt": "hi" }),
        "/api/chat" => json!({ "messages": asked() }),
        _ => json!({ "model": "tiny", "max_tokens": 1, "messages": asked() }),
    };
    let members = body.as_object_mut().expect("an object");
    members.extend(fields.as_object().expect("fields").clone());
    if path.starts_with("/api/") {
        if body["options"].is_null() {
            body["options"] = json!({});
        }
        body["options"]["num_predict"] = 1.into();
    }
    body
}

async fn check(rows: Vec<Row>) {
    let (running, _folder) = chatting(DECIDES, &[]).await;
    for (path, fields, mut want) in rows {
        let answer = post(&running, path, request(path, &fields)).await;
        let mut named = ignored(&answer);
        named.sort_unstable();
        want.sort_unstable();
        assert_eq!(named, want, "{path} {fields}");
    }
    running.stop().await;
}

#[tokio::test]
async fn each_field_of_a_chat_has_an_effect_or_is_named() {
    let chat = "/v1/chat/completions";
    let tools =
        json!([{ "type": "function", "function": { "name": "f", "parameters": schema() } }]);
    check(vec![
        (chat, json!({ "reasoning_effort": "none" }), vec![]),
        (chat, json!({ "reasoning_effort": "high", "verbosity": "low" }), vec!["verbosity"]),
        (chat, json!({ "parallel_tool_calls": false }), vec!["parallel_tool_calls"]),
        (chat, json!({ "parallel_tool_calls": false, "tools": tools }), vec![]),
        (chat, json!({ "store": true, "metadata": { "a": "b" } }), vec!["store", "metadata"]),
        (chat, json!({ "store": false, "service_tier": "auto", "metadata": null }), vec![]),
        (chat, json!({ "service_tier": "flex" }), vec!["service_tier"]),
        (chat, json!({ "class": "background", "token_gap_ms": 250.5 }), vec![]),
        (chat, json!({ "class": "interactive", "priority": 3 }), vec![]),
        (chat, json!({ "prediction": { "type": "content", "content": "a" } }), vec!["prediction"]),
        (
            chat,
            json!({ "stream_options": { "include_usage": true, "a": 1 } }),
            vec!["stream_options.a"],
        ),
        (
            chat,
            json!({ "chat_template_kwargs": { "enable_thinking": false, "wibble": 1 } }),
            vec!["chat_template_kwargs.wibble"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn each_field_of_the_other_interfaces_has_an_effect_or_is_named() {
    check(vec![
        (
            "/v1/responses",
            json!({ "reasoning": { "effort": "low", "summary": "auto" } }),
            vec!["reasoning.summary"],
        ),
        (
            "/v1/responses",
            json!({ "text": { "verbosity": "low" }, "store": false }),
            vec!["text.verbosity"],
        ),
        (
            "/v1/responses",
            json!({ "metadata": { "a": "b" }, "truncation": "auto" }),
            vec!["truncation"],
        ),
        (
            "/v1/messages",
            json!({ "thinking": { "type": "disabled" }, "service_tier": "auto" }),
            vec![],
        ),
        ("/v1/messages", json!({ "output_config": { "effort": "low" } }), vec![]),
        ("/v1/messages", json!({ "class": "background", "token_gap_ms": 90 }), vec![]),
        ("/v1/responses", json!({ "class": "background", "token_gap_ms": 90 }), vec![]),
        ("/api/chat", json!({ "options": { "class": "background", "token_gap_ms": 90 } }), vec![]),
        (
            "/v1/messages",
            json!({ "thinking": { "type": "adaptive", "display": "omitted" } }),
            vec!["thinking.display"],
        ),
        (
            "/v1/messages",
            json!({ "metadata": { "user_id": "u" }, "container": "c" }),
            vec!["container"],
        ),
        ("/api/chat", json!({ "think": "low", "stream": false }), vec![]),
        (
            "/api/chat",
            json!({ "options": { "num_thread": 4, "num_ctx": 16 } }),
            vec!["options.num_thread"],
        ),
        (
            "/api/generate",
            json!({ "options": { "num_ctx": 1_000_000 }, "template": "t" }),
            vec!["options.num_ctx", "template"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn fields_that_would_change_the_kind_of_an_answer_are_refused() {
    let (running, _folder) = chatting(DECIDES, &[]).await;
    let chat = "/v1/chat/completions";
    let refused = [
        (chat, json!({ "reasoning_effort": "enormous" }), "reasoning_effort"),
        (chat, json!({ "modalities": ["text", "audio"] }), "modalities"),
        (chat, json!({ "functions": [{ "name": "f" }] }), "tools"),
        (chat, json!({ "tool_choice": "required" }), "tool_choice"),
        (chat, json!({ "top_logprobs": 2 }), "logprobs"),
        (chat, json!({ "class": "urgent" }), "class"),
        (chat, json!({ "class": "background", "priority": 0 }), "interactive"),
        (chat, json!({ "token_gap_ms": 0 }), "token_gap_ms"),
        (chat, json!({ "token_gap_ms": -5.0 }), "token_gap_ms"),
        ("/v1/responses", json!({ "background": true }), "background"),
        ("/v1/responses", json!({ "conversation": "c" }), "conversation"),
        ("/v1/messages", json!({ "thinking": { "type": "often" } }), "thinking.type"),
        ("/api/chat", json!({ "think": 7 }), "think"),
    ];
    for (path, mut body, part) in refused {
        body["model"] = "tiny".into();
        body[if path == "/v1/responses" { "input" } else { "messages" }] = asked();
        let answer = running.client.post(path, &body).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.body.contains(part), "{path}: {answer:?}");
    }
    running.stop().await;
}
