//! How the models of a template mark their thoughts.

use super::ChatTemplate;

/// The texts around a model's thoughts, which come before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThoughtTags {
    /// Text before them.
    pub open: &'static str,
    /// Text after them.
    pub close: &'static str,
}

/// Tags whose opening one is in the templates of their models, although others have the closing one, too.
const OPENED: [ThoughtTags; 1] = [
    // gpt-oss: a message in the channel of thoughts.
    ThoughtTags { open: "<|channel|>analysis<|message|>", close: "<|end|>" },
];

/// Tags that templates make of parts, or that mean something else in other templates, with a text that tells them.
const MADE: [(&str, ThoughtTags); 3] = [
    // Hunyuan 3.
    ("</think{}>", ThoughtTags { open: "<think:opensource>", close: "</think:opensource>" }),
    // Kimi K3.
    (
        "open_tag('think'",
        ThoughtTags { open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>" },
    ),
    // Solar Open.
    ("assistant<|think|>", ThoughtTags { open: "<|think|>", close: "<|end|>" }),
];

/// The tags of published models, the most frequent first.
const KNOWN: [ThoughtTags; 9] = [
    // Qwen 3, DeepSeek R1, SmolLM 3, GLM, Granite, Nemotron, EXAONE 4, Hunyuan and most others.
    ThoughtTags { open: "<think>", close: "</think>" },
    // Magistral and Ministral.
    ThoughtTags { open: "[THINK]", close: "[/THINK]" },
    // Seed-OSS.
    ThoughtTags { open: "<seed:think>", close: "</seed:think>" },
    // MiniMax M3.
    ThoughtTags { open: "<mm:think>", close: "</mm:think>" },
    // Command A and R7B.
    ThoughtTags { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
    // Apertus.
    ThoughtTags { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
    // Gemma 4.
    ThoughtTags { open: "<|channel>thought\n", close: "<channel|>" },
    // Kimi VL.
    ThoughtTags { open: "◁think▷", close: "◁/think▷" },
    // EXAONE Deep.
    ThoughtTags { open: "<thought>", close: "</thought>" },
];

/// Variables of templates that say whether the model is to think.
#[cfg(feature = "structured")]
pub const SWITCHES: [&str; 2] = ["enable_thinking", "thinking"];

/// Where the answer to a prompt begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerStart {
    /// At its start; the model may think first.
    #[default]
    Fresh,
    /// Inside of thoughts.
    Thinking,
    /// After thoughts that the prompt closes.
    Thought,
    /// Inside of a text that the prompt begins.
    Within,
}

impl ChatTemplate {
    /// The tags of the model's thoughts; `None` if it has none.
    pub fn thought_tags(&self) -> Option<ThoughtTags> {
        let source = self.source();
        let opened = OPENED.into_iter().find(|tags| source.contains(tags.open));
        let made =
            || MADE.into_iter().find(|(sign, _)| source.contains(sign)).map(|(_, tags)| tags);
        let known = || KNOWN.into_iter().find(|tags| source.contains(tags.close));
        opened.or_else(made).or_else(known)
    }

    /// Where the answer to a prompt begins. `begun` is the message that the answer continues, or empty.
    pub(crate) fn start_of(&self, prompt: &str, begun: &str) -> AnswerStart {
        match (self.thought_tags(), begun.trim().is_empty()) {
            (Some(tags), true) => tags.start(prompt),
            (Some(tags), false) => tags.start_within(begun),
            (None, true) => AnswerStart::Fresh,
            (None, false) => AnswerStart::Within,
        }
    }

    /// Text to append to a prompt so that the answer has no thoughts; `None` if nothing is needed. A template with a
    /// variable for thoughts writes the needed text itself.
    #[cfg(feature = "structured")]
    pub(crate) fn closing(&self, start: AnswerStart) -> Option<String> {
        let ThoughtTags { open, close } = self.thought_tags()?;
        match start {
            AnswerStart::Thinking => Some(format!("\n{close}")),
            AnswerStart::Fresh if !self.decides_thoughts() => Some(format!("{open}\n\n{close}")),
            _ => None,
        }
    }

    /// Whether it reads a variable of this name, such as `enable_thinking`.
    pub fn reads(&self, name: &str) -> bool {
        self.compiled().is_ok_and(|compiled| compiled.names.contains(name))
    }

    /// Whether it lets a caller decide if the model thinks.
    #[cfg(feature = "structured")]
    pub(crate) fn decides_thoughts(&self) -> bool {
        SWITCHES.iter().any(|name| self.reads(name))
    }
}

impl ThoughtTags {
    /// Where the answer to `prompt` begins, if its end is the template's own.
    fn start(self, prompt: &str) -> AnswerStart {
        let prompt = prompt.trim_end();
        match () {
            () if prompt.ends_with(self.open.trim_end()) => AnswerStart::Thinking,
            () if prompt.ends_with(self.close) => AnswerStart::Thought,
            () => AnswerStart::Fresh,
        }
    }

    /// Where an answer goes on that begins with `message`.
    fn start_within(self, message: &str) -> AnswerStart {
        match (message.rfind(self.open), message.rfind(self.close)) {
            (Some(open), close) if close.is_none_or(|close| close < open) => AnswerStart::Thinking,
            (_, Some(at)) if message[at + self.close.len()..].trim().is_empty() => {
                AnswerStart::Thought
            }
            _ => AnswerStart::Within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prompt_says_where_its_answer_begins() {
        let rows = [
            ("[assistant]", AnswerStart::Fresh),
            ("[assistant]<think>\n", AnswerStart::Thinking),
            ("[assistant]<think>\n\n</think>\n\n", AnswerStart::Thought),
            ("[assistant]</think>", AnswerStart::Thought),
            ("<think>a</think>[assistant]", AnswerStart::Fresh),
        ];
        for (prompt, want) in rows {
            assert_eq!(KNOWN[0].start(prompt), want, "{prompt:?}");
        }
    }

    #[test]
    fn a_message_that_goes_on_may_be_inside_of_its_thoughts() {
        let rows = [
            ("My answer:", AnswerStart::Within),
            ("<think>\nLet me", AnswerStart::Thinking),
            ("<think>a</think>\n", AnswerStart::Thought),
            ("<think>a</think>It", AnswerStart::Within),
            ("<think>a</think>b<think>", AnswerStart::Thinking),
            ("", AnswerStart::Within),
        ];
        for (message, want) in rows {
            assert_eq!(KNOWN[0].start_within(message), want, "{message:?}");
        }
    }
}
