//! A program that embeds the engine gets the calls, the text and the thoughts that a client of the server gets.

use lapwing::error::ToolError;
use lapwing::structured::Grammar;
use lapwing::{
    Answer, EndReason, Engine, ErrorKind, Part, Request, Thoughts, Tool, ToolChoice, Tools,
};
use serde_json::{Value, json};

use super::{Running, chatting};
use crate::cases::cases;

/// What differs between models: whether the template has a place for functions, and how calls and thoughts are written.
const TEMPLATES: [&str; 4] = [
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ tools|tojson }}{# </think> <tool_call> -#}",
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{{ tools|tojson }}{# -#}",
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{# </think> -#}",
    "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools|tojson }}<think>\n{# </think> <tool_call> -#}",
];

/// Functions as clients describe them.
fn described(is_strict: bool) -> Vec<Value> {
    let schema = json!({
        "type": "object", "properties": { "colour": { "enum": ["red", "green"] }, "size": { "type": "integer" } },
        "required": ["colour"], "additionalProperties": false,
    });
    vec![
        json!({ "type": "function", "function": {
            "name": "paint", "description": "Paints.", "parameters": schema, "strict": is_strict,
        } }),
        json!({ "name": "stop" }),
    ]
}

fn tools(is_strict: bool) -> Tools {
    let tools = described(is_strict).into_iter().map(|tool| Tool::from_json(tool).expect("a tool"));
    Tools::new(tools)
}

/// Thoughts, text, names and arguments of calls, and why the answer has ended.
type Plain = (String, String, Vec<(String, String)>, String);

/// What a client gets.
async fn served(running: &Running, more: &Value, seed: u64) -> Plain {
    let mut body = json!({
        "model": "tiny", "messages": [{ "role": "user", "content": "ab" }], "max_tokens": 150,
        "temperature": 1, "seed": seed,
    });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("fields").clone());
    let answer = running.client.post("/v1/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{more}: {answer:?}");
    let choice = answer.json()["choices"][0].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = &choice["message"];
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls =
        calls.map(|call| (text(&call["function"]["name"]), text(&call["function"]["arguments"])));
    let (thoughts, content) = (text(&message["reasoning_content"]), text(&message["content"]));
    (thoughts, content, calls.collect(), text(&choice["finish_reason"]))
}

/// What a program gets: the parts of the tokens are those of the whole answer.
async fn embedded(engine: &Engine, request: Request, seed: u64) -> Plain {
    let request = request.max_tokens(150).temperature(1.0).seed(seed);
    let mut stream = engine.generate(request).await.expect("a stream");
    let mut parts: Vec<Part> = Vec::new();
    while let Some(token) = stream.next().await {
        parts.extend(token.expect("a token").parts);
    }
    let summary = stream.summary().expect("an end");
    let answer = summary.answer.clone().expect("a divided answer");
    let mut whole = Answer::of(parts);
    whole.reason = Some(summary.reason.clone());
    assert_eq!(whole, answer);
    assert_eq!(answer.is_cut(), summary.reason == EndReason::Length);
    assert_eq!(summary.calls(), answer.calls);
    let reason = match (&summary.reason, answer.calls.is_empty()) {
        (EndReason::Length, _) => "length",
        (_, false) => "tool_calls",
        _ => "stop",
    };
    let calls = answer.calls.into_iter().map(|call| (call.name, call.arguments)).collect();
    (answer.thoughts, answer.text, calls, reason.to_owned())
}

#[tokio::test]
async fn the_same_request_has_the_same_calls_text_and_thoughts() {
    let pattern = "<think>\n[a-c]{3}</think>\n[d-f]{5}";
    let format = json!({ "type": "regex", "pattern": pattern });
    let named = json!({ "type": "function", "function": { "name": "paint" } });
    let allowed =
        json!({ "type": "allowed_tools", "mode": "required", "tools": [{ "name": "stop" }] });
    let ask = || Request::ask("ab");
    let rows = [
        (json!({ "tools": described(false) }), ask().tools(tools(false))),
        (
            json!({ "tools": described(false), "tool_choice": "required" }),
            ask().tools(tools(false).choice(ToolChoice::Required)),
        ),
        (
            json!({ "tools": described(false), "tool_choice": named, "parallel_tool_calls": false }),
            ask().tools(tools(false).choice(ToolChoice::Named("paint".to_owned())).parallel(false)),
        ),
        (
            json!({ "tools": described(true), "tool_choice": allowed }),
            ask().tools(tools(true).choice(ToolChoice::Required).allowed(["stop"])),
        ),
        (json!({ "tools": described(true) }), ask().tools(tools(true))),
        (
            json!({ "tools": described(true), "response_format": format }),
            ask().tools(tools(true)).grammar(Grammar::regex(pattern)),
        ),
        (
            json!({ "tools": described(true), "tool_choice": "none" }),
            ask().tools(tools(true).choice(ToolChoice::None)),
        ),
        (json!({ "response_format": format }), ask().divided().grammar(Grammar::regex(pattern))),
    ];
    let mut calls = 0;
    for template in TEMPLATES {
        let (running, folder) = chatting(template, &[]).await;
        let model = folder.path().join("chat.gguf");
        let engine = Engine::builder().model(model).threads(1).build().await.expect("an engine");
        for (more, request) in &rows {
            for seed in 0..cases(2, 8) as u64 {
                let answer = embedded(&engine, request.clone(), seed).await;
                assert_eq!(answer, served(&running, more, seed).await, "{template} {more} {seed}");
                calls += answer.2.len();
            }
        }
        running.stop().await;
    }
    assert!(calls > 8, "the required ones: {calls}");
}

#[tokio::test]
async fn arguments_arrive_with_their_tokens_and_calls_with_their_ends() {
    let (running, folder) = chatting(TEMPLATES[0], &[]).await;
    let engine = Engine::builder().model(folder.path().join("chat.gguf")).threads(1).require_chat();
    let engine = engine.build().await.expect("an engine");
    let named = tools(false).choice(ToolChoice::Named("paint".to_owned()));
    let request = Request::ask("ab").tools(named).thoughts(Thoughts::None).greedy();
    let mut stream = engine.generate(request.clone()).await.expect("a stream");
    let (mut pieces, mut ended) = (Vec::new(), Vec::new());
    while let Some(token) = stream.next().await {
        for part in token.expect("a token").parts {
            match part {
                Part::Call { name, .. } => assert_eq!(name, "paint"),
                Part::Arguments(text) => pieces.push(text),
                Part::CallEnd(call) => ended.push(call),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(pieces.len() > 2, "token by token: {pieces:?}");
    assert_eq!(ended, stream.summary().expect("an end").calls());
    let [call] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(call.arguments, pieces.concat());
    let arguments: Value = call.arguments_as().expect("JSON");
    assert!(arguments["colour"].is_string(), "{arguments}");

    let mut stream = engine.generate_blocking(request.clone()).expect("a stream");
    let blocking = Answer::of(stream.blocking().flat_map(|token| token.expect("a token").parts));
    assert_eq!(blocking.calls[0].arguments, call.arguments);
    let cut = engine.generate(request.max_tokens(20)).await.expect("a stream");
    let cut = cut.into_answer().await.expect("an answer");
    assert!(cut.calls.iter().all(|call| call.arguments_as::<Value>().is_err()), "{cut:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_stream_without_tools_stays_as_it_is() {
    let (running, folder) = chatting(TEMPLATES[0], &[]).await;
    let engine = Engine::builder().model(folder.path().join("chat.gguf")).threads(1);
    let engine = engine.build().await.expect("an engine");
    let written = "<think>\nHm.</think>\nYes. <tool_call>\n{\"name\": \"stop\"}\n</tool_call>";
    let request = Request::ask("ab").grammar(Grammar::choice([written])).greedy();
    let mut stream = engine.generate(request.clone()).await.expect("a stream");
    let mut text = String::new();
    while let Some(token) = stream.next().await {
        let token = token.expect("a token");
        assert!(token.parts.is_empty(), "{token:?}");
        text.push_str(&token.text);
    }
    assert_eq!(text, written);
    let summary = stream.summary().expect("an end");
    assert!(summary.answer.is_none() && summary.calls().is_empty());
    let whole = engine.generate(request.clone()).await.expect("a stream");
    assert_eq!(whole.into_answer().await.expect("an answer").text, written);

    // A grammar that has the tags of thoughts itself holds for them, too.
    let divided = engine.generate(request.clone().divided()).await.expect("a stream");
    let divided = divided.into_answer().await.expect("an answer");
    let rest = written.split_once("</think>\n").expect("thoughts").1;
    assert_eq!((&*divided.thoughts, &*divided.text), ("Hm.", rest));
    let stopped = request.divided().stop("Yes.");
    let stopped = engine.generate(stopped).await.expect("a stream").into_answer().await;
    let stopped = stopped.expect("an answer");
    assert_eq!((&*stopped.thoughts, &*stopped.text), ("Hm.", ""), "what precedes the stop text");
    running.stop().await;
}

#[tokio::test]
async fn tools_that_a_request_cannot_have_are_refused() {
    let (running, folder) = chatting(TEMPLATES[0], &[]).await;
    let engine = Engine::builder().model(folder.path().join("chat.gguf")).threads(1);
    let engine = engine.build().await.expect("an engine");
    let required = || tools(false).choice(ToolChoice::Required);
    let named = tools(false).choice(ToolChoice::Named("draw".to_owned()));
    let rows = [
        (Request::text("ab").tools(tools(false)), ToolError::NoConversation),
        (Request::ask("ab").tools(Tools::new([]).choice(ToolChoice::Required)), ToolError::NoTool),
        (
            Request::ask("ab").tools(named),
            ToolError::UnknownTool { name: "draw".to_owned(), known: "paint, stop".to_owned() },
        ),
        (
            Request::ask("ab").tools(required()).grammar(Grammar::regex("a")),
            ToolError::CallAndGrammar,
        ),
    ];
    for (request, want) in rows {
        let counted = engine.prompt_ids_of(&request).map(drop).expect_err("no such tools");
        let error = engine.generate(request).await.map(drop).expect_err("no such tools");
        for error in [counted, error] {
            assert_eq!((error.kind(), error.tool_error()), (ErrorKind::Request, Some(&want)));
        }
    }
    let told = engine.prompt_ids_of(&Request::ask("ab").tools(required())).expect("ids");
    let prompt = engine.tokenizer().decode(&told);
    assert!(prompt.contains("Paints."), "the model is told: {prompt}");
    running.stop().await;
}
