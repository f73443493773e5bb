//! Texts in the styles of published models, and the calls that they are.

mod messages;
mod texts;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::tools::{BARE, Called, KNOWN, Tool};
use texts::ONE;

fn functions() -> Tools {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" }, "days": { "type": "integer" }, "units": { "type": "array" },
            "note": {}, "metric": { "type": "boolean" },
        },
    });
    Tools::new([Tool::new("weather").parameters(schema), Tool::new("now")])
}

fn form(style: &'static Style) -> AnswerForm {
    let calls = Some(Arc::new(functions().signatures()));
    AnswerForm { style: Some(style), calls, ..AnswerForm::default() }
}

fn style(name: &str) -> &'static Style {
    if name == BARE.name {
        return &BARE;
    }
    KNOWN.iter().find(|style| style.name == name).unwrap_or_else(|| panic!("no style {name}"))
}

/// The answer, read at once and character by character.
fn read(style: &'static Style, answer: &str) -> (String, String, Vec<(String, Value)>) {
    let form = form(style);
    let pieces: Vec<&str> = answer.split_inclusive(|_: char| true).collect();
    let [whole, streamed] = [&[answer][..], &pieces].map(|pieces| {
        let (thoughts, text, calls) = plain(divided_as(&form, AnswerStart::Fresh, pieces));
        let call = |(name, arguments): (String, String)| {
            let read = serde_json::from_str(&arguments);
            (name, read.unwrap_or_else(|_| Value::from(arguments)))
        };
        (thoughts, text, calls.into_iter().map(call).collect::<Vec<_>>())
    });
    assert_eq!(streamed, whole, "{}: {answer:?}", style.name);
    whole
}

fn calls(style: &'static Style, answer: &str) -> Vec<(String, Value)> {
    read(style, answer).2
}

#[test]
fn a_call_is_read_in_every_style() {
    let want = vec![("weather".to_owned(), json!({ "city": "Bern", "days": 3 }))];
    for (name, text) in ONE {
        let (thoughts, rest, calls) = read(style(name), text);
        let message = if rest == "Hm." { "Hm." } else { "" };
        assert_eq!(
            (thoughts.as_str(), rest.as_str(), calls),
            ("", message, want.clone()),
            "{name}: {text}"
        );
    }
    for style in KNOWN {
        let is_tried = ONE.iter().any(|(name, _)| *name == style.name);
        let is_like_another = ["tagged", "atem", "deepseek-v4", "gigachat"].contains(&style.name);
        assert!(is_tried || is_like_another, "{} has no text here", style.name);
    }
}

/// What is written for a template without a place for calls is read again as it was.
#[test]
fn what_is_written_in_a_style_is_read_as_the_same_calls() {
    let arguments = [
        json!({ "city": "Bern", "days": 3, "units": ["C", "F"] }),
        json!({ "city": "a < b & c\n{}, \"[1]\" é", "metric": true, "note": { "a": [1, null] } }),
        json!({}),
    ];
    for style in KNOWN.into_iter().chain([&BARE]) {
        for arguments in &arguments {
            // Without escapes, a text cannot have the quotes around it.
            let written = style.write(&[Called { name: "weather", arguments }]);
            let want = vec![("weather".to_owned(), arguments.clone())];
            assert_eq!(calls(style, &written), want, "{}: {written}", style.name);
        }
        let two = [
            Called { name: "weather", arguments: &arguments[0] },
            Called { name: "now", arguments: &arguments[2] },
        ];
        let written = style.write(&two);
        if style.open.is_empty() {
            continue;
        }
        let names: Vec<String> = calls(style, &written).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["weather", "now"], "{}: {written}", style.name);
    }
}

#[test]
fn text_around_calls_stays_text() {
    for style in KNOWN.into_iter().filter(|style| !style.open.is_empty()) {
        let arguments = json!({ "city": "Bern" });
        let call = style.write(&[Called { name: "weather", arguments: &arguments }]);
        let before = read(style, &format!("Let me see.\n{call}"));
        assert_eq!((before.1.as_str(), before.2.len()), ("Let me see.", 1), "{}", style.name);
        let none = "Use f(1) < [2] and {3}, or import functools.";
        assert_eq!(
            read(style, none),
            (String::new(), none.to_owned(), Vec::new()),
            "{}",
            style.name
        );
        // What is no call is text, with the text that has begun it.
        let open = style.open[0];
        let broken = read(style, &format!("{open}no call here{}", style.close));
        assert!(
            broken.2.is_empty() && broken.1.contains("no call here"),
            "{}: {broken:?}",
            style.name
        );
    }
}

#[test]
fn values_are_of_the_type_that_the_schema_says() {
    let rows = [
        (
            "qwen3-coder",
            "<tool_call>\n<function=weather>\n<parameter=city>\n\n007\nnorth\n\n</parameter>\n<parameter=metric>\nTrue\n</parameter>\n<parameter=units>\n[\"C\"]\n</parameter>\n</function>\n</tool_call>",
            json!({ "city": "\n007\nnorth\n", "metric": true, "units": ["C"] }),
        ),
        (
            "glm-4.5",
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>12</arg_value>\n<arg_key>note</arg_key>\n<arg_value>1.50</arg_value>\n</tool_call>",
            json!({ "city": "12", "note": 1.50 }),
        ),
        (
            "python",
            "<|tool_call_start|>[weather(city=\"a, b) 'c'\", units=['C', \"F\"], metric=False, note={'k': (1, 2)})]<|tool_call_end|>",
            json!({ "city": "a, b) 'c'", "units": ["C", "F"], "metric": false, "note": { "k": [1, 2] } }),
        ),
        (
            "gemma4",
            "<|tool_call>call:weather{city:<|\"|>{a}, <b> \"c\"<|\"|>,units:[<|\"|>C<|\"|>],note:{k:<|\"|>v<|\"|>},metric:true}<tool_call|>",
            json!({ "city": "{a}, <b> \"c\"", "units": ["C"], "note": { "k": "v" }, "metric": true }),
        ),
        (
            "minicpm5",
            "<function name=\"weather\"><param name=\"city\"><![CDATA[a</param>\nb]]></param></function>",
            json!({ "city": "a</param>\nb" }),
        ),
    ];
    for (name, text, want) in rows {
        assert_eq!(calls(style(name), text), [("weather".to_owned(), want)], "{name}");
    }
}

#[test]
fn a_call_that_is_cut_off_has_what_there_is() {
    let rows = [
        (
            "qwen3-coder",
            "<tool_call>\n<function=weather>\n<parameter=city>\nBer",
            "{\"city\":\"Ber",
        ),
        (
            "glm-4.5",
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_ke",
            "{\"city\":\"Bern\"",
        ),
        ("gemma4", "<|tool_call>call:weather{city:<|\"|>Bern<|\"|>,days:", "{\"city\":\"Bern\""),
        ("mistral", "[TOOL_CALLS]weather[ARGS]{\"city\": \"Be", "{\"city\": \"Be"),
        ("channels", "<|channel|>commentary to=functions.weather<|message|>{\"city\"", "{\"city\""),
        (
            "kimi-k3",
            "<|open|>tools<|sep|><|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>Ber",
            "{\"city\":\"Ber",
        ),
        (
            "minimax-m3",
            "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"weather\">]<]minimax[>[<units>]<]minimax[>[<item>C]<]minimax[>[</item>]<]mini",
            "{\"units\":[\"C\"",
        ),
        (
            "solar-open",
            "<|tool_calls|><|tool_call:begin|>a<|tool_call:name|>weather<|tool_call:args|>{\"a",
            "{\"a",
        ),
    ];
    for (name, text, want) in rows {
        assert_eq!(calls(style(name), text), [("weather".to_owned(), Value::from(want))], "{name}");
    }
    let text = "<|channel|>final<|message|>Yes";
    assert_eq!(read(style("channels"), text).1, "Yes");
    let nothing = calls(style("qwen3-coder"), "<tool_call>\n<function=weath");
    assert!(nothing.is_empty(), "{nothing:?}");
}

#[test]
fn messages_in_channels_are_thoughts_text_and_calls() {
    let answer = "<|channel|>analysis<|message|>Hm, 1 < 2.<|end|><|start|>assistant<|channel|>analysis<|message|>So.<|end|>\
                  <|start|>assistant<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary \
                  to=functions.now <|constrain|>json<|message|>{}<|call|>";
    let want = (
        "Hm, 1 < 2.\n\nSo.".to_owned(),
        "Let me see.".to_owned(),
        vec![("now".to_owned(), json!({}))],
    );
    assert_eq!(read(style("channels"), answer), want);
    let last = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|> It is 5 < 6. <|return|>";
    let want = ("Hm.".to_owned(), "It is 5 < 6.".to_owned(), Vec::new());
    assert_eq!(read(style("channels"), last), want);
    // Of a header without its end nothing is shown.
    for cut in ["<|channel|>commentary to=functions.wea", "<|start|>assistant"] {
        assert_eq!(read(style("channels"), cut), Default::default(), "{cut}");
    }
    // A form that the answer must have begins no message.
    let bare = ("".to_owned(), "{\"a\": 1}".to_owned(), Vec::new());
    assert_eq!(read(style("channels"), "{\"a\": 1}"), bare);
    // Without functions, nothing is a call.
    let form = AnswerForm { calls: None, ..form(style("channels")) };
    let (_, text, calls) = plain(divided_as(&form, AnswerStart::Fresh, &[answer]));
    assert_eq!((text.as_str(), calls.len()), ("Let me see.{}", 0));
}

#[test]
fn tags_around_an_answer_are_no_part_of_it() {
    let template = ChatTemplate::new("{# <response></response> </think> #}", "", "");
    let form = AnswerForm::new(None, Some(&template));
    let rows = [
        ("<think>a</think>\n<response>\nYes <b>.\n</response>", ("a", "Yes <b>.")),
        ("<response>Yes.</response>\n", ("", "Yes.\n")),
        ("Yes.", ("", "Yes.")),
        ("<think>a</think><respon", ("a", "<respon")),
    ];
    for (answer, want) in rows {
        let pieces: Vec<&str> = answer.split_inclusive(|_: char| true).collect();
        for pieces in [&[answer][..], &pieces] {
            let (thoughts, text, _) = plain(divided_as(&form, AnswerStart::Fresh, pieces));
            assert_eq!((thoughts.as_str(), text.as_str()), want, "{answer:?}");
        }
    }
}
