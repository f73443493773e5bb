//! A template from a hostile file ends in an error, soon and in bounded memory.

use super::*;

fn error(source: &str) -> String {
    let error = render(source, &[("user", "hello"), ("assistant", "yes")]).unwrap_err();
    let is_typed = matches!(
        error,
        ChatError::TooComplex { .. }
            | ChatError::Exceeded { .. }
            | ChatError::Invalid { .. }
            | ChatError::Failed { .. }
    );
    assert!(is_typed, "{error:?}");
    error.to_string()
}

/// Repeats a part of an expression.
fn chain(first: &str, part: &str, last: &str) -> String {
    format!("{{{{ {first}{}{last} }}}}", part.repeat(8000))
}

#[test]
fn a_long_chain_of_operators_is_refused() {
    let rows = [
        chain("1", "+1", ""),
        chain("", "not ", "x"),
        chain("", "-", "1"),
        chain("x", ".a", ""),
        chain("x", "|trim", ""),
        chain("x", "~x", ""),
        chain("x", " and x", ""),
        chain("x", " or x", ""),
        chain("2", "**2", ""),
        chain("x", "[0]", ""),
        chain("x", "()", ""),
        chain("", "(", "x"),
        chain("", "[", "x"),
        chain("1", " if x else 1", ""),
        chain("1", " is odd", ""),
        chain("1", " < 2", ""),
        format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(8000)),
        "{% if x %}".repeat(8000),
        "{% for a in x %}".repeat(8000),
        "{% set x %}".repeat(8000),
        "{% filter trim %}".repeat(8000),
        "{% macro a() %}".repeat(8000),
        chain("1", " // 2", ""),
        chain("1", " % 2", ""),
        chain("x", "['a']", ""),
        chain("x", "[0:1]", ""),
        chain("", "{'a': ", "x"),
        chain("", "f(", "x"),
        chain("x", " is defined and x", ""),
        "{% if not x %}".repeat(8000),
        format!("{{% if x %}}{}{{% endif %}}", "{% else %}{% if x %}".repeat(8000)),
        format!("{}{{{{ x }}}}", " ".repeat(200_000)),
    ];
    for source in rows {
        let error = error(&source);
        assert!(error.contains("tokenizer.chat_template, line 1"), "{error}");
    }
}

#[test]
fn tags_that_chat_templates_do_not_use_are_refused() {
    let rows = [
        "{% include 'a' %}",
        "{% extends 'a' %}",
        "{% block a %}{% endblock %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% do f() %}",
        "{{ lapwing_step(0, 0) }}",
        "{% set lapwing_meter = 1 %}",
    ];
    for source in rows {
        assert!(error(source).contains("is not supported"), "{source}");
    }
}

#[test]
fn a_value_or_output_beyond_its_limit_stops_the_template() {
    let loop_of = |body: &str| format!("{{% for i in range(9000) %}}{body}{{% endfor %}}");
    let in_ns =
        |body: &str| format!("{{% set ns = namespace(s='ab', l=['ab']) %}}{}", loop_of(body));
    let rows = [
        "{{ messages | tojson(indent=100000000000) }}".to_owned(),
        "{{ messages | tojson(false, 100000000000) }}".to_owned(),
        "{{ [1, 2] | tojson(separators=('a' * 1000, ':')) }}".to_owned(),
        "{{ 'a' | indent('ab' * 1000) }}".to_owned(),
        "{{ '%100000000s' | format('a') }}".to_owned(),
        "{{ '{:>1000000000}'.format('a') }}".to_owned(),
        "{{ '{:>{}}'.format('a', 1000000000) }}".to_owned(),
        "{{ 'a' | indent(1000000000) }}".to_owned(),
        "{{ 'a\n' | indent(width=1000000000) }}".to_owned(),
        "{{ [1] | batch(1000000000, 'a') }}".to_owned(),
        "{{ [1] | slice(1000000000) }}".to_owned(),
        "{{ 'a' * 100000000 }}".to_owned(),
        "{{ [1] * 100000000 }}".to_owned(),
        "{{ 10000000 * 'ab' * 10 }}".to_owned(),
        "{{ 'a' * 2 ** 60 }}".to_owned(),
        "{{ 10 ** 1000000000 }}".to_owned(),
        "{{ 2 ** 64 ** 64 }}".to_owned(),
        "{{ '%1000000000d' % 1 }}".to_owned(),
        "{{ '%*d' % (1000000000, 1) }}".to_owned(),
        "{{ '%.1000000000f' % 1.5 }}".to_owned(),
        "{{ '{0:>1000000000}'.format(1) }}".to_owned(),
        "{{ 'a' | truncate(1000000000, end='b' * 10000000) }}".to_owned(),
        "{{ 'a b' | wordwrap(1, wrapstring='b' * 1000000) }}".to_owned(),
        "{{ 'a'.ljust(1000000000) }}{{ 'a'.rjust(1000000000, 'x') }}".to_owned(),
        "{{ 'a\t'.expandtabs(1000000000) }}".to_owned(),
        "{% for a in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}".to_owned(),
        "{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}".to_owned(),
        format!("{{% set s = '%(a)s%(a)s' %}}{}", "{% set s = s % {'a': s} %}".repeat(40)),
        format!("{{% set s = '{{0}}{{0}}' %}}{}", "{% set s = s.format(s) %}".repeat(40)),
        format!("{{% set s = 'a' %}}{}", "{% set s = s ~ s ~ s ~ s %}".repeat(40)),
        format!("{{% set s = 'ab' %}}{}", "{% with t = s + s %}{% set s = t %}".repeat(40) + &"{% endwith %}".repeat(40)),
        "{{ range(1000000000) | list }}".to_owned(),
        "{% for i in range(99000) %}{% endfor %}".to_owned(),
        "{{ 'a' | center(1000000000) }}".to_owned(),
        "{{ 'a'.zfill(1000000000) }}".to_owned(),
        format!("{{% set s = 'ab' %}}{}", "{% set s = s + s %}".repeat(40)),
        format!("{{% set s = ['ab'] %}}{}", "{% set s = s + s %}".repeat(40)),
        format!("{{% set s = ['ab'] %}}{}", "{% set s = [s, s] %}".repeat(40)),
        format!("{{% set s = 'ab' %}}{}", "{% set s = s.replace('', s) %}".repeat(40)),
        format!("{{% set s = 'ab' %}}{}", "{% set s = s | replace('a', s) %}".repeat(60)),
        format!("{{% set s = 'ab' %}}{}", "{% set s = s.join([s, s, s]) %}".repeat(40)),
        format!("{{% set s = 'ab' %}}{}", "{% set s = [s, s] | join(s) %}".repeat(40)),
        format!("{{% set s = 'ab' %}}{}", "{% set s %}{{ s }}{{ s }}{% endset %}".repeat(40)),
        in_ns("{% set ns.s = ns.s + ns.s %}"),
        in_ns("{% set ns.s = ns.s ~ ns.s %}"),
        in_ns("{% set ns.l = ns.l + ns.l %}"),
        in_ns("{% set ns.l = [ns.l] %}"),
        in_ns("{% set ns.l = {'a': ns.l} %}"),
        in_ns("{% set ns.n = ns %}"),
        in_ns("{% set ns.n = [ns] %}"),
        in_ns("{% set ns.s = ns.s + 'abcdefghijklmnopqrstuvwxyz' * 64 %}"),
        "{% macro f(s) %}{{ f(s + s) }}{% endmacro %}{{ f('ab') }}".to_owned(),
        "{% macro f(s) %}{{ f([s]) }}{% endmacro %}{{ f('ab') }}".to_owned(),
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}".to_owned(),
        loop_of(&loop_of("some text")),
        format!("{{% set s %}}{}{{% endset %}}", loop_of(&loop_of(&"some text".repeat(1000)))),
        format!("{{% set s = 'ab' * 64 %}}{}", loop_of(&loop_of("{{ s }}"))),
    ];
    for source in rows {
        error(&source);
    }
}

#[test]
fn work_is_counted_by_the_size_of_the_operands() {
    let long = "{% set l = range(15000) | list %}{% set s = l | string %}";
    let rows = [
        "{% if l | tojson %}{% endif %}",
        "{% if l | sort %}{% endif %}",
        "{% if l | unique %}{% endif %}",
        "{% if 'x' in l %}{% endif %}",
        "{% if l == l %}{% endif %}",
        "{% if s == s %}{% endif %}",
        "{% if s < s %}{% endif %}",
        "{% if l is eq(l) %}{% endif %}",
        "{% if (s + s) %}{% endif %}",
        "{% if (s ~ s) %}{% endif %}",
        "{% if s[::-1] %}{% endif %}",
        "{% if s.upper() %}{% endif %}",
        "{% if s.count('x') %}{% endif %}",
        "{% if s | upper %}{% endif %}",
        "{% if l | select('eq', s) | list %}{% endif %}",
        "{% for a in l if a in l %}{% endfor %}",
        "{% for a in l %}{% endfor %}",
    ];
    for row in rows {
        let source = format!(
            "{long}{{% for i in range(15000) %}}{{% for j in range(15000) %}}{row}{{% endfor %}}{{% endfor %}}"
        );
        let error = error(&source);
        assert!(error.contains("was stopped: it takes too"), "{row}: {error}");
    }
}

#[test]
fn a_template_is_compiled_when_it_is_used() {
    let template = ChatTemplate::new(&"{% if %}".repeat(100_000), "", "");
    assert_eq!(template.source().len(), 800_000);
    assert!(template.render(&[], false).is_err());
}

/// White space, scopes and values are the same with and without the inserted calls.
#[test]
fn inserted_calls_change_nothing() {
    let rows = [
        ("{% for a in [1, 2] %}\n  x{{ a }}\n{% endfor %}\n.", "  x1\n  x2\n."),
        ("{% for a in [1, 2] -%}\n  x{{ a }}\n{%- endfor %}\n.", "x1x2."),
        ("{% for a in [1, 2] +%}\nx{% endfor %}", "\nx\nx"),
        ("{% for a in [1, 2, 3] if a != 2 %}{{ a }}{% else %}none{% endfor %}", "13"),
        ("{% for a in [1] if a == 2 %}{{ a }}{% else %}none{% endfor %}", "none"),
        ("{% for a in [1, 2] if (a if a == 1 else none) %}{{ a }}{% endfor %}", "1"),
        ("{% for a, b in {'x': 1} | items %}{{ a }}{{ b }}{% endfor %}", "x1"),
        ("{% set a = 1 if false else 2 %}{{ a }}", "2"),
        ("{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"),
        ("{% set a %}\n x {% endset %}{{ a | trim }}", "x"),
        ("{% set a = b %}{{ a is defined }}", "False"),
        ("{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}", "2"),
        (
            "{% macro f(a, b=[1, 2], c=(3, 4)) -%}\n {{ a }}{{ b }}{% endmacro %}{{ f('x') }}",
            "x[1, 2]",
        ),
        ("{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}", "False"),
        (
            "{% macro f(ns) %}{% set ns.a = 2 %}{% endmacro %}{% set n = namespace() %}{{ f(n) }}{{ n.a }}",
            "2",
        ),
        ("{% with a = 1, b = [2, 3] -%}\n {{ a }}{{ b }} {%- endwith %}.", "1[2, 3]."),
        (
            "{% set a=3%2%}{%set b='x'*2~'y'%}{{a}}{{b}}{% for i in [1]if i%2 %}{{i}}{% endfor %}",
            "1xxy1",
        ),
        (
            "{{ -7 % 3 }}{{ (2 + 3 * 4 % 5 ** 1) ~ '!' }}{{ (1 + 2) * -1 }}{{ [1 % 2, {'a': 3 * 3}] }}",
            "24!-3[1, {'a': 9}]",
        ),
        (
            "{{ 'a' if (5 % 2) is odd and 4 % 2 == 0 else 'b' }}{{ 7 % 4|abs }}{{ f is defined }}",
            "a3False",
        ),
        ("{{ [1, 2, 3][1:][0] }}{{ [][::-1] }}{{ 'ab'[:1 % 2]~'c'[0:] }}", "2[]ac"),
        ("{{ 'ab' * 2 }}{{ 2 * 3 }}{% set x = {'y': 2} %}{{ 'a' * x.y + 'b' }}", "abab6aab"),
        ("{% raw %}{% for %}{{{% endraw %}{# {% if #}.", "{% for %}{{."),
        ("{{ '%}' }}{{ \"{{ }}\" }}{{ {'a': {'b': 1}}['a']['b'] }}", "%}{{ }}1"),
        (
            "{%- for a in 'x'.split() %}{{ loop.index }}{{ loop.last }}{% break %}{% endfor %}",
            "1True",
        ),
    ];
    for (source, expected) in rows {
        assert_eq!(
            render(source, &[]).map_err(|e| e.to_string()).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}
