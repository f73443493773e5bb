//! Thoughts and calls of an answer have their place in every interface. Grammars make tiny models write them.

use serde_json::{Value, json};

use super::{Answer, Running, chatting};

/// A server of the tiny model with a template that knows of thoughts and calls, and ends with `end`.
async fn thinking(end: &str) -> (Running, tempfile::TempDir) {
    let template = format!(
        "{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}{end}{{# </think> -#}}{{% if tools and not messages %}}<tool_call>{{% endif -%}}"
    );
    chatting(&template, &[]).await
}

/// The strings at `pointer` of the events of a type, or of all events.
fn pieces(answer: &Answer, kind: Option<&str>, pointer: &str) -> Vec<String> {
    let events = answer.events();
    let of_kind = events.iter().filter(|event| kind.is_none_or(|kind| event["type"] == kind));
    of_kind.filter_map(|event| event.pointer(pointer)?.as_str().map(str::to_owned)).collect()
}

/// A request that every interface takes.
fn asked(more: Value, stream: bool) -> Value {
    let mut body = json!({
        "model": "tiny", "messages": [{ "role": "user", "content": "ab" }], "max_tokens": 200,
        "input": "ab", "max_output_tokens": 200, "temperature": 0, "stream": stream,
    });
    let Value::Object(more) = more else { panic!("an object") };
    body.as_object_mut().expect("an object").extend(more);
    body
}

#[tokio::test]
async fn thoughts_are_separated_from_the_answer() {
    let (running, _folder) = thinking("").await;
    let client = &running.client;
    let regex = json!({ "regex": "<think>\n[a-c]{6}\n</think>\n\n[d-f]{5}" });
    let (body, streamed) = (asked(regex.clone(), false), asked(regex, true));
    let path = "/v1/chat/completions";
    let message = client.post(path, &body).await.json()["choices"][0]["message"].clone();
    let (thoughts, text) = (&message["reasoning_content"], &message["content"]);
    let length = |value: &Value| value.as_str().map(str::len);
    assert_eq!((length(thoughts), length(text)), (Some(6), Some(5)), "{message}");
    let chunks = client.post(path, &streamed).await;
    let delta = |field: &str| {
        let pieces = pieces(&chunks, None, &format!("/choices/0/delta/{field}"));
        (Value::from(pieces.concat()), pieces.len())
    };
    let (streamed_thoughts, number) = delta("reasoning_content");
    assert_eq!(&streamed_thoughts, thoughts);
    assert!(number > 1, "token by token: {chunks:?}");
    assert_eq!(&delta("content").0, text);

    let path = "/v1/messages";
    let blocks = client.post(path, &body).await.json()["content"].clone();
    assert_eq!((&blocks[0]["thinking"], &blocks[1]["text"]), (thoughts, text), "{blocks}");
    let events = client.post(path, &streamed).await;
    let kinds = pieces(&events, Some("content_block_start"), "/content_block/type");
    assert_eq!(kinds, ["thinking", "text"]);
    let delta =
        |pointer: &str| Value::from(pieces(&events, Some("content_block_delta"), pointer).concat());
    assert_eq!((&delta("/delta/thinking"), &delta("/delta/text")), (thoughts, text));

    let path = "/v1/responses";
    let output = client.post(path, &body).await.json()["output"].clone();
    let kinds = (&output[0]["type"], &output[1]["type"]);
    assert_eq!(kinds, (&json!("reasoning"), &json!("message")), "{output}");
    let (first, second) = (&output[0]["content"][0]["text"], &output[1]["content"][0]["text"]);
    assert_eq!((first, second), (thoughts, text));
    let events = client.post(path, &streamed).await;
    let delta = |kind: &str| Value::from(pieces(&events, Some(kind), "/delta").concat());
    assert_eq!(&delta("response.reasoning_text.delta"), thoughts);
    assert_eq!(&delta("response.output_text.delta"), text);
    running.stop().await;
}

#[tokio::test]
async fn thoughts_that_the_prompt_begins_are_no_text_of_ollamas_answers() {
    let (running, _folder) = thinking("<think>\n").await;
    let client = &running.client;
    let asked = |raw: bool, stream: bool| {
        json!({
            "model": "tiny", "prompt": "ab", "raw": raw, "stream": stream,
            "options": { "num_predict": 20, "temperature": 0 },
        })
    };
    let path = "/api/generate";
    let answer = client.post(path, &asked(false, false)).await.json();
    let thoughts = answer["thinking"].as_str().expect("thoughts").to_owned();
    assert!(!thoughts.is_empty() && answer["response"] == "", "{answer}");
    let lines = client.post(path, &asked(false, true)).await.events();
    let joined =
        |field: &str| -> String { lines.iter().filter_map(|line| line[field].as_str()).collect() };
    assert!(lines.len() > 2, "line by line: {lines:?}");
    assert_eq!((joined("thinking"), joined("response")), (thoughts, String::new()));
    let raw = client.post(path, &asked(true, false)).await.json();
    assert!(raw["thinking"].is_null() && raw["response"] != "", "{raw}");
    running.stop().await;
}

#[tokio::test]
async fn arguments_of_a_call_are_streamed() {
    let (running, _folder) = thinking("").await;
    let client = &running.client;
    let schema = json!({
        "type": "object", "properties": { "colour": { "enum": ["red", "green"] } },
        "required": ["colour"], "additionalProperties": false,
    });
    let function = json!({ "name": "paint", "parameters": schema });
    let tools = json!({
        "tools": [{ "type": "function", "function": function }], "tool_choice": "required",
    });
    let chunks = client.post("/v1/chat/completions", &asked(tools.clone(), true)).await;
    let call = "/choices/0/delta/tool_calls/0";
    assert_eq!(pieces(&chunks, None, &format!("{call}/function/name")), ["paint"], "{chunks:?}");
    assert_eq!(pieces(&chunks, None, &format!("{call}/id")).len(), 1);
    assert_eq!(pieces(&chunks, None, "/choices/0/finish_reason"), ["tool_calls"]);
    let arguments = pieces(&chunks, None, &format!("{call}/function/arguments"));
    assert!(arguments.len() > 2, "token by token: {arguments:?}");
    let arguments: Value = serde_json::from_str(&arguments.concat()).expect("JSON");
    assert!(arguments["colour"].is_string(), "{arguments}");

    let events = client.post("/v1/responses", &asked(tools.clone(), true)).await;
    let kind = "response.function_call_arguments.delta";
    let parts = pieces(&events, Some(kind), "/delta");
    assert!(parts.len() > 2, "token by token: {parts:?}");
    let done = pieces(&events, Some("response.function_call_arguments.done"), "/arguments");
    assert_eq!(done, [parts.concat()]);

    let mut tools = tools;
    tools["tools"] = json!([{ "name": "paint", "input_schema": schema }]);
    tools["tool_choice"] = json!({ "type": "any" });
    let events = client.post("/v1/messages", &asked(tools, true)).await;
    let parts = pieces(&events, Some("content_block_delta"), "/delta/partial_json");
    assert!(parts.len() > 2, "token by token: {parts:?}");
    let input: Value = serde_json::from_str(&parts.concat()).expect("JSON");
    assert_eq!(input, arguments);
    running.stop().await;
}
