//! Token ids in and out: an answer with ids says what was computed, whole or as a stream.

use lapwing::serve::Server;
use lapwing::{Engine, Prompt, Request};
use serde_json::{Value, json};

use super::{Running, chatting, local, start, with_llama};
use crate::a_model_has_no_tokenizer::without_vocabulary;

/// A template without thoughts and functions.
const PLAIN: &str =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}[assistant]";

const COMPLETIONS: &str = "/v1/completions";
const CHAT: &str = "/v1/chat/completions";

async fn post(running: &Running, path: &str, body: &Value, more: Value) -> super::Answer {
    let mut body = body.clone();
    let Value::Object(more) = more else { panic!("an object") };
    body.as_object_mut().expect("an object").extend(more);
    let answer = running.client.post(path, &body).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer
}

fn ids(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap_or_else(|| panic!("a list of ids: {list}"));
    list.iter().map(|id| id.as_u64().expect("an id")).collect()
}

/// The events of a choice, each with a part of it.
fn of_choice(events: &[Value], index: usize) -> Vec<(&Value, &Value)> {
    let choices = events.iter().map(|event| (event, &event["choices"][0]));
    choices.filter(|(_, choice)| choice["index"] == index).collect()
}

#[tokio::test]
async fn a_completion_has_the_ids_of_its_prompt_and_of_its_tokens() {
    let running = start(with_llama(local())).await;
    let engine = Engine::builder().model(super::tiny("llama.gguf")).threads(1);
    let engine = engine.build().await.expect("an engine");
    let prompts = [vec![1, 40, 41, 42], vec![1, 99]];
    let body = json!({ "prompt": prompts, "max_tokens": 7, "temperature": 0 });
    let asked = json!({ "return_token_ids": true });
    let plain = post(&running, COMPLETIONS, &body, json!({})).await.json();
    let whole = post(&running, COMPLETIONS, &body, asked).await.json();
    let streamed = json!({ "return_token_ids": true, "stream": true });
    let events = post(&running, COMPLETIONS, &body, streamed).await.events();
    for (index, prompt) in prompts.iter().enumerate() {
        let request = Request::new(Prompt::Ids(prompt.clone())).greedy().max_tokens(7);
        let mut stream = engine.generate(request).await.expect("a stream");
        let mut want = Vec::new();
        while let Some(token) = stream.next().await {
            want.push(u64::from(token.expect("a token").id));
        }
        let prompt: Vec<u64> = prompt.iter().map(|id| u64::from(*id)).collect();
        let choice = &whole["choices"][index];
        assert_eq!(
            (ids(&choice["token_ids"]), ids(&choice["prompt_token_ids"])),
            (want.clone(), prompt.clone())
        );
        assert_eq!(choice["text"], plain["choices"][index]["text"]);
        assert!(plain["choices"][index].get("token_ids").is_none(), "{plain}");
        let parts = of_choice(&events, index);
        let arrived: Vec<u64> =
            parts.iter().flat_map(|(_, choice)| ids(&choice["token_ids"])).collect();
        assert_eq!(arrived, want, "{events:?}");
        assert_eq!(ids(&parts[0].1["prompt_token_ids"]), prompt);
        assert!(parts[1..].iter().all(|(_, choice)| choice.get("prompt_token_ids").is_none()));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_chat_has_the_ids_of_its_prompt_and_of_its_tokens() {
    let (running, _folder) = chatting(PLAIN, &[]).await;
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let body =
        json!({ "messages": messages, "max_tokens": 9, "temperature": 1, "seed": 3, "n": 2 });
    let plain = post(&running, CHAT, &body, json!({})).await.json();
    let whole = post(&running, CHAT, &body, json!({ "return_token_ids": true })).await.json();
    let streamed = json!({ "return_token_ids": true, "stream": true, "logprobs": true });
    let events = post(&running, CHAT, &body, streamed).await.events();
    let conversation = json!({ "messages": messages });
    let rendered = post(&running, "/apply-template", &conversation, json!({})).await.json();
    let text = rendered["prompt"].clone();
    let tokenized = json!({ "content": text, "add_special": true });
    let prompt = ids(&post(&running, "/tokenize", &tokenized, json!({})).await.json()["tokens"]);
    assert_eq!(
        whole["prompt_token_ids"].as_array().map(Vec::len),
        whole["usage"]["prompt_tokens"].as_u64().map(|n| n as usize)
    );
    assert!(prompt.ends_with(&ids(&whole["prompt_token_ids"])), "{prompt:?} {whole}");
    assert!(plain.get("prompt_token_ids").is_none(), "{plain}");
    for index in 0..2 {
        let choice = &whole["choices"][index];
        let want = ids(&choice["token_ids"]);
        assert!(!want.is_empty());
        assert_eq!(choice["message"]["content"], plain["choices"][index]["message"]["content"]);
        let parts = of_choice(&events, index);
        let arrived: Vec<u64> =
            parts.iter().flat_map(|(_, choice)| ids(&choice["token_ids"])).collect();
        assert_eq!(arrived, want, "{events:?}");
        // Each token has a chunk with its log-probability and its id, also while its text is incomplete.
        for (_, choice) in &parts {
            if let Some(logprobs) = choice["logprobs"]["content"].as_array() {
                assert_eq!((logprobs.len(), ids(&choice["token_ids"]).len()), (1, 1), "{choice}");
            }
        }
        assert_eq!(parts[0].0["prompt_token_ids"], whole["prompt_token_ids"]);
        assert!(parts[1..].iter().all(|(event, _)| event.get("prompt_token_ids").is_none()));
    }
    running.stop().await;
}

#[tokio::test]
async fn the_end_token_is_among_the_ids() {
    let (running, _folder) = chatting(PLAIN, &[]).await;
    let body = json!({
        "messages": [{ "role": "user", "content": "hi" }], "max_tokens": 9, "temperature": 0, "return_token_ids": true,
        "logit_bias": { "2": 100 },
    });
    let answer = post(&running, CHAT, &body, json!({})).await.json();
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], ids(&choice["token_ids"])),
        (&json!("stop"), vec![2]),
        "{answer}"
    );
    assert_eq!(answer["usage"]["completion_tokens"], 1);
    running.stop().await;
}

#[tokio::test]
async fn log_probabilities_name_tokens_by_their_ids() {
    let running = start(with_llama(local())).await;
    let body = json!({
        "prompt": [1, 70, 71], "max_tokens": 5, "temperature": 0, "logprobs": 3, "echo": true, "return_token_ids": true,
        "return_tokens_as_token_ids": true,
    });
    let choice = post(&running, COMPLETIONS, &body, json!({})).await.json()["choices"][0].clone();
    let all = [ids(&choice["prompt_token_ids"]), ids(&choice["token_ids"])].concat();
    let want: Vec<Value> = all.iter().map(|id| format!("token_id:{id}").into()).collect();
    let logprobs = &choice["logprobs"];
    assert_eq!(logprobs["tokens"], Value::from(want), "{choice}");
    for top in logprobs["top_logprobs"].as_array().expect("alternatives").iter().skip(1) {
        let names: Vec<&String> = top.as_object().expect("alternatives").keys().collect();
        assert_eq!(names.len(), 3, "each has a name of its own: {top}");
        let is_id = |name: &&String| {
            let id = name.strip_prefix("token_id:").and_then(|id| id.parse::<u32>().ok());
            id.is_some()
        };
        assert!(names.iter().all(is_id), "{top}");
    }
    // Without log-probabilities there is nothing to name.
    let ignored = json!({ "prompt": [1], "max_tokens": 1, "return_tokens_as_token_ids": true });
    let ignored = post(&running, COMPLETIONS, &ignored, json!({})).await;
    assert!(
        ignored.headers.contains("x-ignored-fields: return_tokens_as_token_ids"),
        "{ignored:?}"
    );
    running.stop().await;

    let (running, _folder) = chatting(PLAIN, &[]).await;
    let body = json!({
        "messages": [{ "role": "user", "content": "hi" }], "max_tokens": 4, "temperature": 0, "logprobs": true,
        "top_logprobs": 2, "return_token_ids": true, "return_tokens_as_token_ids": true,
    });
    let choice = post(&running, CHAT, &body, json!({})).await.json()["choices"][0].clone();
    for (token, id) in choice["logprobs"]["content"]
        .as_array()
        .expect("tokens")
        .iter()
        .zip(ids(&choice["token_ids"]))
    {
        assert_eq!(token["token"], format!("token_id:{id}"), "{choice}");
        assert_eq!(token["top_logprobs"][0]["token"], token["token"], "{choice}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_model_without_a_tokenizer_has_ids_in_and_out() {
    let (engine, _folder) = without_vocabulary("llama.gguf", "none");
    let running = start(Server::builder().model("tiny", engine).config(local())).await;
    let body = json!({
        "prompt": [1, 40, 287], "max_tokens": 6, "temperature": 0, "ignore_eos": true, "logprobs": 2,
        "return_token_ids": true, "return_tokens_as_token_ids": true,
    });
    let choice = post(&running, COMPLETIONS, &body, json!({})).await.json()["choices"][0].clone();
    let want = ids(&choice["token_ids"]);
    assert_eq!((want.len(), ids(&choice["prompt_token_ids"])), (6, vec![1, 40, 287]), "{choice}");
    let names: Vec<String> = want.iter().map(|id| format!("token_id:{id}")).collect();
    assert_eq!(choice["logprobs"]["tokens"], json!(names));
    let events = post(&running, COMPLETIONS, &body, json!({ "stream": true })).await.events();
    let arrived: Vec<u64> =
        of_choice(&events, 0).iter().flat_map(|(_, choice)| ids(&choice["token_ids"])).collect();
    assert_eq!(arrived, want);
    running.stop().await;
}
