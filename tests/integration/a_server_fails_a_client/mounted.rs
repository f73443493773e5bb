//! The server's paths in a program that has paths of its own, and calls the same engine.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use lapwing::policy::ClientId;
use lapwing::serve::{KeyConfig, Mounted, PathGroup, ServeConfig, Server, ServerBuilder};
use lapwing::traces::Scope;
use lapwing::{Engine, EngineBuilder, Request};
use serde_json::json;

use super::client::{Client, read};
use super::{slow, tiny, with_llama};

fn llama() -> EngineBuilder {
    Engine::builder().model(tiny("llama.gguf")).threads(1)
}

async fn engine(builder: EngineBuilder) -> Engine {
    builder.build().await.expect("an engine")
}

async fn mount(builder: ServerBuilder) -> Mounted {
    builder.mount().await.expect("paths")
}

/// Serves the routes of a program until the test ends.
async fn serve(routes: Router) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let client = Client::new(listener.local_addr().expect("an address"));
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    client
}

/// A program with a path of its own, and the server's below a prefix.
async fn program(mounted: &Mounted) -> Client {
    let own = Router::new().route("/hello", get(|| async { "hello" }));
    serve(own.nest("/llm", mounted.router())).await
}

/// The text that the program's own call has.
async fn own_text(engine: &Engine) -> String {
    let request = Request::text("ab").greedy().ignore_eos().max_tokens(8).client("own");
    let answer = engine.generate(request).await.expect("a stream");
    answer.into_text().await.expect("a text")
}

#[tokio::test]
async fn a_program_answers_beside_the_server_and_shares_its_engine() {
    let engine = engine(llama()).await;
    let mounted = mount(Server::builder().engine("tiny", engine.clone())).await;
    let client = program(&mounted).await;
    assert_eq!(client.get("/hello").await.body, "hello");

    let asked = json!({ "prompt": "ab", "max_tokens": 8, "ignore_eos": true, "temperature": 0, "stream": true });
    let streamed = client.post("/llm/v1/completions", &asked);
    let (streamed, own) = tokio::join!(streamed, own_text(&engine));
    assert_eq!(streamed.status, 200, "{streamed:?}");
    let events = streamed.events();
    let texts = events.iter().map(|event| event["choices"][0]["text"].as_str().unwrap_or_default());
    assert_eq!(texts.collect::<String>(), own, "one engine answers both alike: {streamed:?}");

    let state = client.get("/llm/debug/state").await.json();
    let clients = state["models"][0]["state"]["clients"].as_array().expect("clients").clone();
    let requests = |name: &str| {
        let found = clients.iter().find(|client| client["client"] == name);
        found.map_or(0, |client| client["requests"].as_u64().unwrap_or_default())
    };
    assert_eq!((requests("own"), requests("127.0.0.1")), (1, 1), "{clients:?}");
    let metrics = client.get("/llm/metrics").await.body;
    assert!(metrics.contains("path=\"/v1/completions\""), "paths are counted without the prefix");

    let elsewhere = client.get("/v1/models").await;
    assert_eq!((elsewhere.status, &*elsewhere.body), (404, ""), "it is the program's");
}

#[tokio::test]
async fn paths_below_a_prefix_lead_to_each_other() {
    let mounted = mount(Server::builder().engine("tiny", engine(llama()).await)).await;
    let own = Router::new().nest("/{tenant}/llm", mounted.router());
    let client = serve(own.nest("/llm", mounted.router())).await;
    for prefix in ["/llm", "/a/llm"] {
        let page = client.with("accept: text/html").get(prefix).await;
        assert!(page.headers.contains("content-security-policy"), "{prefix}: {}", page.headers);
        for rooted in ["\"/v1/", "\"/debug/", "\"/metrics", "\"/openapi.json", "\"/grafana.json"] {
            assert!(!page.body.contains(rooted), "the page leaves its prefix: {rooted}");
        }
        let document = client.get(&format!("{prefix}/openapi.json")).await.json();
        assert_eq!(document["servers"][0]["url"], prefix);
        for path in document["paths"].as_object().expect("paths").keys().filter(|path| *path != "/")
        {
            let path = path.replace("{id}", "tiny");
            let status = client.get(&format!("{prefix}{path}")).await.status;
            // There is nothing to show of a recorder that is off.
            let is_known = status != 404 || path.starts_with("/debug/");
            assert!(is_known && status < 500, "{prefix}{path}: {status}");
        }
    }
}

#[tokio::test]
async fn a_recorder_of_the_program_has_the_timeline() {
    let engine = engine(llama()).await;
    let mounted = mount(Server::builder().engine("tiny", engine.clone())).await;
    let client = program(&mounted).await;
    let off = client.get("/llm/debug/lanes").await;
    assert_eq!((off.status, &off.json()["error"]["code"]), (404, &json!("no_timeline")));
    engine.recorder().set_scope(Scope::All);
    own_text(&engine).await;
    let lanes = client.get("/llm/debug/lanes").await.json();
    let mut shown = lanes["lanes"].as_array().expect("lanes").iter();
    assert!(shown.any(|lane| lane["name"] == "cpu"), "{lanes}");
}

#[tokio::test]
async fn only_the_chosen_paths_are_offered() {
    let shared = Server::builder().engine("tiny", engine(llama()).await);
    let mounted = mount(shared.paths([PathGroup::OpenAi, PathGroup::Ollama])).await;
    // At the root, beside a page and a check of the program's own.
    let own = Router::new().route("/", get(|| async { "own" }));
    let own = own.route("/health", get(|| async { "fine" })).merge(mounted.router());
    let client = serve(own.fallback(|| async { "nothing" })).await;
    let rows = [
        ("/", "own"),
        ("/health", "fine"),
        ("/v1/messages", "nothing"),
        ("/metrics", "nothing"),
        ("/props", "nothing"),
    ];
    for (path, body) in rows {
        assert_eq!(client.get(path).await.body, body, "{path}");
    }
    for path in ["/v1/models", "/api/tags"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    for paths in [vec![], vec![PathGroup::Page], vec![PathGroup::Page, PathGroup::OpenAi]] {
        let wrong = with_llama(ServeConfig::default()).paths(paths).mount().await;
        wrong.expect_err("paths that cannot stand alone");
    }
}

#[tokio::test]
async fn settings_that_would_have_no_effect_are_errors() {
    type Change = fn(&mut ServeConfig);
    let of_sockets: [(&str, Change); 3] = [
        ("listen", |config| config.listen = "127.0.0.1:0".to_owned()),
        ("connections_max", |config| config.connections_max = 7),
        ("stalled_s", |config| config.stalled_s = 1.0),
    ];
    let of_engines: [(&str, Change); 6] = [
        ("policy", |config| config.policy = "fcfs".to_owned()),
        ("requests_max", |config| config.requests_max = 3),
        ("sequences_max", |config| config.sequences_max = 3),
        ("timeline_events", |config| config.timeline_events = 3),
        ("keep_alive_s", |config| config.keep_alive_s = 3.0),
        ("memory_bytes", |config| config.memory_bytes = 3),
    ];
    let engine = engine(llama()).await;
    for (setting, change) in of_sockets.into_iter().chain(of_engines) {
        let mut config = ServeConfig::default();
        change(&mut config);
        let builder = Server::builder().engine("tiny", engine.clone()).config(config);
        let error = builder.mount().await.expect_err(setting).to_string();
        assert!(error.contains(&format!("the setting {setting} ")), "{error}");
    }
    for (setting, change) in of_engines {
        let mut config = ServeConfig::default();
        change(&mut config);
        let loaded = with_llama(config).mount().await;
        assert!(loaded.is_ok(), "{setting} has an effect on an engine that is loaded here");
    }
}

/// A layer of a program that knows who has a session.
async fn with_name(mut request: HttpRequest, next: Next) -> Response {
    if request.headers().contains_key("x-session") {
        request.extensions_mut().insert(ClientId::from("bob"));
    }
    next.run(request).await
}

#[tokio::test]
async fn a_layer_of_the_program_names_the_client() {
    let mut config = ServeConfig::default();
    let key = KeyConfig { client: "alice".to_owned(), key: "secret".to_owned() };
    config.keys.push(key);
    let builder = Server::builder().engine("tiny", engine(llama()).await).config(config);
    let mounted = mount(builder).await;
    let client =
        serve(Router::new().nest("/llm", mounted.router()).layer(from_fn(with_name))).await;
    let ask = json!({ "prompt": "ab", "max_tokens": 1 });
    assert_eq!(client.post("/llm/v1/completions", &ask).await.status, 401);
    for known in ["authorization: Bearer secret", "x-session: 1"] {
        let answer = client.with(known).post("/llm/v1/completions", &ask).await;
        assert_eq!(answer.status, 200, "{known}: {answer:?}");
    }
    let state = client.with("x-session: 1").get("/llm/debug/state").await.json();
    let clients = state["models"][0]["state"]["clients"].as_array().expect("clients").clone();
    let names: Vec<_> = clients.iter().map(|client| client["client"].clone()).collect();
    assert!(names.contains(&json!("alice")) && names.contains(&json!("bob")), "{names:?}");
}

#[tokio::test]
async fn the_end_of_the_paths_leaves_the_engine_to_the_program() {
    let engine = engine(slow("llama.gguf")).await;
    let mut config = ServeConfig::default();
    config.grace_s = 0.2;
    let mounted = mount(Server::builder().engine("tiny", engine.clone()).config(config)).await;
    let client = program(&mounted).await;
    let unload = json!({ "model": "tiny", "keep_alive": 0 });
    let answer = client.post("/llm/api/generate", &unload).await;
    assert_eq!(answer.json()["done_reason"], "load", "an engine of the program stays: {answer:?}");
    assert!(answer.headers.contains("x-ignored-fields: keep_alive"), "{answer:?}");

    let endless =
        json!({ "prompt": "ab", "max_tokens": 1_000_000, "ignore_eos": true, "stream": true });
    let stream = client.send("POST", "/llm/v1/completions", &endless.to_string()).await;
    stream.readable().await.expect("it has begun");
    let reader = tokio::spawn(read(stream));
    mounted.close().await;
    let last = reader.await.expect("no panic").events().pop().expect("an event");
    assert_eq!(last["error"]["code"], "shutting_down", "{last}");
    assert_eq!(client.get("/llm/ready").await.status, 503);
    let late = client.post("/llm/v1/completions", &json!({ "prompt": "ab" })).await;
    assert_eq!(late.json()["error"]["code"], "shutting_down", "{late:?}");
    assert_eq!(client.get("/hello").await.body, "hello");
    assert!(!own_text(&engine).await.is_empty(), "the engine runs on");
}
