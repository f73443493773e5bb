//! Prompts that end inside of their last message, and conversations whose calls have ids of another server.

use super::*;

fn continued(template: &str, messages: &[Message]) -> Result<String, ChatError> {
    let options = ChatOptions {
        // Without effect, since no new message begins.
        add_generation_prompt: true,
        continue_final_message: true,
        ..ChatOptions::default()
    };
    ChatTemplate::new(template, "<bos>", "<eos>").render_with(messages, &options)
}

/// As `apply_chat_template(…, continue_final_message=True)` of transformers.
#[test]
fn a_last_message_that_is_continued_ends_the_prompt() {
    const THINKS: &str = "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n\
                          </think>\n\n{% endif %}{{ m.content }}[/]\n{% endfor %}[assistant]";
    const DEFINED: &str = "{% for m in messages %}{{ m.role }}:{% if m.content is defined and m.content %} {{ m.content.split('</think>')[-1] }}{% endif %}\
                           {{ eos_token }}{% endfor %}";
    let asked = Message::user("My answer: who knows?");
    let answer = |text: &str| vec![asked.clone(), Message::assistant(text)];
    let rows = [
        (SMOLLM2, answer("My answer:"), "<|im_start|>assistant\nMy answer:"),
        (SMOLLM2, answer("My answer: "), "<|im_start|>assistant\nMy answer: "),
        (GEMMA, answer("My answer:"), "<start_of_turn>model\nMy answer:"),
        // The template trims it.
        (GEMMA, answer("  My answer: \n"), "<start_of_turn>model\nMy answer:"),
        (GEMMA, answer(""), "<start_of_turn>model\n"),
        (GEMMA, answer("<|im_end|> <end_of_turn>"), "model\n<|im_end|> <end_of_turn>"),
        (THINKS, answer("It is"), "[assistant]It is"),
        (DEFINED, answer("<think>a</think>It"), "assistant: It"),
    ];
    for (template, messages, end) in rows {
        let prompt = continued(template, &messages).unwrap();
        assert!(prompt.ends_with(end), "{prompt:?} ends with {end:?}");
        assert!(!prompt.contains('\u{10FFFE}'), "{prompt:?}");
    }
    let thought = Message::assistant("It is").field("reasoning_content", "Hm.");
    let prompt = continued(THINKS, &[asked.clone(), thought]).unwrap();
    assert!(prompt.ends_with("[assistant]<think>\nHm.\n</think>\n\nIt is"), "{prompt:?}");
}

#[test]
fn what_cannot_be_continued_is_refused() {
    let call = Message::assistant("").field("tool_calls", serde_json::json!([{ "name": "f" }]));
    let without =
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}";
    let rows = [
        (SMOLLM2, vec![Message::user("a"), call], "calls"),
        (SMOLLM2, vec![], "none"),
        (without, vec![Message::user("a"), Message::assistant("b")], "leaves it out"),
    ];
    for (template, messages, reason) in rows {
        let error = continued(template, &messages).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn ids_of_another_server_reach_a_template_that_wants_nine_characters() {
    const NINE: &str = "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('nine') }}\
                        {% endif %}{{ c.id }} {% endfor %}{{ m.tool_call_id }}|{% endfor %}";
    let conversation = |first: &str, second: &str| {
        let calls = serde_json::json!([{ "id": first }, { "id": second }]);
        vec![
            Message::assistant("").field("tool_calls", calls),
            Message::new("tool", "x").field("tool_call_id", second),
            Message::new("tool", "y").field("tool_call_id", first),
        ]
    };
    let template = ChatTemplate::new(NINE, "", "");
    let render = |first, second| template.render(&conversation(first, second), true).unwrap();
    let prompt = render("call_0123456789abcdefghijklmn", "toolu_01");
    let ids: Vec<&str> = prompt.split(['|', ' ']).collect();
    let [first, second, _, of_second, of_first, ""] = ids[..] else { panic!("{prompt:?}") };
    assert!(first.len() == 9 && first.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{prompt}");
    assert!(first != second && (first, second) == (of_first, of_second), "{prompt}");
    assert_eq!(render("call_0123456789abcdefghijklmn", "toolu_01"), prompt, "it stays");
    assert_eq!(render("abcdefgh1", "abcdefgh2"), "abcdefgh1 abcdefgh2 |abcdefgh2|abcdefgh1|");
    let refusing = ChatTemplate::new("{{ raise_exception('never') }}", "", "");
    let error = refusing.render(&conversation("a", "b"), true).unwrap_err().to_string();
    assert!(error.ends_with("never"), "{error}");
}
