//! The interfaces: the same text through each, streamed or not; fields, errors, and the document of the paths.

use lapwing::Engine;
use lapwing::draft::DraftChoice;
use lapwing::serve::Server;
use serde_json::{Value, json};

use super::{Answer, local, start, with_llama};
use crate::support::{SMOLLM2, greedy, model, needs};

/// The texts of a stream, by where an object has its part.
fn joined(answer: &Answer, part: &str) -> String {
    answer
        .events()
        .iter()
        .filter_map(|event| event.pointer(part)?.as_str().map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn every_interface_gives_the_library_s_text() {
    let running = start(with_llama(local())).await;
    let engine = Engine::builder().model(super::tiny("llama.gguf")).threads(1);
    let engine = engine.build().await.expect("an engine");
    let stream = engine.generate(greedy("Once upon", 24)).await.expect("a stream");
    let text = stream.into_text().await.expect("a text");
    let client = &running.client;
    let open =
        json!({ "prompt": "Once upon", "max_tokens": 24, "temperature": 0, "stream": false });
    let whole = client.post("/v1/completions", &open).await.json();
    assert_eq!(whole["choices"][0]["text"], text, "{whole}");
    assert_eq!(whole["usage"]["completion_tokens"], 24);
    let mut streamed = open.clone();
    streamed["stream"] = true.into();
    let streamed = client.post("/v1/completions", &streamed).await;
    assert_eq!(joined(&streamed, "/choices/0/text"), text);
    assert!(streamed.body.ends_with("data: [DONE]\n\n"), "{streamed:?}");
    let options = json!({ "num_predict": 24, "temperature": 0 });
    let ollama = json!({ "model": "tiny", "prompt": "Once upon", "raw": true, "options": options });
    let lines = client.post("/api/generate", &ollama).await;
    assert_eq!(joined(&lines, "/response"), text);
    let last = lines.events().pop().expect("a last line");
    assert_eq!((&last["done"], &last["eval_count"]), (&json!(true), &json!(24)), "{last}");
    assert!(last["total_duration"].as_u64() > last["eval_duration"].as_u64(), "{last}");
    running.stop().await;
}

#[tokio::test]
async fn a_layer_of_the_file_drafts_by_default() {
    let body =
        json!({ "prompt": [3, 4, 5], "max_tokens": 24, "temperature": 0, "ignore_eos": true });
    let mut texts = Vec::new();
    for (draft, name) in [(DraftChoice::none(), "none"), (DraftChoice::default(), "mtp")] {
        let engine = Engine::builder().model(super::tiny("qwen35-mtp.gguf")).threads(1);
        let server = Server::builder().model("tiny", engine.draft(draft));
        let running = start(server.config(local())).await;
        for _ in 0..3 {
            let answer = running.client.post("/v1/completions", &body).await.json();
            assert_eq!(answer["timings"]["draft_n"].is_null(), name == "none", "{answer}");
            texts.push(answer["choices"][0]["text"].clone());
        }
        let state = running.client.get("/debug/state").await.json();
        assert_eq!(state["models"][0]["draft"], name);
        running.stop().await;
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

#[tokio::test]
async fn times_tell_what_was_drafted() {
    let body = json!({ "prompt": "Once upon", "max_tokens": 24, "temperature": 0 });
    let mut texts = Vec::new();
    for is_drafting in [false, true] {
        let mut engine = super::slow("llama.gguf");
        if is_drafting {
            engine = engine.draft(DraftChoice::suffix());
        }
        let running = start(Server::builder().model("tiny", engine).config(local())).await;
        // The second answer is the first one again, which the drafter remembers.
        running.client.post("/v1/completions", &body).await.json();
        let answer = running.client.post("/v1/completions", &body).await.json();
        let times = &answer["timings"];
        let [drafted, accepted] = ["draft_n", "draft_n_accepted"].map(|name| times[name].as_u64());
        match is_drafting {
            true => {
                assert!(drafted > Some(0) && accepted > Some(0) && accepted <= drafted, "{times}");
            }
            false => assert_eq!((drafted, accepted), (None, None), "{times}"),
        }
        texts.push(answer["choices"][0]["text"].clone());
        running.stop().await;
    }
    assert_eq!(texts[0], texts[1]);
}

#[tokio::test]
async fn chats_of_every_interface_agree() {
    needs!(SMOLLM2);
    let engine = Engine::builder().model(model(SMOLLM2));
    let running = start(Server::builder().model(SMOLLM2, engine).config(local())).await;
    let client = &running.client;
    let messages = json!([{ "role": "user", "content": "Name a colour." }]);
    let chat = json!({
        "model": SMOLLM2, "messages": messages, "max_tokens": 10, "temperature": 0, "stream": true,
    });
    let text =
        joined(&client.post("/v1/chat/completions", &chat).await, "/choices/0/delta/content");
    assert!(!text.is_empty());
    let ollama = json!({
        "model": SMOLLM2, "messages": messages, "options": { "num_predict": 10, "temperature": 0 },
    });
    assert_eq!(joined(&client.post("/api/chat", &ollama).await, "/message/content"), text);
    assert_eq!(joined(&client.post("/v1/messages", &chat).await, "/delta/text"), text);
    let response = json!({
        "input": "Name a colour.", "max_output_tokens": 10, "temperature": 0, "stream": true,
    });
    let response = client.post("/v1/responses", &response).await;
    let deltas =
        response.events().into_iter().filter(|event| event["type"] == "response.output_text.delta");
    let parts: String =
        deltas.filter_map(|event| event["delta"].as_str().map(str::to_owned)).collect();
    assert_eq!(parts, text);
    let counted = client.post("/v1/messages/count_tokens", &chat).await.json();
    let prompt = client.post("/apply-template", &chat).await.json()["prompt"].clone();
    let ids = client.post("/tokenize", &json!({ "content": prompt })).await.json();
    assert_eq!(
        counted["input_tokens"].as_u64(),
        ids["tokens"].as_array().map(|ids| ids.len() as u64)
    );
    let back = client.post("/detokenize", &ids).await.json();
    assert!(back["content"].as_str().is_some_and(|text| text.contains("Name a colour.")), "{back}");
    running.stop().await;
}

#[tokio::test]
async fn fields_have_their_effect_or_are_named() {
    let running = start(with_llama(local())).await;
    let client = &running.client;
    let ask = |more: Value| {
        let mut body = json!({ "prompt": "ab", "max_tokens": 6, "temperature": 1.0, "seed": 5 });
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        let client = client.clone();
        async move { client.post("/v1/completions", &body).await }
    };
    let several = ask(json!({ "n": 3 })).await.json();
    assert_eq!(several["choices"].as_array().map(Vec::len), Some(3));
    assert_eq!(several["choices"], ask(json!({ "n": 3 })).await.json()["choices"], "seeds repeat");
    assert_eq!(several["choices"][0], ask(json!({})).await.json()["choices"][0]);
    assert_ne!(several["choices"][0]["text"], several["choices"][1]["text"]);
    let named = ask(json!({ "wibble": 1, "user": "u", "wobble": {} })).await;
    assert!(named.headers.contains("x-ignored-fields: wibble, wobble"), "{named:?}");
    let echoed = ask(json!({ "echo": true, "logprobs": 2, "max_tokens": 0 })).await.json();
    let logprobs = &echoed["choices"][0]["logprobs"];
    assert_eq!(echoed["choices"][0]["text"], "ab");
    let scores = logprobs["token_logprobs"].as_array().expect("scores");
    assert!(
        scores.iter().all(|score| score.as_f64().is_some_and(|score| score <= 0.0)),
        "the begin token precedes all"
    );
    let ids = json!({ "prompt": [70, 71, 72], "echo": true, "logprobs": 2, "max_tokens": 0 });
    let ids = client.post("/v1/completions", &ids).await.json();
    let scores = ids["choices"][0]["logprobs"]["token_logprobs"].as_array().expect("scores");
    assert_eq!((scores.len(), &scores[0]), (3, &Value::Null), "nothing precedes the first token");
    assert!(scores[1].as_f64() < Some(0.0), "{scores:?}");
    let biased = ask(json!({ "logit_bias": { "65": 100 }, "temperature": 0 })).await.json();
    let ids =
        client.post("/tokenize", &json!({ "content": biased["choices"][0]["text"] })).await.json();
    assert!(!ids["tokens"].as_array().expect("ids").is_empty());
    running.stop().await;
}

#[tokio::test]
async fn errors_have_the_form_of_their_interface() {
    let running = start(with_llama(local())).await;
    let client = &running.client;
    let long = "word ".repeat(30_000);
    let rows: [(&str, Value, u16, &str); 11] = [
        ("/v1/completions", json!({ "model": "x", "prompt": "a" }), 404, "model_not_found"),
        ("/v1/completions", json!({}), 400, "prompt is missing"),
        ("/v1/completions", json!({ "prompt": 5 }), 400, "prompt"),
        ("/v1/completions", json!({ "prompt": "a", "temperature": "hot" }), 400, "temperature"),
        ("/v1/completions", json!({ "prompt": "a", "top_p": 2 }), 400, "top_p is 2"),
        ("/v1/completions", json!({ "prompt": "a", "n": 1000 }), 400, "n is 1000"),
        ("/v1/completions", json!({ "prompt": long }), 400, "context_length_exceeded"),
        (
            "/v1/chat/completions",
            json!({ "messages": [{ "role": "user", "content": "a" }] }),
            400,
            "no chat template",
        ),
        ("/v1/completions", json!({ "prompt": "a", "regex": "(" }), 400, "regex"),
        ("/api/generate", json!({ "model": "x", "prompt": "a" }), 404, "does not exist"),
        ("/v1/messages", json!({ "model": "x", "messages": [] }), 404, "not_found_error"),
    ];
    for (path, body, status, part) in rows {
        let answer = client.post(path, &body).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.body.contains(part), "{path}: {part:?} in {}", answer.body);
        let error = answer.json();
        let text = match path {
            "/api/generate" => &error["error"],
            _ => &error["error"]["message"],
        };
        assert!(text.as_str().is_some_and(|text| !text.is_empty()), "{error}");
    }
    for (method, path, status) in [("GET", "/v1/nothing", 404), ("PUT", "/v1/models", 405)] {
        let answer = super::client::read(client.send(method, path, "").await).await;
        assert_eq!((answer.status, answer.json()["error"]["message"].is_string()), (status, true));
    }
    let broken =
        super::client::read(client.send("POST", "/v1/completions", "{\"prompt\":").await).await;
    assert_eq!((broken.status, broken.body.contains("not valid JSON")), (400, true), "{broken:?}");
    running.idle().await;
    running.stop().await;
}

#[tokio::test]
async fn the_document_lists_exactly_what_is_served() {
    let running = start(with_llama(local())).await;
    let client = &running.client;
    let document = client.get("/openapi.json").await.json();
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() > 30);
    for (path, methods) in paths {
        let path = path.replace("{id}", "tiny");
        let known = methods.as_object().expect("methods");
        for method in ["get", "post"] {
            let sent = client.send(&method.to_uppercase(), &path, "{}").await;
            let status = super::client::read(sent).await.status;
            let refused = status == 405 || status == 404 && path != "/v1/models/tiny";
            // A model is missing in some bodies, which is another kind of 404 than an unknown path.
            assert_eq!(
                known.contains_key(method),
                status != 405,
                "{method} {path}: {status}, {refused}"
            );
            assert!(status < 500, "{method} {path}: {status}");
        }
    }
    running.stop().await;
}
