//! Templates give what Jinja2 makes of them, as the package transformers configures it.

use super::*;

/// Texts of Jinja2 itself, made by `tests/reference/jinja.py`.
#[derive(serde::Deserialize)]
struct Reference {
    now: String,
    variables: BTreeMap<String, serde_json::Value>,
    cases: Vec<(String, Option<String>)>,
}

#[test]
fn templates_give_the_texts_of_jinja2() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/reference/jinja.json");
    let text = std::fs::read_to_string(path).unwrap();
    let reference: Reference = serde_json::from_str(&text).unwrap();
    assert!(reference.cases.len() > 700);
    let now: jiff::civil::DateTime = reference.now.parse().unwrap();
    let now = now.to_zoned(jiff::tz::TimeZone::system()).unwrap();
    let now = Some(now.timestamp().into());
    let variables = reference.variables;
    let options = ChatOptions { now, variables, ..ChatOptions::default() };
    let mut failures = Vec::new();
    for (source, wanted) in reference.cases {
        let found = ChatTemplate::new(&source, "<s>", "</s>").render_with(&[], &options);
        match (found, wanted) {
            (Ok(found), Some(wanted)) if found == wanted => {}
            (Err(_), None) => {}
            (found, wanted) => failures.push(format!("{source:?}: {found:?}, not {wanted:?}")),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_prompt_has_one_date() {
    let source = "{{ strftime_now('%Y-%m-%d') }} {{ messages[0].content }}";
    let template = ChatTemplate::new(source, "", "");
    let before = jiff::Zoned::now().date();
    let prompt = template.render(&[Message::user("x")], false).unwrap();
    let after = jiff::Zoned::now().date();
    let dates = [before, after].map(|date| format!("{date} x"));
    assert!(dates.contains(&prompt), "{prompt}, not {dates:?}");
    let options = ChatOptions::default();
    let other = [("strftime_now".to_owned(), serde_json::json!("no function"))];
    let options = ChatOptions { variables: other.into(), ..options };
    assert!(template.render_with(&[Message::user("x")], &options).is_err());
}

/// What is refused names what it is.
#[test]
fn methods_that_change_a_value_are_refused() {
    for source in [
        "{{ [1].append(2) }}",
        "{% set l = [1] %}{{ l.extend([2]) }}",
        "{{ {'a': 1}.update({'b': 2}) }}",
        "{{ {'a': 1}.pop('a') }}",
        "{{ [2, 1].sort() }}",
        "{{ 'a'.nothing() }}",
        "{{ 'a'|nothing }}",
        "{{ 'a'.split('a', 1, 2) }}",
        "{{ 'a'.split(separator='a') }}",
        "{{ 'a'|trim(char='a') }}",
        "{{ 'a'.index('b') }}",
        "{{ [1].index(2) }}",
        "{{ '%d' % 'a' }}",
        "{{ '%s %s' % ('a',) }}",
        "{{ '%s' % ('a', 'b') }}",
        "{{ 'a' % 'b' }}",
        "{{ 'a' * 'b' }}",
        "{{ 'a' + 1 }}",
        "{{ 1 % 0 }}",
        "{{ 'abc'|center(5).nothing }}x{{ 1 ** 'a' }}",
        "{{ [1]|batch(0) }}",
        "{{ 'abcdef'|truncate(2) }}",
        "{{ 'abcdef'|truncate(-9223372036854775808) }}",
        "{{ '%é' % 1 }}",
        "{{ '%' % 1 }}",
        "{{ '{é}'.format(1) }}",
        "{{ '{'.format(1) }}",
        "{{ '{a!é}'.format(a=1) }}",
    ] {
        assert!(
            matches!(
                render(source, &[]),
                Err(ChatError::Failed { .. } | ChatError::Invalid { .. })
            ),
            "{source}"
        );
    }
}
