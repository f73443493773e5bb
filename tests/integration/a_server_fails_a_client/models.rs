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
    assert_eq!(answer.json()["error"]["code"], "model_not_loaded", "{answer:?}");
    assert_eq!((answer.status, answer.body.contains("no-such-policy")), (500, false), "{answer:?}");
    running.stop().await;
}

#[tokio::test]
async fn errors_tell_clients_neither_paths_nor_options_of_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone.gguf");
    std::fs::copy(tiny("llama.gguf"), &gone).expect("a copy");
    let engine = |path: &std::path::Path| Engine::builder().model(path).threads(1);
    let server =
        Server::builder().model("gone", engine(&gone)).model("tiny", engine(&tiny("llama.gguf")));
    let running = start(server.config(local())).await;
    std::fs::remove_file(&gone).expect("it is there");
    let messages = json!([{ "role": "user", "content": "a" }]);
    let schema = json!({ "$ref": "file:///etc/passwd" });
    let rows = [
        ("/v1/completions", json!({ "model": "gone", "prompt": "a" }), 500),
        ("/api/generate", json!({ "model": "gone", "prompt": "a" }), 500),
        ("/v1/messages", json!({ "model": "gone", "messages": messages, "max_tokens": 1 }), 500),
        ("/v1/chat/completions", json!({ "model": "tiny", "messages": messages }), 400),
        ("/api/chat", json!({ "model": "tiny", "messages": messages }), 400),
        ("/v1/responses", json!({ "model": "tiny", "input": "a" }), 400),
        ("/v1/messages/count_tokens", json!({ "model": "tiny", "messages": messages }), 400),
        ("/v1/completions", json!({ "model": "tiny", "prompt": "a", "json_schema": schema }), 400),
        ("/api/pull", json!({ "model": "other" }), 404),
    ];
    for (path, body, status) in rows {
        let answer = running.client.post(path, &body).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        for part in
            [".gguf", "--", "lapwing pull", "command line", folder.path().to_str().expect("a path")]
        {
            assert!(!answer.body.contains(part), "{path}: {part:?} in {answer:?}");
        }
    }
    let foreign = running.client.with("origin: https://other.example").get("/v1/models").await;
    assert!(foreign.status == 403 && !foreign.body.contains("--"), "{foreign:?}");
    for path in ["/api/show", "/props"] {
        let answer = match path {
            "/props" => running.client.get(path).await,
            _ => running.client.post(path, &json!({ "model": "tiny" })).await,
        };
        assert!(!answer.body.contains(env!("CARGO_MANIFEST_DIR")), "{path}: {answer:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn each_model_has_its_digest_and_its_quantisation() {
    let running = start(two(0)).await;
    let tags = running.client.get("/api/tags").await.json()["models"].clone();
    let digests: Vec<&str> = tags
        .as_array()
        .expect("models")
        .iter()
        .map(|model| model["digest"].as_str().expect("a digest"))
        .collect();
    let is_hex =
        |digest: &&str| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(digests.iter().all(is_hex) && digests[0] != digests[1], "{tags}");
    running.client.post("/api/generate", &ask("one", json!({}))).await;
    let ps = running.client.get("/api/ps").await.json();
    assert_eq!(ps["models"][0]["digest"], digests[0]);
    // Nothing is cached here, so its weights are in memory of this process.
    let state = running.client.get("/debug/state").await.json();
    let packed = &state["models"][0]["packed_weights"];
    assert_eq!((&packed["mapped_bytes"], &packed["not_mapped"]), (&json!(0), &Value::Null));
    assert!(packed["own_bytes"].as_u64() > Some(0), "{packed}");
    assert_eq!(ps["models"][0]["packed_own_bytes"], packed["own_bytes"]);
    assert_eq!(ps["models"][0]["packed_mapped_bytes"], 0);
    assert_eq!(state["models"][1]["packed_weights"], Value::Null, "it is not loaded");
    for model in tags.as_array().expect("models") {
        let details = &model["details"];
        assert!(model["size"].as_u64() > Some(0) && details["quantization_level"] != "", "{model}");
        assert_eq!(details["families"], json!([details["family"]]), "{model}");
    }
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
