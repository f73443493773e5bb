//! Kinds of characters, for methods such as `isalpha`.

use super::{is_printable, is_space};

/// The answer of a method that asks of what characters a text consists.
pub(super) fn answer(text: &str, method: &str) -> Option<bool> {
    let all = |is: &dyn Fn(char) -> bool| !text.is_empty() && text.chars().all(is);
    let any = |is: &dyn Fn(char) -> bool| text.chars().any(is);
    Some(match method {
        "isalnum" => all(&|char| char.is_alphanumeric()),
        "isalpha" => all(&|char| char.is_alphabetic()),
        "isascii" => text.is_ascii(),
        "isdecimal" => all(&is_decimal),
        "isdigit" => all(&is_digit),
        "isnumeric" => all(&|char| char.is_numeric()),
        "isidentifier" => {
            let is_word = |char: char| char.is_alphanumeric() || char == '_';
            all(&is_word) && !text.starts_with(|char: char| char.is_numeric())
        }
        "islower" => any(&char::is_lowercase) && !any(&char::is_uppercase),
        "isupper" => any(&char::is_uppercase) && !any(&char::is_lowercase),
        "isprintable" => text.chars().all(is_printable),
        "isspace" => all(&is_space),
        "istitle" => is_title(text),
        _ => return None,
    })
}

/// Whether a character has a case.
pub(super) fn is_cased(char: char) -> bool {
    char.is_lowercase() || char.is_uppercase()
}

fn is_title(text: &str) -> bool {
    let (mut after_letter, mut found) = (false, false);
    for char in text.chars() {
        match (char.is_uppercase(), is_cased(char)) {
            (true, _) if after_letter => return false,
            (false, true) if !after_letter => return false,
            _ => {}
        }
        after_letter = is_cased(char);
        found |= after_letter;
    }
    found
}

/// Whether a character is a digit of a decimal number: not a fraction, a Roman or circled number, or raised.
fn is_decimal(char: char) -> bool {
    let is_other = matches!(
        char,
        '²' | '³' | '¹' | '¼'..='¾' | '\u{9f4}'..='\u{9f9}' | '\u{b72}'..='\u{b77}' | '\u{bf0}'..='\u{bf2}'
            | '\u{d70}'..='\u{d78}' | '\u{f2a}'..='\u{f33}' | '\u{1369}'..='\u{137c}' | '\u{16ee}'..='\u{16f0}'
            | '\u{17f0}'..='\u{17f9}' | '\u{19da}' | '\u{2070}'..='\u{218f}' | '\u{2460}'..='\u{2bff}'
            | '\u{2cfd}'..='\u{a61f}' | '\u{a6e6}'..='\u{a8cf}'
    );
    char.is_numeric() && !is_other
}

/// Whether a character is a digit, perhaps raised, lowered or circled.
fn is_digit(char: char) -> bool {
    let is_marked = matches!(
        char,
        '²' | '³' | '¹' | '\u{1369}'..='\u{1371}' | '\u{19da}' | '\u{2070}' | '\u{2074}'..='\u{2079}' | '\u{2080}'..='\u{2089}'
            | '\u{2460}'..='\u{2468}' | '\u{2474}'..='\u{247c}' | '\u{2488}'..='\u{2490}' | '\u{24ea}'
            | '\u{24f5}'..='\u{24fd}' | '\u{24ff}' | '\u{2776}'..='\u{277e}' | '\u{2780}'..='\u{2788}' | '\u{278a}'..='\u{2792}'
    );
    is_decimal(char) || is_marked
}
