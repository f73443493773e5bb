//! Texts around messages, and elements in elements.

use super::*;

/// Elements of objects and lists become JSON as their schema says, or as they look.
#[test]
fn elements_in_elements_are_objects_and_lists() {
    let place = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "item": { "type": "string" }, "at": { "type": "array", "items": { "type": "number" } },
    } });
    let schema = json!({ "type": "object", "$defs": { "place": place }, "properties": {
        "places": { "type": "array", "items": { "$ref": "#/$defs/place" } }, "one": { "$ref": "#/$defs/place" }, "none": { "type": "array" },
        "empty": { "type": "object" }, "any": {},
    } });
    let functions = Tools::new([Tool::new("map").parameters(schema)]);
    let arguments = json!({
        "places": [{ "name": "7", "at": [1.5, 2] }, { "name": " \n", "at": [] }], "one": { "item": "a", "name": "<b>" }, "none": [],
        "empty": {}, "any": { "k": [true, "x y", { "n": -1 }] },
    });
    let style = style("minimax-m3");
    let written = style.write(&[Called { name: "map", arguments: &arguments }]);
    assert!(
        written.contains("]<]minimax[>[<at>]<]minimax[>[<item>1.5]<]minimax[>[</item>"),
        "{written}"
    );
    let calls = Some(Arc::new(functions.signatures()));
    let form = AnswerForm { style: Some(style), calls, ..AnswerForm::default() };
    let pieces: Vec<&str> = written.split_inclusive(|_: char| true).collect();
    for pieces in [&[&*written][..], &pieces] {
        let (_, text, calls) = plain(divided_as(&form, AnswerStart::Fresh, pieces));
        let found: Value = serde_json::from_str(&calls[0].1).expect("JSON");
        assert_eq!((text.as_str(), found), ("", arguments.clone()));
    }
}

/// The texts around messages are in no part of an answer, whatever follows them.
#[test]
fn texts_around_messages_are_left_out() {
    let rows = [
        (
            "kimi-k3",
            "<|open|>response<|sep|>Use response.<|close|>response<|sep|><|close|>message<|sep|>",
            "Use response.",
        ),
        // The prompt has begun the text.
        ("kimi-k3", "Yes.<|close|>response<|sep|><|close|>message<|sep|>", "Yes."),
        ("solar-open", "<|content|>Yes.<|end|>", "Yes."),
        ("solar-open", "<|begin|>assistant<|content|>Yes, <|beg<|end|>", "Yes, <|beg"),
        ("gigachat3", "Yes.<|message_sep|>\n\n", "Yes."),
        ("gigachat3", "Yes.<|message_sep|>\n\nfunction", "Yes.function"),
        ("functionary-recipients", "all\nYes >>> no.", "Yes >>> no."),
        ("functionary-recipients", "all", "all"),
        ("functionary-recipients", "{\"a\": 1}", "{\"a\": 1}"),
        ("channels", " to=be or not to be", "to=be or not to be"),
        ("channels", "to=5\nis it", "to=5\nis it"),
    ];
    for (name, answer, want) in rows {
        let want = (String::new(), want.to_owned(), Vec::new());
        assert_eq!(read(style(name), answer), want, "{name}: {answer}");
    }
}

#[test]
fn a_model_may_say_that_it_does_not_think() {
    let tags = ThoughtTags { open: "<mm:think>", close: "</mm:think>" };
    let form = AnswerForm { thoughts: Some(tags), ..form(style("minimax-m3")) };
    for (answer, want) in [
        ("</mm:think>Yes.", ["", "Yes."]),
        ("<mm:think>a</mm:think>b", ["a", "b"]),
        ("</mm", ["", "</mm"]),
    ] {
        let pieces: Vec<&str> = answer.split_inclusive(|_: char| true).collect();
        for pieces in [&[answer][..], &pieces] {
            let (thoughts, text, _) = plain(divided_as(&form, AnswerStart::Fresh, pieces));
            assert_eq!([thoughts.as_str(), text.as_str()], want, "{answer}");
        }
    }
}
