use super::to_lark;
use crate::structured::GrammarError;

#[test]
fn a_grammar_without_recursion_is_one_expression() {
    let rows = [
        ("root ::= \"a.b\"", r"start: /a\x{2E}b/"),
        ("root ::= [a-c0\\-\\]] [^\"\\n]", r"start: /[a-c0\x{2D}\x{5D}][^\x{22}\x{A}]/"),
        (
            "root ::= x{2} x{1,} x{0,3} x? x* x+\nx ::= \"x\"",
            concat!(
                r"start: /(?:(?:x)){2,2}(?:(?:x)){1,}(?:(?:x)){0,3}",
                r"(?:(?:x)){0,1}(?:(?:x)){0,}(?:(?:x)){1,}/"
            ),
        ),
        (
            "# a comment\nroot ::= ( # another\n  \"a\" |\n  \"b\" )? .\n",
            r"start: /(?:(?:a|b)){0,1}(?s:.)/",
        ),
        ("root ::= \"a\"\n  | \"b\"\n  |\n", r"start: /(?:a|b|)/"),
        ("root ::= \"\\x41\\u00e9\\U0001F600/\"", r"start: /A\x{E9}\x{1F600}\x{2F}/"),
        ("root::=dataType\r\ndataType ::=\n \"T-1\"\r\n", r"start: /(?:T\x{2D}1)/"),
    ];
    for (gbnf, lark) in rows {
        assert_eq!(
            to_lark(gbnf).map(|lark| lark.trim_end().to_owned()),
            Ok(lark.to_owned()),
            "{gbnf}"
        );
    }
}

#[test]
fn sequences_between_recursive_rules_are_lexemes() {
    let gbnf = "root ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\nvalue ::= root | digit+\n\
                digit ::= [0-9]\nws ::= [ \\t]*\n";
    let lark = to_lark(gbnf).expect("a grammar");
    let ws = r"(?:(?:[\x{20}\x{9}]){0,})";
    let wanted = format!(
        "start: r0\nr0: /\\x{{5B}}{ws}/ (r1 (/\\x{{2C}}{ws}/ r1 )* )? /\\x{{5D}}{ws}/ \nr1: (r0 | /(?:(?:[0-9])){{1,}}/)\n"
    );
    assert_eq!(lark, wanted);
}

#[test]
fn an_error_names_its_line_and_column() {
    let rows = [
        ("", 1, 1, "there is no rule 'root'"),
        ("root ::= \"a\"\nb", 2, 2, "expected '::=', found the end of the grammar"),
        ("root = \"a\"", 1, 6, "expected '::=', found '='"),
        ("root ::= \"a\"\n\n  root ::= \"b\"", 3, 3, "rule 'root' is defined twice"),
        ("root ::= \"a\" other", 1, 14, "there is no rule 'other'"),
        ("root ::= (\"a\"\n | other", 2, 9, "expected ')', found the end of the grammar"),
        ("root ::= \"a", 1, 10, "the text is not closed"),
        ("root ::= [a", 1, 10, "the class is not closed"),
        ("root ::= []", 1, 10, "the class is empty"),
        ("root ::= [z-a]", 1, 11, "the range ends before it begins"),
        ("root ::= \"\\q\"", 1, 11, "unknown escape '\\q'"),
        ("root ::= \"\\xZZ\"", 1, 13, "expected 2 hexadecimal digits, found 'Z'"),
        ("root ::= \"\\uD800\"", 1, 11, "0xD800 is no character"),
        ("root ::= \"a\"{3,2}", 1, 13, "2 is less than 3"),
        ("root ::= \"a\"{x}", 1, 14, "expected a number, found 'x'"),
        ("root ::= \"a\"{1000000}", 1, 14, "at most 100000 repetitions are supported"),
        ("root ::= <think>", 1, 10, "tokens (<…>) are not supported"),
        ("root ::= \"a\" )", 1, 14, "expected an operator"),
        ("é ::= \"a\"", 1, 1, "expected the name of a rule, found 'é'"),
    ];
    for (gbnf, line, column, says) in rows {
        match to_lark(gbnf) {
            Err(GrammarError::Gbnf { line: l, column: c, reason }) => {
                assert!(
                    (l, c) == (line, column) && reason.starts_with(says),
                    "{gbnf}: {l}:{c} {reason}"
                );
            }
            other => panic!("{gbnf}: {other:?}"),
        }
    }
}

#[test]
fn hostile_grammars_are_refused() {
    let doubling: String =
        (0..60).map(|at| format!("r{at} ::= r{} r{}\n", at + 1, at + 1)).collect();
    let rows = [
        (format!("root ::= {}", "(".repeat(100_000)), "nested in more than"),
        (format!("root ::= \"a\"{}", "*".repeat(100_000)), "more than 8 repetitions"),
        (format!("root ::= r0\n{doubling}r60 ::= \"a\""), "bytes"),
        ("root ::= \"a\"\n".to_owned() + &"r ::= \"a\"\n".repeat(3000), "more than 2000 rules"),
    ];
    for (gbnf, says) in rows {
        let error = to_lark(&gbnf).expect_err("a hostile grammar").to_string();
        assert!(error.contains(says), "{error}");
    }
}
