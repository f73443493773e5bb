//! Upper, lower and other cases.

use super::kinds;

/// The text with other cases, for methods without arguments.
pub(super) fn changed(text: &str, method: &str) -> Option<String> {
    Some(match method {
        "lower" => text.to_lowercase(),
        "upper" => text.to_uppercase(),
        "capitalize" => capitalize(text),
        "title" => title(text),
        "swapcase" => text.chars().map(swapped).collect(),
        "casefold" => text.chars().map(folded).collect(),
        _ => return None,
    })
}

/// The first character as a title has it, the others in lower case.
pub(in crate::chat) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(titled).unwrap_or_default();
    first + &chars.as_str().to_lowercase()
}

fn title(text: &str) -> String {
    let mut after_letter = false;
    let mut titled_text = String::with_capacity(text.len());
    for char in text.chars() {
        match after_letter {
            true => titled_text.extend(char.to_lowercase()),
            false => titled_text.push_str(&titled(char)),
        }
        after_letter = kinds::is_cased(char);
    }
    titled_text
}

/// Some letters become two in upper case, of which a title has the second in lower case.
fn titled(char: char) -> String {
    let mut upper = char.to_uppercase();
    let first: String = upper.next().into_iter().collect();
    first + &upper.collect::<String>().to_lowercase()
}

fn swapped(char: char) -> String {
    match char.is_uppercase() {
        true => char.to_lowercase().collect(),
        false => char.to_uppercase().collect(),
    }
}

fn folded(char: char) -> String {
    match char {
        'ı' => "ı".to_owned(),
        char => char.to_uppercase().collect::<String>().to_lowercase(),
    }
}
