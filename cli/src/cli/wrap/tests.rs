use super::*;

/// The text as it is written when it arrives in pieces of `size` characters.
fn written(text: &str, width: usize, size: usize) -> String {
    let mut wrap = Wrap::default();
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
    let mut out: String = pieces.map(|piece| wrap.push(&piece, width)).collect();
    out.push_str(&wrap.finish(width));
    out
}

#[test]
fn lines_are_broken_between_words_however_the_text_arrives() {
    let rows = [
        ("one two three four", "one two\nthree four"),
        ("one two\n\nthree", "one two\n\nthree"),
        ("one two \nthree", "one two \nthree"),
        ("averyverylongword and", "averyverylongword\nand"),
        ("a averyverylongword", "a\naveryverylongword"),
        ("- one two three\n- four", "- one two\n  three\n- four"),
        ("12. one two three", "12. one\n    two\n    three"),
        ("- a\n  - bb cc dd", "- a\n  - bb cc\n    dd"),
        ("- a\n    - b cc dd ee", "- a\n    - b cc\ndd ee"),
        ("鳥が飛ぶ鳥が飛ぶ", "鳥が飛ぶ鳥\nが飛ぶ"),
        ("鳥が飛ぶ鳥。飛ぶ", "鳥が飛ぶ\n鳥。飛ぶ"),
        ("abcdefg 👩\u{200d}🚀x", "abcdefg\n👩\u{200d}🚀x"),
        ("see a-b/c-d/e-f.g", "see\na-b/c-d/e-f.g"),
        (
            "```\nlet x = one + two;\n```\none two three",
            "```\nlet x = one + two;\n```\none two\nthree",
        ),
        (
            "~~~py\n```\none two three\n~~~\none two three",
            "~~~py\n```\none two three\n~~~\none two\nthree",
        ),
        ("| one | two | three |", "| one | two | three |"),
        ("    one = two + three", "    one = two + three"),
        ("  one two three", "  one two\n  three"),
        ("", ""),
        ("  ", "  "),
    ];
    for (text, expected) in rows {
        for size in 1..=text.chars().count().max(1) {
            assert_eq!(written(text, 10, size), expected, "{text:?} in pieces of {size}");
        }
    }
}

#[test]
fn without_the_breaks_the_text_is_the_same() {
    let text = "The lapwing, also called peewit:\n\n1. nests on the *ground* – in the open;\n2. flies.\n\n\
                ```sh\necho a long line of code that stays\n```\n\nÄpfel und 鳥が飛ぶ, well-known.";
    let words = |text: &str| text.split_whitespace().collect::<String>();
    for width in [1, 4, 17, 40, 200] {
        let written = written(text, width, 3);
        assert_eq!(words(&written), words(text), "{width}");
    }
    assert_eq!(written(text, 200, 3), text);
}

#[test]
fn a_word_that_fits_on_no_line_is_not_waited_for() {
    let mut wrap = Wrap::default();
    let address = "https://example.org/a/long/way";
    let mut out = wrap.push(&address[..20], 10);
    assert_eq!(out, address[..20]);
    out.push_str(&wrap.push(&address[20..], 10));
    out.push_str(&wrap.push(" and more", 10));
    out.push_str(&wrap.finish(10));
    assert_eq!(out, format!("{address}\nand more"));
}

#[test]
fn lines_follow_the_width_of_the_terminal() {
    let mut wrap = Wrap::default();
    let mut out = wrap.push("one two three four ", 20);
    out.push_str(&wrap.push("five six seven eight ", 10));
    out.push_str(&wrap.finish(10));
    assert_eq!(out, "one two three\nfour five\nsix seven\neight ");
}

#[test]
fn notes_keep_their_words_and_their_indent() {
    assert_eq!(note("short\nnote", 10), "short\nnote");
    assert_eq!(
        note("  one two three\n/a/long-path/of-a-file x", 10),
        "  one two\n  three\n/a/long-path/of-a-file\nx"
    );
}
