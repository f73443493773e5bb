//! Characters that this program writes itself, in ASCII where the locale has no others. Texts of models and users stay as
//! they are.

use std::borrow::Cow;
use std::sync::LazyLock;

/// Variables that name the locale of characters, the strongest first (POSIX.1-2024, section 8.2).
const VARIABLES: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Whether the locale has only ASCII.
pub(crate) fn is_ascii() -> bool {
    static IS_ASCII: LazyLock<bool> =
        LazyLock::new(|| names_ascii(|name| std::env::var(name).unwrap_or_default()));
    *IS_ASCII
}

/// Whether the first variable that is set names a locale without UTF-8. If none is set, as in a container or on other
/// systems than Unix, terminals take UTF-8 nevertheless.
fn names_ascii(value: impl Fn(&str) -> String) -> bool {
    let locale = VARIABLES.iter().map(|name| value(name)).find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// Text of this program as the locale can show it.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if is_ascii() { ascii(text) } else { Cow::Borrowed(text) }
}

/// The text with the characters that this program uses written in ASCII.
fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match in_ascii(c) {
            Some(instead) => written.push_str(instead),
            None => written.push(c),
        }
    }
    Cow::Owned(written)
}

/// What stands for a character of this program's texts, tables and drawings; `None` for others.
pub(crate) fn in_ascii(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{a0}' | '\u{202f}' => " ",
        '·' => ".",
        '–' | '—' | '−' | '─' | '╌' => "-",
        '━' | '▄' => "=",
        '│' | '┃' | '╷' => "|",
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => "+",
        '×' => "x",
        '÷' => "/",
        'µ' => "u",
        '±' => "+/-",
        '→' => "->",
        '←' => "<-",
        '‖' => "||",
        '≤' => "<=",
        '≥' => ">=",
        '≈' => "~",
        '∞' => "inf",
        '²' => "^2",
        '…' => "...",
        '✓' => "ok",
        '⏎' => "\\n",
        '⇥' => "\\t",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '▁' | '░' => ".",
        '▂' | '▒' => ":",
        '▃' => "-",
        '▅' | '▓' => "+",
        '▆' => "*",
        '▇' | '█' => "#",
        '\u{fffd}' => "?",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_variable_decides() {
        let rows = [
            (["", "", ""], false),
            (["C", "", ""], true),
            (["POSIX", "", "en_GB.UTF-8"], true),
            (["", "C", "en_GB.UTF-8"], true),
            (["", "", "C"], true),
            (["C.UTF-8", "C", "C"], false),
            (["", "en_US.utf8", "C"], false),
            (["", "", "de_DE.ISO-8859-1"], true),
            (["", "", "de_DE@euro"], true),
        ];
        for (values, is_ascii) in rows {
            let value = |name: &str| {
                let at = VARIABLES.iter().position(|variable| *variable == name);
                values[at.expect("a variable")].to_owned()
            };
            assert_eq!(names_ascii(value), is_ascii, "{values:?}");
        }
    }

    #[test]
    fn only_characters_of_this_program_are_replaced() {
        assert_eq!(ascii("3 × 4 µs …"), "3 x 4 us ...");
        assert_eq!(ascii("/home/zoë/modèle.gguf → 鳥"), "/home/zoë/modèle.gguf -> 鳥");
        assert!(matches!(ascii("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_stands_for_a_character_is_ascii() {
        let written = (' '..='\u{ffff}').filter_map(in_ascii);
        assert!(written.clone().count() > 30);
        assert!(written.into_iter().all(str::is_ascii));
    }
}
