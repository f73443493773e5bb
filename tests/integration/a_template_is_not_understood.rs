//! The chat templates of published models: a conversation with functions is told as it should be, and calls and thoughts of
//! answers are found.

use std::path::Path;

use lapwing::chat::{AnswerStart, ChatOptions, ChatTemplate};
use lapwing::parts::{AnswerForm, AnswerReader};
use lapwing::serde_json::{Value, json};
use lapwing::{Answer, Message, Prompt, Request, Tool, ToolCall, Tools};

use crate::support::templates;

const QUESTION: &str = "How is the weather in Uri?";
const RESULT: &str = "It rains cats.";
const DESCRIPTION: &str = "Looks out of the window.";

fn tools() -> Tools {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "description": "A city." }, "days": { "type": "integer", "description": "Days." },
        },
        "required": ["city"],
    });
    Tools::new([Tool::new("weather").description(DESCRIPTION).parameters(schema)])
}

fn arguments() -> Value {
    json!({ "city": "Altdorf", "days": 31 })
}

/// The prompt of a conversation with functions.
fn prompt(
    template: &ChatTemplate,
    messages: Vec<Message>,
    is_next: bool,
) -> Result<String, String> {
    let told = tools().tell(Request::chat(messages), Some(template));
    let Prompt::Chat(messages) = &told.prompt else {
        return Err("it is no conversation".to_owned());
    };
    let options = ChatOptions {
        add_generation_prompt: is_next,
        variables: told.template_variables.clone(),
        ..ChatOptions::default()
    };
    template.render_with(messages, &options).map_err(|error| error.to_string())
}

/// The calls of an answer, by their names and arguments.
fn calls(template: &ChatTemplate, start: AnswerStart, pieces: &[&str]) -> Vec<(String, Value)> {
    let form = AnswerForm::new(Some(&tools()), Some(template));
    let mut reader = AnswerReader::new(&form, start);
    let mut parts: Vec<_> =
        pieces.iter().flat_map(|piece| reader.push((*piece).to_owned())).collect();
    parts.extend(reader.finish());
    let calls = Answer::of(parts).calls.into_iter();
    calls
        .map(|call| {
            (call.name, serde_json::from_str(&call.arguments).unwrap_or(call.arguments.into()))
        })
        .collect()
}

/// What is wrong with a template, if something is.
fn fault(template: &ChatTemplate) -> Result<(), String> {
    let call = ToolCall::new("weather", arguments().to_string());
    let asked = vec![Message::user(QUESTION)];
    let called = [asked.clone(), vec![Message::assistant("").calls([&call])]].concat();
    let answered = [called.clone(), vec![Message::result(&call, RESULT)]].concat();
    let text = prompt(template, answered, true)?;
    for part in [DESCRIPTION, QUESTION, "Altdorf", "31", RESULT] {
        if !text.contains(part) {
            return Err(format!("'{part}' is missing in {text}"));
        }
    }
    // What the template writes for the call is what the model writes.
    let (begun, whole) = (prompt(template, asked, true)?, prompt(template, called, false)?);
    let (start, answer) = match whole.strip_prefix(&begun) {
        Some(answer) => (AnswerStart::Fresh, answer),
        None => (AnswerStart::Within, whole.split_once(QUESTION).map_or(&*whole, |(_, rest)| rest)),
    };
    let pieces: Vec<&str> = answer.split_inclusive(|_: char| true).collect();
    let want = vec![("weather".to_owned(), arguments())];
    for pieces in [&[answer][..], &pieces] {
        let found = calls(template, start, pieces);
        if found != want {
            return Err(format!("{found:?} is read of {answer:?}"));
        }
    }
    Ok(())
}

/// The text that opens thoughts, and the templates whose models have them.
const THOUGHTS: [(&str, &[&str]); 11] = [
    ("<|inner_prefix|>", &["Apertus-8B-Instruct"]),
    (
        "<think>",
        &[
            "Bielik-11B-v3.0-Instruct",
            "GLM-4.6",
            "GLM-4.7-Flash",
            "HuggingFaceTB-SmolLM3-3B",
            "Kimi-K2-Thinking",
            "LFM2.5-8B-A1B",
            "LFM2.5-Instruct",
            "MiniMax-M2",
            "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            "NVIDIA-Nemotron-Nano-v2",
            "Qwen-QwQ-32B",
            "Qwen-Qwen3-0.6B",
            "Qwen3.5-4B",
            "Reka-Edge",
            "Spark2.5",
            "StepFun3.5-Flash",
            "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
            "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
            "deepseek-ai-DeepSeek-V3.1",
            "deepseek-ai-DeepSeek-V3.2",
            "deepseek-ai-DeepSeek-V4",
            "deepseek-ai-DeepSeek-V4-Flash-0731",
            "ibm-granite-granite-3.3-2B-Instruct",
            "inclusionai-ling-3.0-flash",
            "llama-cpp-deepseek-r1",
            "llama-cpp-rwkv-world",
            "openbmb-MiniCPM5-1B",
            "poolside-Laguna-S-2.1",
            "poolside-Laguna-XS-2.1",
            "poolside-Laguna-XS.2",
        ],
    ),
    ("<seed:think>", &["ByteDance-Seed-OSS"]),
    ("<|START_THINKING|>", &["Cohere2MoE", "CohereForAI-c4ai-command-r7b-12-2024-tool_use"]),
    ("<mm:think>", &["MiniMax-M3"]),
    ("<|open|>think<|sep|>", &["Kimi-K3"]),
    ("<|think|>", &["upstage-Solar-Open-100B"]),
    ("<|channel>thought\n", &["google-gemma-4-31B-it", "google-gemma-4-31B-it-interleaved"]),
    ("<|channel|>analysis<|message|>", &["llm-jp-llm-jp-4.1-8b-thinking", "openai-gpt-oss-120b"]),
    ("[THINK]", &["mistralai-Ministral-3-14B-Reasoning-2512"]),
    ("<think:opensource>", &["tencent-Hy3"]),
];

fn opened(path: &Path) -> ChatTemplate {
    let source = std::fs::read_to_string(path).expect("a template");
    ChatTemplate::new(&source, "<s>", "</s>")
}

#[test]
fn conversations_with_functions_are_told_and_calls_are_read() {
    let mut wrong = Vec::new();
    for (name, path) in templates() {
        if let Err(error) = fault(&opened(&path)) {
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn thoughts_are_told_by_templates() {
    let mut wrong = Vec::new();
    for (name, path) in templates() {
        let found = opened(&path).thought_tags().map_or("", |tags| tags.open);
        let want =
            THOUGHTS.iter().find(|(_, names)| names.contains(&&*name)).map_or("", |(open, _)| open);
        if found != want {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Templates that show the thoughts before a call once its result is there.
const REPEATED: [&str; 4] =
    ["Kimi-K3", "MiniMax-M3", "openai-gpt-oss-120b", "upstage-Solar-Open-100B"];

#[test]
fn thoughts_before_a_call_stay_in_the_conversation() {
    let call = ToolCall::new("weather", arguments().to_string());
    let all = templates();
    let known: Vec<_> = all.iter().filter(|(name, _)| REPEATED.contains(&&**name)).collect();
    assert!(all.is_empty() || known.len() == REPEATED.len(), "{} of them are there", known.len());
    for (name, path) in known {
        for text in ["", "Let me see."] {
            let called =
                Message::assistant(text).calls([&call]).field("reasoning_content", "Cats?");
            let messages = vec![Message::user(QUESTION), called, Message::result(&call, RESULT)];
            let prompt = prompt(&opened(path), messages, true);
            let prompt = prompt.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(prompt.contains("Cats?") && prompt.contains(RESULT), "{name}: {prompt}");
        }
    }
}

#[test]
fn every_call_of_a_message_is_told() {
    let calls = ["Altdorf", "Bern"]
        .map(|city| ToolCall::new("weather", json!({ "city": city }).to_string()));
    let mut wrong = Vec::new();
    for (name, path) in templates() {
        let results = calls.iter().zip([RESULT, "It snows."]);
        let results = results.map(|(call, text)| Message::result(call, text));
        let mut messages = vec![Message::user(QUESTION), Message::assistant("").calls(&calls)];
        messages.extend(results);
        let told = prompt(&opened(&path), messages, true);
        let parts = ["Altdorf", "Bern", RESULT, "It snows."];
        match told {
            Ok(told) if parts.iter().all(|part| told.contains(part)) => {}
            told => wrong.push(format!("{name}: {told:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Firefunction's functions are a text, also where there are none.
#[test]
fn a_template_may_add_functions_to_a_text() {
    let found = templates().into_iter().find(|(name, _)| name.contains("firefunction"));
    let Some((_, path)) = found else { return assert!(templates().is_empty(), "no such template") };
    let template = opened(&path);
    let told = prompt(&template, vec![Message::user(QUESTION)], true).expect("a prompt");
    assert!(told.contains("[\n  {\n    \"name\": \"weather\","), "{told}");
    let plain = template.render(&[Message::user(QUESTION)], true).expect("a prompt");
    assert!(plain.contains("Today is ") && !plain.contains("weather\""), "{plain}");
}
