//! Whatever the server says is accepted when it comes back.

use serde_json::{Value, json};

use super::chatting;
use super::meaning::post;

/// As Mistral's templates, it takes only ids of nine characters, and shows which result belongs to which call.
const NINE: &str = "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('nine') }}{% endif %}\
                    {% endfor %}{% if m.role == 'tool' and m.tool_call_id|length != 9 %}{{ raise_exception('nine') }}{% endif %}\
                    [{{ m.role }}]{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}\
                    {% for c in m.tool_calls or [] %}<tool_call>{{ c.function|tojson }}</tool_call>{{ c.id }}{% endfor %}\
                    {{ m.tool_call_id }}{% endfor %}{% if tools %}{{ tools|tojson }}{% endif %}[assistant]{# -#}";

/// An answer with thoughts, a text and two calls.
const SAID: &str = "<think>\n[a-c]{4}\n</think>\n\nYes\\.<tool_call>\\{\"name\": \"f\", \"arguments\": \\{\"a\": [12]\\}\\}</tool_call>\n\
                    <tool_call>\\{\"name\": \"g\", \"arguments\": \\{\\}\\}</tool_call>";

fn functions() -> Value {
    let function = |name: &str| json!({ "name": name, "parameters": { "type": "object" } });
    json!([
        { "type": "function", "function": function("f") },
        { "type": "function", "function": function("g") },
    ])
}

fn user() -> Value {
    json!({ "role": "user", "content": "hi" })
}

#[tokio::test]
async fn messages_of_a_chat_are_accepted_when_they_come_back() {
    let (running, _folder) = chatting(NINE, &[]).await;
    let path = "/v1/chat/completions";
    let body = |stream: bool| {
        json!({
            "messages": [user()], "tools": functions(), "regex": SAID, "max_tokens": 250, "temperature": 0,
            "stream": stream,
        })
    };
    let whole = post(&running, path, body(false)).await.json()["choices"][0]["message"].clone();
    assert_eq!(whole["tool_calls"].as_array().map(Vec::len), Some(2), "{whole}");
    assert!(whole["reasoning_content"].is_string() && whole["content"] == "Yes.", "{whole}");
    for call in whole["tool_calls"].as_array().expect("calls") {
        let id = call["id"].as_str().expect("an id");
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    }
    // As OpenAI's client adds up the parts, with the numbers of calls and fields that are null.
    let mut streamed = json!({
        "role": "assistant", "content": "", "reasoning_content": "", "refusal": null, "audio": null,
        "function_call": null, "annotations": [], "tool_calls": [],
    });
    for event in post(&running, path, body(true)).await.events() {
        let delta = &event["choices"][0]["delta"];
        for field in ["content", "reasoning_content"] {
            let text = delta[field].as_str().unwrap_or_default();
            streamed[field] =
                (streamed[field].as_str().unwrap_or_default().to_owned() + text).into();
        }
        for part in delta["tool_calls"].as_array().into_iter().flatten() {
            let calls = streamed["tool_calls"].as_array_mut().expect("calls");
            let at = part["index"].as_u64().expect("a number") as usize;
            match calls.get_mut(at) {
                None => calls.push(part.clone()),
                Some(call) => {
                    let more = part["function"]["arguments"].as_str().unwrap_or_default();
                    let text =
                        call["function"]["arguments"].as_str().unwrap_or_default().to_owned();
                    call["function"]["arguments"] = (text + more).into();
                }
            }
        }
    }
    for message in [whole, streamed] {
        let mut messages = vec![user(), message.clone()];
        for call in message["tool_calls"].as_array().expect("calls") {
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "4" }));
        }
        let back = json!({ "messages": messages });
        let prompt = post(&running, "/apply-template", back).await.json()["prompt"].to_string();
        let call = r#"Yes.<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "#;
        assert!(prompt.contains(call), "{prompt}");
        assert_eq!(prompt.matches("[assistant]").count(), 2, "{prompt}");
        post(
            &running,
            path,
            json!({ "messages": messages, "tools": functions(), "max_tokens": 1 }),
        )
        .await;
    }
    running.stop().await;
}

#[tokio::test]
async fn blocks_of_anthropics_interface_are_accepted_when_they_come_back() {
    let (running, _folder) = chatting(NINE, &[]).await;
    let path = "/v1/messages";
    let tools = json!([
        { "name": "f", "input_schema": { "type": "object" } },
        { "name": "g", "input_schema": { "type": "object" } },
    ]);
    let body = json!({
        "messages": [user()], "tools": tools, "regex": SAID, "max_tokens": 250, "temperature": 0,
    });
    let content = post(&running, path, body).await.json()["content"].clone();
    let kinds: Vec<&Value> =
        content.as_array().expect("blocks").iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"], "{content}");
    let results =
        content.as_array().expect("blocks").iter().filter(|block| block["type"] == "tool_use");
    let results: Vec<Value> = results
        .map(|call| json!({ "type": "tool_result", "tool_use_id": call["id"], "content": [{ "type": "text", "text": "4" }] }))
        .collect();
    let messages = json!([
        user(), { "role": "assistant", "content": content }, { "role": "user", "content": results },
    ]);
    let body = json!({ "messages": messages, "tools": tools, "max_tokens": 1 });
    post(&running, path, body.clone()).await;
    let without = json!([user(), { "role": "assistant", "content": &content.as_array().expect("blocks")[1..] }, messages[2]]);
    let count = "/v1/messages/count_tokens";
    let with_thoughts = post(&running, count, body).await.json()["input_tokens"].as_u64();
    let body = json!({ "messages": without, "tools": tools });
    let less = post(&running, count, body).await.json()["input_tokens"].as_u64();
    assert!(with_thoughts > less, "the template gets the thoughts: {with_thoughts:?} {less:?}");
    let only = json!([user(), { "role": "assistant", "content": [content[0]] }, user()]);
    post(&running, path, json!({ "messages": only, "max_tokens": 1 })).await;
    running.stop().await;
}

#[tokio::test]
async fn items_of_a_response_are_accepted_when_they_come_back() {
    let (running, _folder) = chatting(NINE, &[]).await;
    let path = "/v1/responses";
    let tools: Vec<Value> = ["f", "g"]
        .map(|name| json!({ "type": "function", "name": name, "parameters": { "type": "object" } }))
        .into();
    let body = json!({
        "input": [user()], "tools": tools, "regex": SAID, "max_output_tokens": 250, "temperature": 0,
    });
    let output = post(&running, path, body).await.json()["output"].clone();
    let items = output.as_array().expect("items");
    let kinds: Vec<&Value> = items.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"], "{output}");
    let calls = items.iter().filter(|item| item["type"] == "function_call");
    let results = calls.map(
        |call| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "4" }),
    );
    let mut input = vec![user()];
    input.extend(items.iter().cloned());
    input.extend(results);
    let turn =
        post(&running, path, json!({ "input": input, "tools": tools, "max_output_tokens": 1 }))
            .await
            .json();
    // The same conversation as a chat has the same prompt: all items are one turn.
    let thoughts = &items[0]["content"][0]["text"];
    let call = |item: &Value| json!({ "id": item["call_id"], "type": "function", "function": { "name": item["name"], "arguments": item["arguments"] } });
    let result =
        |item: &Value| json!({ "role": "tool", "tool_call_id": item["call_id"], "content": "4" });
    let messages = json!([
        user(),
        { "role": "assistant", "content": "Yes.", "reasoning_content": thoughts, "tool_calls": [call(&items[2]), call(&items[3])] },
        result(&items[2]), result(&items[3]),
    ]);
    let body = json!({ "messages": messages, "tools": tools, "max_tokens": 1 });
    let chat = post(&running, "/v1/chat/completions", body).await.json();
    assert_eq!(turn["usage"]["input_tokens"], chat["usage"]["prompt_tokens"]);
    let unknown = json!({ "model": "tiny", "input": [{ "type": "computer_call", "id": "a" }] });
    let refused = running.client.post(path, &unknown).await;
    assert!(refused.status == 400 && refused.body.contains("computer_call"), "{refused:?}");
    running.stop().await;
}

#[tokio::test]
async fn messages_of_ollamas_interface_are_accepted_when_they_come_back() {
    let (running, _folder) = chatting(NINE, &[]).await;
    let path = "/api/chat";
    // A form makes the model call: this interface has no grammars.
    let call = json!({
        "type": "object", "properties": { "name": { "const": "f" }, "arguments": { "type": "object", "properties": { "a": { "enum": [1] } }, "required": ["a"], "additionalProperties": false } },
        "required": ["name", "arguments"], "additionalProperties": false,
        "x-guidance": { "whitespace_flexible": false },
    });
    let bare = NINE.replace("<tool_call>", "").replace("</tool_call>", "");
    let (other, _other_folder) = chatting(&bare, &[]).await;
    let body = json!({
        "messages": [user()], "tools": functions(), "format": call, "stream": false, "think": false,
        "options": { "num_predict": 250, "temperature": 0 },
    });
    let message = post(&other, path, body).await.json()["message"].clone();
    assert!(message["tool_calls"][0]["function"]["name"].is_string(), "{message}");
    other.stop().await;
    // Its clients send neither ids nor types of calls.
    let calls = json!([message["tool_calls"][0], { "function": { "name": "h", "arguments": {} } }]);
    let messages = json!([
        user(),
        { "role": "assistant", "content": message["content"], "thinking": "Hm.", "tool_calls": calls },
        { "role": "tool", "tool_name": "h", "content": "4" },
        { "role": "tool", "content": "5" },
    ]);
    let body = json!({ "messages": messages, "tools": functions(), "stream": false, "options": { "num_predict": 1 } });
    post(&running, path, body).await;
    let prompt = post(&running, "/apply-template", json!({ "messages": messages })).await.json();
    let prompt = prompt["prompt"].as_str().expect("a prompt");
    let ids: Vec<&str> = prompt.split("</tool_call>").skip(1).map(|rest| &rest[..9]).collect();
    let results: Vec<&str> = prompt.split("[tool]").skip(1).map(|rest| &rest[1..10]).collect();
    assert_eq!([ids[1], ids[0]], results[..], "each result has the id of its call: {prompt}");
    running.stop().await;
}
