//! What the arguments of `run` mean: a model, a prompt, or both.

use lapwing_engine::models::ModelName;
use strsim::jaro_winkler;

use crate::cli::failure::Failure;
use crate::cli::resolve::ModelChoice;

/// Likeness above which a word is rather a misspelt model than a prompt, from 0 to 1.
const LIKENESS_MIN: f64 = 0.92;

/// A model and a prompt, as far as the arguments name them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) model: Option<String>,
    /// Words of the prompt, with spaces between them.
    pub(super) prompt: Option<String>,
    /// Whether the last argument is `-`: stdin is a part of the prompt, however long it takes.
    pub(super) stdin: bool,
}

impl Asked {
    /// Without `-m` the first argument is the model if it names one: a file, a known name, or a name on the
    /// hub. Everything else is the prompt.
    ///
    /// # Errors
    /// When several words are no prompt for sure, or a word looks like the name of a model and is none.
    pub(super) fn of(model: Option<&str>, arguments: &[String]) -> Result<Asked, Failure> {
        let (stdin, words) = match arguments.split_last() {
            Some((last, rest)) if last == "-" => (true, rest),
            _ => (false, arguments),
        };
        let joined = |words: &[String]| (!words.is_empty()).then(|| words.join(" "));
        if let Some(model) = model {
            return Ok(Asked { model: Some(model.to_owned()), prompt: joined(words), stdin });
        }
        let Some((first, rest)) = words.split_first() else {
            return Ok(Asked { stdin, ..Asked::default() });
        };
        if is_model(first) {
            return Ok(Asked { model: Some(first.clone()), prompt: joined(rest), stdin });
        }
        if let Some(near) = misspelt(first) {
            return Err(Failure::instead(format!(
                "'{first}' is no known model{near}; `lapwing models` lists them, and a prompt of this one word \
                 is given with -m MODEL"
            )));
        }
        match rest {
            [] => Ok(Asked { prompt: Some(first.clone()), stdin, model: None }),
            _ => Err(Failure::instead(format!(
                "'{first}' is no known model, and a prompt of several words needs quotes: lapwing run \"{} …\"",
                words[..2].join(" ")
            ))),
        }
    }
}

/// Whether a word names a model.
fn is_model(word: &str) -> bool {
    let is_file = || {
        let path = std::path::Path::new(word);
        path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
    };
    let is_word = !word.contains(char::is_whitespace);
    is_file() || (is_word && matches!(ModelChoice::of(word), Ok(ModelChoice::Name(_))))
}

/// The hint about a word that is no model and looks like one: `name:tag` as Ollama writes it, or nearly a
/// known name.
fn misspelt(word: &str) -> Option<String> {
    let lower = word.to_lowercase();
    let is_name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
    };
    let is_repository = word.matches('/').count() == 1 && is_name(word) && lower.contains("gguf");
    if is_repository {
        return Some(format!(" (did you mean 'hf:{word}'?)"));
    }
    let tagged = word.split_once(':').is_some_and(|(name, tag)| is_name(name) && is_name(tag));
    let known = ModelName::known();
    let near = known
        .map(|name| (jaro_winkler(name, &lower), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > LIKENESS_MIN);
    match near {
        Some((_, name)) => Some(format!(" (did you mean '{name}'?)")),
        None => tagged.then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: Option<&str>, words: &[&str]) -> Result<Asked, Failure> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Asked::of(model, &words)
    }

    #[test]
    fn a_word_is_a_model_where_it_names_one_and_otherwise_a_prompt() {
        type Row<'a> = (Option<&'a str>, &'a [&'a str], Option<&'a str>, Option<&'a str>, bool);
        let rows: [Row<'_>; 14] = [
            (None, &[], None, None, false),
            (None, &["hi"], None, Some("hi"), false),
            (None, &["Why is the sky blue?"], None, Some("Why is the sky blue?"), false),
            (None, &["smollm2"], Some("smollm2"), None, false),
            (None, &["llama3.2:1b", "hi"], Some("llama3.2:1b"), Some("hi"), false),
            (None, &["smollm2", "why", "so?"], Some("smollm2"), Some("why so?"), false),
            (None, &["hf.co/owner/repo"], Some("hf.co/owner/repo"), None, false),
            (None, &["hf:owner/repo:Q8_0", "hi"], Some("hf:owner/repo:Q8_0"), Some("hi"), false),
            (None, &["no-such.gguf", "hi"], Some("no-such.gguf"), Some("hi"), false),
            (None, &["-"], None, None, true),
            (None, &["smollm2", "-"], Some("smollm2"), None, true),
            (None, &["Summarise this:", "-"], None, Some("Summarise this:"), true),
            (Some("m"), &["smollm2"], Some("m"), Some("smollm2"), false),
            (Some("m"), &["smolm2", "is", "small"], Some("m"), Some("smolm2 is small"), false),
        ];
        for (option, words, model, prompt, stdin) in rows {
            let expected =
                Asked { model: model.map(Into::into), prompt: prompt.map(Into::into), stdin };
            assert_eq!(asked(option, words).expect("clear"), expected, "{words:?}");
        }
    }

    #[test]
    fn what_may_be_a_misspelt_model_is_never_sent_to_another_one() {
        for (words, says) in [
            (&["smolm2-135m"][..], "did you mean 'smollm2-135m'?"),
            (&["Qwen/Qwen3-0.6B-GGUF"], "did you mean 'hf:Qwen/Qwen3-0.6B-GGUF'?"),
            (&["mistral:7b"], "is no known model; `lapwing models`"),
            (&["mistral", "hi"], "needs quotes: lapwing run \"mistral hi …\""),
        ] {
            let Err(Failure::Instead { message }) = asked(None, words) else { panic!("{words:?}") };
            assert!(message.contains(says), "{message}");
        }
    }
}
