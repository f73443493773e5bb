//! Models: loaded on demand, within a budget, and unloaded.

use lapwing::Engine;
use lapwing::serve::{Server, ServerBuilder};
use serde_json::{Value, json};

use super::{Running, local, slow, start, tiny, until};
use crate::with_template::with_template;

fn two(memory: u64) -> ServerBuilder {
    let mut config = local();
    config.memory_bytes = memory;
    let two = Engine::builder().model(tiny("gemma2.gguf")).threads(1);
    Server::builder().model("one", slow("llama.gguf")).model("two", two).config(config)
}

async fn loaded(running: &Running) -> Vec<String> {
    let ps = running.client.get("/api/ps").await.json();
    let models = ps["models"].as_array().expect("models").iter();
    models.map(|model| model["name"].as_str().expect("a name").to_owned()).collect()
}

fn ask(model: &str, more: Value) -> Value {
    let mut body = json!({ "model": model, "prompt": "ab", "raw": true, "stream": false, "options": { "num_predict": 2 } });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

#[tokio::test]
async fn models_are_loaded_when_they_are_asked_for() {
    let running = start(two(0)).await;
    assert!(loaded(&running).await.is_empty());
    let both = ["one", "two", "one", "two", "one"].map(|model| {
        let client = running.client.clone();
        tokio::spawn(
            async move { client.post("/api/generate", &ask(model, json!({}))).await.status },
        )
    });
    for task in both {
        assert_eq!(task.await.expect("no panic"), 200, "those that come while it is loaded wait");
    }
    assert_eq!(loaded(&running).await, ["one", "two"]);
    let answer =
        running.client.post("/api/generate", &ask("two", json!({ "keep_alive": 0 }))).await;
    assert_eq!(answer.status, 200);
    until("keep_alive 0 unloads", async || loaded(&running).await == ["one"]).await;
    let names = running.client.get("/v1/models").await.json();
    assert_eq!(names["data"].as_array().map(Vec::len), Some(2), "it is still offered");
    let again = running
        .client
        .post("/api/generate", &ask("two:latest", json!({ "keep_alive": "1h" })))
        .await;
    assert!(again.json()["load_duration"].as_u64() > Some(0), "{again:?}");
    running.stop().await;
}

#[tokio::test]
async fn the_model_that_was_not_used_for_the_longest_time_makes_room() {
    let running = start(two(1)).await;
    for model in ["one", "two", "one"] {
        assert_eq!(running.client.post("/api/generate", &ask(model, json!({}))).await.status, 200);
        assert_eq!(loaded(&running).await, [model], "only one fits");
    }
    // A request that runs keeps its model; another model waits, as long as its client does.
    let endless = json!({ "model": "one", "prompt": "ab", "max_tokens": 1_000_000, "ignore_eos": true, "stream": true });
    let held = running.client.send("POST", "/v1/completions", &endless.to_string()).await;
    held.readable().await.expect("it has begun");
    let hurried = running.client.with("x-request-timeout: 0.2");
    assert_eq!(
        hurried.post("/v1/completions", &json!({ "model": "two", "prompt": "ab" })).await.status,
        408
    );
    drop(held);
    assert_eq!(running.client.post("/api/generate", &ask("two", json!({}))).await.status, 200);
    running.stop().await;
}

#[tokio::test]
async fn a_model_that_cannot_be_used_is_named() {
    let missing =
        Server::builder().model("gone", Engine::builder().model("absent.gguf")).config(local());
    let error = missing.bind().await.expect_err("no file").to_string();
    assert!(error.contains("gone") && error.contains("absent.gguf"), "{error}");
    let twice = two(0).model("one", Engine::builder().model(tiny("llama.gguf")));
    assert!(twice.bind().await.expect_err("twice").to_string().contains("'one'"));
    Server::builder().bind().await.expect_err("no model");
    let mut config = local();
    config.policy = "no-such-policy".to_owned();
    let engine = Engine::builder().model(tiny("llama.gguf"));
    let running = start(Server::builder().model("one", engine).config(config)).await;
    let answer = running.client.post("/v1/completions", &json!({ "prompt": "a" })).await;
    assert_eq!((answer.status, answer.body.contains("no-such-policy")), (500, true), "{answer:?}");
    running.stop().await;
}

#[tokio::test]
async fn models_that_cannot_chat_are_named_at_the_start() {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let model = |template: &str, folder: &tempfile::TempDir| {
        let path = with_template(&tiny("llama.gguf"), template, folder.path());
        Engine::builder().model(path).threads(1)
    };
    let source = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}{{ strftime_now('%Y') }} {{ messages[0].content }}";
    let builder = || {
        Server::builder()
            .model("none", slow("llama.gguf"))
            .model("broken", model("{% if %}", &folders[0]))
            .model("good", model(source, &folders[1]))
            .config(local())
    };
    let notes = builder().bind().await.expect("an address").notes();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("'none' has no chat template"), "{notes:?}");
    assert!(notes[1].contains("'broken'") && notes[1].contains("does not compile"), "{notes:?}");
    let running = start(builder()).await;
    let listed = running.client.get("/v1/models").await.json();
    let chat: Vec<&Value> =
        listed["data"].as_array().expect("models").iter().map(|model| &model["chat"]).collect();
    assert_eq!(chat, [false, false, true]);
    let shown = running.client.post("/api/show", &json!({ "model": "broken" })).await.json();
    assert!(shown["chat_fault"].as_str().is_some_and(|fault| fault.contains("compile")), "{shown}");
    let body = json!({
        "model": "good", "messages": [{ "role": "user", "content": "hi" }],
        "tools": [{ "type": "function", "function": { "name": "f", "parameters": {} } }],
    });
    let prompt = running.client.post("/apply-template", &body).await.json();
    let prompt = prompt["prompt"].as_str().expect("a prompt").trim_end().to_owned();
    assert!(prompt.starts_with("[f]2") && prompt.ends_with(" hi"), "{prompt}");
    running.stop().await;
}
