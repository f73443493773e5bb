//! Thoughts, grammars, calls and the ends of prompts, in every interface.

use serde_json::{Value, json};

use super::{Answer, Running, chatting};

/// A prompt that opens the thoughts, as templates of the family of R1 have it.
const OPENS: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}{% if tools %}{{ tools|tojson }} <tool_call>\
                     {% endif %}{% if add_generation_prompt %}[assistant]<think>\n{% endif %}{# </think> -#}";
/// A template that shows all that a message has.
const SHOWS: &str = "{% if tools %}{{ tools|tojson }} <tool_call>[/]{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}\
                     {% if m.reasoning_content %}(because {{ m.reasoning_content }}){% endif %}{% for c in m.tool_calls or [] %}<tool_call>\
                     {{ c.function|tojson }}</tool_call>{% endfor %}[/]{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}\
                     {# </think> -#}";

pub(super) fn schema() -> Value {
    json!({
        "type": "object", "properties": { "a": { "enum": [1] } }, "required": ["a"],
        "additionalProperties": false,
    })
}

pub(super) fn asked() -> Value {
    json!([{ "role": "user", "content": "hi" }])
}

/// Posts a body with the fields that every request has.
pub(super) async fn post(running: &Running, path: &str, mut body: Value) -> Answer {
    body["model"] = "tiny".into();
    let answer = running.client.post(path, &body).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer
}

/// The prompt of a request to a chat, in tokens: each character is one or more.
async fn prompt_tokens(running: &Running, path: &str, body: Value) -> u64 {
    let answer = post(running, path, body).await.json();
    let usage = ["/usage/prompt_tokens", "/usage/input_tokens", "/prompt_eval_count"];
    let tokens = usage.iter().find_map(|pointer| answer.pointer(pointer)?.as_u64());
    let cached = answer.pointer("/usage/cache_read_input_tokens").and_then(Value::as_u64);
    tokens.expect("a number of tokens") + cached.unwrap_or_default()
}

/// The tokens of a prompt.
async fn tokens_of(running: &Running, prompt: &str) -> u64 {
    let body = json!({ "content": prompt, "add_special": true });
    let ids = post(running, "/tokenize", body).await.json();
    ids["tokens"].as_array().expect("ids").len() as u64
}

#[tokio::test]
async fn a_form_holds_for_what_follows_the_thoughts() {
    let (running, _folder) = chatting(OPENS, &[]).await;
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema() } });
    let call = json!([{ "type": "function", "function": { "name": "f", "parameters": schema() } }]);
    let rows = [
        (
            "/v1/chat/completions",
            json!({ "messages": asked(), "max_tokens": 120, "response_format": format }),
            "/choices/0/message/content",
            "/choices/0/message/reasoning_content",
        ),
        (
            "/v1/chat/completions",
            json!({ "messages": asked(), "max_tokens": 400, "tools": call, "tool_choice": "required" }),
            "/choices/0/message/tool_calls/0/function/arguments",
            "/choices/0/message/reasoning_content",
        ),
        (
            "/v1/responses",
            json!({ "input": "hi", "max_output_tokens": 120, "text": { "format": { "type": "json_schema", "name": "x", "schema": schema() } } }),
            "/output/1/content/0/text",
            "/output/0/content/0/text",
        ),
        (
            "/api/chat",
            json!({ "messages": asked(), "stream": false, "format": schema(), "options": { "num_predict": 120 } }),
            "/message/content",
            "/message/thinking",
        ),
        (
            "/api/generate",
            json!({ "prompt": "hi", "stream": false, "format": schema(), "options": { "num_predict": 120 } }),
            "/response",
            "/thinking",
        ),
        (
            "/v1/messages",
            json!({ "messages": asked(), "max_tokens": 400, "tool_choice": { "type": "any" }, "tools": [{ "name": "f", "input_schema": schema() }] }),
            "/content/1/input",
            "/content/0/thinking",
        ),
    ];
    for (path, body, form, thoughts) in rows {
        let answer = post(&running, path, body).await.json();
        let thoughts = answer.pointer(thoughts).and_then(Value::as_str);
        assert!(thoughts.is_some_and(|text| !text.is_empty()), "{path}: {answer}");
        let form = match answer.pointer(form) {
            Some(Value::String(text)) => text.clone(),
            other => other.map(Value::to_string).unwrap_or_default(),
        };
        // The white space may take all tokens.
        assert!(form.starts_with('{'), "{path}: {answer}");
    }
    running.stop().await;
}

#[tokio::test]
async fn thoughts_have_the_length_that_a_client_allows() {
    let (running, _folder) = chatting(OPENS, &[]).await;
    let chat = |more: Value| {
        let mut body = json!({ "messages": asked(), "max_tokens": 60, "temperature": 0 });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("fields").clone());
        body
    };
    let path = "/v1/chat/completions";
    for fields in [
        json!({ "reasoning_effort": "none" }),
        json!({ "enable_thinking": false }),
        json!({ "think": false }),
    ] {
        let answer = post(&running, path, chat(fields)).await;
        let message = answer.json()["choices"][0]["message"].clone();
        assert!(message["reasoning_content"].is_null() && message["content"] != "", "{answer:?}");
        assert!(!answer.headers.contains("x-ignored-fields"), "{answer:?}");
    }
    let bounded = post(&running, path, chat(json!({ "thinking_budget_tokens": 5 }))).await.json();
    let message = &bounded["choices"][0]["message"];
    let thoughts = message["reasoning_content"].as_str().unwrap_or_default();
    // A token has two characters at most.
    assert!(thoughts.chars().count() <= 10 && message["content"] != "", "{bounded}");
    let body = chat(json!({ "thinking": { "type": "enabled", "budget_tokens": 5 } }));
    let blocks = post(&running, "/v1/messages", body).await.json();
    assert_eq!(blocks["content"][1]["type"], "text", "{blocks}");
    running.stop().await;
}

#[tokio::test]
async fn tags_that_are_control_tokens_are_tags() {
    let (running, _folder) = chatting(OPENS, &["<think>", "</think>"]).await;
    // The vocabulary has these tokens in the place of its last two, and "x" before them.
    let (close, x) = ("287", "283");
    let path = "/v1/chat/completions";
    let body =
        json!({ "messages": asked(), "max_tokens": 4, "temperature": 0, "logit_bias": { x: 100 } });
    let message = post(&running, path, body).await.json()["choices"][0]["message"].clone();
    assert_eq!((&message["reasoning_content"], &message["content"]), (&json!("xxxx"), &json!("")));
    let body = json!({ "messages": asked(), "max_tokens": 3, "temperature": 0, "logit_bias": { close: 100 } });
    let message = post(&running, path, body).await.json()["choices"][0]["message"].clone();
    assert_eq!(message["content"], "</think></think>", "{message}");
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema() } });
    let body = json!({ "messages": asked(), "max_tokens": 120, "response_format": format });
    let message = post(&running, path, body).await.json()["choices"][0]["message"].clone();
    assert!(message["content"].as_str().is_some_and(|text| text.starts_with('{')), "{message}");
    running.stop().await;
}

#[tokio::test]
async fn a_last_message_of_the_model_is_continued() {
    let (running, _folder) = chatting(SHOWS, &[]).await;
    let messages = json!([
        { "role": "user", "content": "hi" }, { "role": "assistant", "content": "My answer:" },
    ]);
    let continues = json!({ "continue_final_message": true, "add_generation_prompt": false });
    let mut body = json!({ "messages": messages });
    body.as_object_mut().expect("an object").extend(continues.as_object().expect("fields").clone());
    let prompt = post(&running, "/apply-template", body.clone()).await.json()["prompt"].clone();
    assert_eq!(prompt, "[user]hi[/][assistant]My answer:");
    let tokens = tokens_of(&running, "[user]hi[/][assistant]My answer:").await;
    body["max_tokens"] = 1.into();
    let chat = prompt_tokens(&running, "/v1/chat/completions", body).await;
    let body = json!({ "messages": messages, "max_tokens": 1 });
    let anthropic = prompt_tokens(&running, "/v1/messages", body.clone()).await;
    let ollama = json!({ "messages": messages, "stream": false, "options": { "num_predict": 1 } });
    let ollama = prompt_tokens(&running, "/api/chat", ollama).await;
    assert_eq!([chat, anthropic, ollama], [tokens; 3]);
    let counted = post(&running, "/v1/messages/count_tokens", body.clone()).await.json();
    assert_eq!(counted["input_tokens"], tokens);
    let closed = prompt_tokens(&running, "/v1/chat/completions", body.clone()).await;
    let whole = "[user]hi[/][assistant]My answer:[/][assistant]";
    assert_eq!(closed, tokens_of(&running, whole).await, "a new message begins");
    let mut closed = body;
    closed["add_generation_prompt"] = false.into();
    let closed = prompt_tokens(&running, "/v1/chat/completions", closed).await;
    assert_eq!(closed, tokens_of(&running, "[user]hi[/][assistant]My answer:[/]").await);

    let call =
        json!([{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } }]);
    let rows = [
        json!({ "messages": messages, "continue_final_message": true, "add_generation_prompt": true }),
        json!({ "messages": [{ "role": "assistant", "tool_calls": call }], "continue_final_message": true }),
    ];
    for body in rows {
        let answer = running.client.post("/v1/chat/completions", &body).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    running.stop().await;
}
