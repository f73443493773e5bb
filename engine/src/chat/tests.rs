//! Renders templates as found in real models.

use std::time::{Duration, SystemTime};

use super::*;

mod ending;
mod hostile;
mod python;
mod text;

const SMOLLM2: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != \
    'system' %}{{ '<|im_start|>system\nBe helpful.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + \
    message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if \
    add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const GEMMA: &str = "{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\n\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = \"\" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception(\"Conversation roles must alternate\") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (first_user_prefix if loop.first else \"\") }}
    {{- message['content'] | trim }}
    {{- '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\n' }}
{%- endif -%}
";

const LLAMA3: &str = "{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now(\"%d %b %Y\") %}
    {%- else %}
        {%- set date_string = \"26 Jul 2024\" %}
    {%- endif %}
{%- endif %}
{%- if tools is not none %}{{ 'tools' }}{% endif %}
{{- '<|start_header_id|>' + messages[0].role + '<|end_header_id|>\n\n' }}
{{- date_string }}
";

const QWEN3: &str = "{%- set ns = namespace(last=0) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
    {%- if loop.index0 > ns.last %}{% generation %}{{ content }}{% endgeneration %}
    {%- else %}
        {{- content.upper() if content.startswith('!') else content }}
    {%- endif %}
    {{- '|' }}
{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}{{ 'no thinking' }}{% endif %}
";

fn render(source: &str, turns: &[(&str, &str)]) -> Result<String, ChatError> {
    let messages: Vec<Message> =
        turns.iter().map(|(role, content)| Message::new(*role, *content)).collect();
    ChatTemplate::new(source, "<bos>", "<eos>").render(&messages, true)
}

#[test]
fn the_default_model_renders_as_its_makers_intend() {
    let prompt = render(SMOLLM2, &[("user", "Hi {{ x }}")]).unwrap();
    assert_eq!(
        prompt,
        "<|im_start|>system\nBe helpful.<|im_end|>\n<|im_start|>user\nHi {{ x }}<|im_end|>\n\
         <|im_start|>assistant\n"
    );
}

#[test]
fn block_tags_leave_no_blank_lines() {
    let turns = [("system", "Short."), ("user", " Hi "), ("assistant", "Yo"), ("user", "?")];
    assert_eq!(
        render(GEMMA, &turns).unwrap(),
        "<bos><start_of_turn>user\nShort.\n\nHi<end_of_turn>\n<start_of_turn>model\nYo\
         <end_of_turn>\n<start_of_turn>user\n?<end_of_turn>\n<start_of_turn>model\n"
    );
}

#[test]
fn a_rejection_is_told_from_a_failure() {
    let refused = render(GEMMA, &[("assistant", "me first")]).unwrap_err();
    let ChatError::Refused { message } = refused else {
        panic!("not a refusal: {refused}");
    };
    assert_eq!(message, "Conversation roles must alternate");
    assert!(matches!(render("{{ 1 + {} }}", &[]), Err(ChatError::Failed { .. })));
    assert!(matches!(render("{% if %}", &[]), Err(ChatError::Invalid { .. })));
}

#[test]
fn the_date_is_the_callers_or_today() {
    let template = ChatTemplate::new(LLAMA3, "<bos>", "");
    let messages = [Message::new("system", "x")];
    let head = "<bos><|start_header_id|>system<|end_header_id|>\n\n";
    assert!(!template.render(&messages, false).unwrap().ends_with("26 Jul 2024"));
    // Noon, so that it is the same day in most time zones.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 365 + 43_200);
    let options = ChatOptions { now: Some(now), ..ChatOptions::default() };
    assert_eq!(template.render_with(&messages, &options).unwrap(), format!("{head}01 Jan 1971"));
}

#[test]
fn python_methods_and_own_variables_work() {
    let template = ChatTemplate::new(QWEN3, "", "");
    let messages = [
        Message::new("assistant", "<think>hm</think>\n\nyes"),
        Message::new("user", "!why"),
        Message::new("assistant", "because"),
    ];
    let mut options = ChatOptions::default();
    assert_eq!(template.render_with(&messages, &options).unwrap(), "yes|!WHY|because|");
    options.variables.insert("enable_thinking".into(), false.into());
    let prompt = template.render_with(&messages, &options).unwrap();
    assert_eq!(prompt, "yes|!WHY|because|no thinking");
}

#[test]
fn none_is_not_iterable() {
    let source = "{{ 1 if tools is iterable and tools | length > 0 else 2 }}";
    assert_eq!(render(source, &[]).unwrap(), "2");
}

#[test]
fn values_are_written_as_python_writes_them() {
    let source = "{{ none }} {{ true }} {{ messages[0] | tojson }}\n{{ [1] | tojson(indent=2) }}";
    let prompt = render(source, &[("user", "<é & \"'>")]).unwrap();
    assert_eq!(prompt, "None True {\"role\": \"user\", \"content\": \"<é & \\\"'>\"}\n[\n  1\n]");
}

#[test]
fn an_endless_template_is_stopped() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}\
                   {% endfor %}{% endfor %}{% endfor %}";
    assert!(matches!(render(endless, &[]), Err(ChatError::Exceeded { .. })));
}
