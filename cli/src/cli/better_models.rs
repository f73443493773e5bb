//! What to try after the default model.

use std::io::{IsTerminal, stderr, stdout};

use lapwing_engine::models::catalogue;

use super::resolve::ModelChoice;
use super::session::Session;
use super::state;

/// Models of the catalogue that chat, and answer better than the default one; the quickest first.
const NAMES: [&str; 3] = ["qwen3-0.6b", "llama-3.2-1b-instruct", "gemma-3-1b-it"];

/// Says after the first answer of the default model on a terminal which models answer better.
pub(crate) fn note(choice: &ModelChoice, session: &Session) {
    let is_read = stdout().is_terminal() && stderr().is_terminal() && !session.json;
    if !is_read || !is_default(choice) {
        return;
    }
    if state::folder().is_some_and(|folder| state::is_first("default-model-answered", &folder)) {
        session.note(&text());
    }
}

fn is_default(choice: &ModelChoice) -> bool {
    let entry = match choice {
        ModelChoice::File(_) => None,
        ModelChoice::Name(name) => name.entry(),
    };
    entry.is_some_and(|entry| entry.name == catalogue()[0].name)
}

fn text() -> String {
    let [first, second, third] = NAMES;
    format!(
        "note: the default model is small enough to try everything with; better answers: -m {first}, -m {second} or \
         -m {third} (said once; `lapwing models` lists all)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_models_are_larger_ones_of_the_catalogue() {
        for name in NAMES {
            let entry = catalogue().iter().find(|entry| entry.name == name).expect(name);
            assert!(entry.bytes > catalogue()[0].bytes, "{name}");
            assert!(text().contains(name));
        }
    }

    #[test]
    fn only_the_default_model_is_meant() {
        let rows = [
            ("smollm2", true),
            ("smollm2-135m-instruct", true),
            ("qwen3", false),
            ("hf:a/b", false),
            ("a.gguf", false),
        ];
        for (name, is) in rows {
            assert_eq!(is_default(&ModelChoice::of(name).expect(name)), is, "{name}");
        }
    }
}
