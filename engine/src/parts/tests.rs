mod styles;

use super::*;
use crate::tools::{BARE as BARE_STYLE, TAGGED as TAGGED_STYLE, ToolCall};

/// A form of answers without the functions.
#[derive(Clone, Copy, Debug)]
struct Plan {
    style: Option<&'static Style>,
    one_call: bool,
    thoughts: Option<ThoughtTags>,
}

impl Plan {
    fn form(self) -> AnswerForm {
        AnswerForm {
            style: self.style,
            calls: self.style.map(|_| Arc::default()),
            one_call: self.one_call,
            thoughts: self.thoughts,
            tags: None,
        }
    }
}

/// What the pieces of an answer are divided into.
fn divided(form: Plan, start: AnswerStart, pieces: &[&str]) -> Answer {
    divided_as(&form.form(), start, pieces)
}

/// What the pieces of an answer are divided into. The parts of a call say the same as its end.
fn divided_as(form: &AnswerForm, start: AnswerStart, pieces: &[&str]) -> Answer {
    let mut reader = AnswerReader::new(form, start);
    let mut parts: Vec<Part> =
        pieces.iter().flat_map(|piece| reader.push((*piece).to_owned())).collect();
    parts.extend(reader.finish());
    let answer = Answer::of(parts.clone());
    let mut begun: Vec<ToolCall> = Vec::new();
    for part in parts {
        match part {
            Part::Call { id, name } => begun.push(ToolCall { id, name, arguments: String::new() }),
            Part::Arguments(text) => begun.last_mut().expect("a call").arguments.push_str(&text),
            Part::CallEnd(call) => assert_eq!(begun.last(), Some(&call)),
            Part::Thought(_) | Part::Text(_) => {}
        }
    }
    assert_eq!(begun, answer.calls, "each call ends");
    answer
}

/// Thoughts, text, and the names and arguments of calls.
type Plain = (String, String, Vec<(String, String)>);

fn plain(answer: Answer) -> Plain {
    let call = |call: ToolCall| (call.name, call.arguments);
    (answer.thoughts, answer.text, answer.calls.into_iter().map(call).collect())
}

const TAGS: ThoughtTags = ThoughtTags { open: "<think>", close: "</think>" };
static TAGGED: Plan = Plan { style: Some(&TAGGED_STYLE), one_call: false, thoughts: None };
static BARE: Plan = Plan { style: Some(&BARE_STYLE), one_call: false, thoughts: None };
static THINKS: Plan = Plan { style: Some(&TAGGED_STYLE), one_call: false, thoughts: Some(TAGS) };
static NO_CALLS: Plan = Plan { style: None, one_call: false, thoughts: Some(TAGS) };

type Case =
    (&'static str, &'static Plan, &'static str, [&'static str; 2], &'static [[&'static str; 2]]);

/// What it is, the form, the answer, its thoughts and its text, and its calls.
static CASES: [Case; 25] = [
    ("text", &TAGGED, "It is 5 < 6.", ["", "It is 5 < 6."], &[]),
    (
        "a call after text",
        &TAGGED,
        "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>",
        ["", "Let me see."],
        &[["f", "{\"a\": [1, \"}\"]}"]],
    ),
    (
        "two calls",
        &TAGGED,
        "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{\"x\":\"é\"}}</tool_call>",
        ["", ""],
        &[["f", "{}"], ["g", "{\"x\":\"é\"}"]],
    ),
    (
        "two calls between two tags",
        &TAGGED,
        "<tool_call>{\"name\":\"f\",\"arguments\":{}}\n{\"name\":\"g\"}</tool_call>",
        ["", ""],
        &[["f", "{}"], ["g", "{}"]],
    ),
    (
        "arguments before the name",
        &TAGGED,
        "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>",
        ["", ""],
        &[["f", "{\"a\": 1}"]],
    ),
    (
        "arguments as a text",
        &TAGGED,
        r#"<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>"#,
        ["", ""],
        &[["f", "{\"a\": 1}"]],
    ),
    (
        "members after the arguments",
        &TAGGED,
        "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"id\": {\"n\": \"}\"}}</tool_call> Done.",
        ["", "Done."],
        &[["f", "{}"]],
    ),
    (
        "no object between the tags",
        &TAGGED,
        "<tool_call>f(1)</tool_call>",
        ["", "<tool_call>f(1)</tool_call>"],
        &[],
    ),
    (
        "an object without a name",
        &TAGGED,
        "a <tool_call>{\"arguments\": {}}</tool_call> b",
        ["", "a <tool_call>{\"arguments\": {}}</tool_call> b"],
        &[],
    ),
    (
        "cut off before the arguments",
        &TAGGED,
        "<tool_call>{\"name\": \"f\", \"argu",
        ["", "<tool_call>{\"name\": \"f\", \"argu"],
        &[],
    ),
    (
        "cut off inside the arguments",
        &TAGGED,
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x</to",
        ["", ""],
        &[["f", "{\"a\": \"x</to"]],
    ),
    (
        "a tag that closes inside the arguments",
        &TAGGED,
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call> b",
        ["", "b"],
        &[["f", "{\"a\": 1"]],
    ),
    (
        "cut off inside the tag after a call",
        &TAGGED,
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</to",
        ["", ""],
        &[["f", "{}"]],
    ),
    ("a tag that does not end", &TAGGED, "x <tool_cal", ["", "x <tool_cal"], &[]),
    (
        "an object as a call",
        &BARE,
        " {\"name\":\"f\",\"parameters\":{\"a\":1}}",
        ["", ""],
        &[["f", "{\"a\":1}"]],
    ),
    (
        "a list of calls",
        &BARE,
        "[{\"name\":\"f\",\"arguments\":{}}, {\"name\":\"g\",\"arguments\":{\"b\":[]}}]",
        ["", ""],
        &[["f", "{}"], ["g", "{\"b\":[]}"]],
    ),
    ("an object that is no call", &BARE, "{\"city\": \"Bern\"}", ["", "{\"city\": \"Bern\"}"], &[]),
    ("a list that is no call", &BARE, "[1, 2]", ["", "[1, 2]"], &[]),
    ("an empty list", &BARE, "[]", ["", "[]"], &[]),
    ("braces after text", &BARE, "Use {\"name\":\"f\"}", ["", "Use {\"name\":\"f\"}"], &[]),
    ("thoughts", &THINKS, "<think>\nHm, 1 < 2.\n</think>\n\nYes.", ["Hm, 1 < 2.", "Yes."], &[]),
    (
        "thoughts before a call",
        &THINKS,
        "<think>a\n\nb</think>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
        ["a\n\nb", ""],
        &[["f", "{}"]],
    ),
    ("thoughts without an end", &NO_CALLS, "<think>a b", ["a b", ""], &[]),
    ("empty thoughts", &NO_CALLS, "<think>\n\n</think>\n\nYes.\n", ["", "Yes.\n"], &[]),
    ("a tag inside the answer", &NO_CALLS, "\nUse <think> here.", ["", "\nUse <think> here."], &[]),
];

#[test]
fn an_answer_is_divided_wherever_its_tokens_end() {
    for (what, form, answer, [thoughts, text], calls) in &CASES {
        let calls = calls.iter().map(|[name, arguments]| ((*name).into(), (*arguments).into()));
        let want: Plain = ((*thoughts).into(), (*text).into(), calls.collect());
        assert_eq!(plain(divided(**form, AnswerStart::Fresh, &[*answer])), want, "{what}");
        let pieces: Vec<&str> = answer.split_inclusive(|_: char| true).collect();
        assert_eq!(
            plain(divided(**form, AnswerStart::Fresh, &pieces)),
            want,
            "{what}, character by character"
        );
    }
}

#[test]
fn thoughts_that_the_prompt_begins_need_no_tag() {
    let pieces = ["Hm.\n</thi", "nk>\n", "Yes."];
    let want = ("Hm.".into(), "Yes.".into(), Vec::new());
    assert_eq!(plain(divided(NO_CALLS, AnswerStart::Thinking, &pieces)), want);
}

#[test]
fn an_answer_that_continues_a_text_keeps_its_white_space_and_begins_no_thoughts() {
    for form in [TAGGED, BARE, THINKS, NO_CALLS] {
        let text = plain(divided(form, AnswerStart::Within, &[" 4", "2 <think>"]));
        assert_eq!(text, (String::new(), " 42 <think>".into(), Vec::new()), "{form:?}");
    }
    let after = plain(divided(NO_CALLS, AnswerStart::Thought, &["\n\n", "Yes. "]));
    assert_eq!(after, (String::new(), "Yes. ".into(), Vec::new()));
}

#[test]
fn only_the_first_call_counts_where_one_is_allowed() {
    let one = |form| Plan { one_call: true, ..form };
    let call = |name: &str| format!("{{\"name\": \"{name}\", \"arguments\": {{\"a\": 1}}}}");
    let (f, g) = (call("f"), call("g"));
    let tagged = format!("A <tool_call>{f}</tool_call>\n<tool_call>{g}</tool_call> b");
    let want = vec![("f".to_owned(), "{\"a\": 1}".to_owned())];
    let divided_tagged = plain(divided(one(TAGGED), AnswerStart::Fresh, &[&tagged]));
    assert_eq!(divided_tagged, (String::new(), "A b".into(), want.clone()));
    let bare = format!("[{f}, {g}]");
    let divided_bare = plain(divided(one(BARE), AnswerStart::Fresh, &[&bare]));
    assert_eq!(divided_bare, (String::new(), String::new(), want));
}

#[test]
fn arguments_arrive_with_their_tokens() {
    let mut reader = AnswerReader::new(&TAGGED.form(), AnswerStart::Fresh);
    let mut push = |text: &str| {
        let kept = |part: Part| match part {
            Part::Call { name, .. } => format!("call {name}"),
            Part::Arguments(text) => text,
            Part::CallEnd(_) => "end".to_owned(),
            part => format!("{part:?}"),
        };
        reader.push(text.to_owned()).into_iter().map(kept).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(push("<tool_call>{\"name\": \"f\", "), none);
    assert_eq!(push("\"arguments\": {\"a"), ["call f", "{\"a"]);
    assert_eq!(push("\": 1"), ["\": 1"]);
    assert_eq!(push("}}"), ["}", "end"]);
    assert_eq!(push("</tool_call>"), none);
}

/// Splitting an answer changes nothing, whatever it consists of.
#[test]
fn pieces_are_divided_as_the_whole() {
    const WORDS: [&str; 15] = [
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "{\"name\": \"f\", ",
        "\"arguments\": {",
        "\"x\\\"{\": 1",
        "}",
        "}}",
        "[",
        "]",
        ", ",
        " \n",
        "é",
        "<",
    ];
    let choices = 0..WORDS.len().pow(4);
    for number in choices {
        let word = |at: u32| WORDS[number / WORDS.len().pow(at) % WORDS.len()];
        let answer = [word(3), word(2), word(1), word(0)].concat();
        let pieces: Vec<&str> = answer.split_inclusive(|_: char| true).collect();
        for form in [TAGGED, BARE, THINKS] {
            let whole = plain(divided(form, AnswerStart::Fresh, &[&answer]));
            assert_eq!(
                plain(divided(form, AnswerStart::Fresh, &pieces)),
                whole,
                "{answer:?} as {form:?}"
            );
        }
    }
}
