//! Requests for new tokens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use lapwing_actors::policy::Urgency;
use lapwing_actors::prefix::PrefixUse;
use lapwing_actors::sample::SamplingParams;

use crate::chat::Message;
#[cfg(feature = "structured")]
use crate::structured::Grammar;
#[cfg(feature = "structured")]
use crate::tools::Tools;

mod conversation;
mod limits;
mod reports;
#[cfg(feature = "structured")]
mod tools;
mod urgency;

pub use conversation::PromptEnd;
#[cfg(feature = "structured")]
pub use conversation::Thoughts;

/// The prompt of a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Prompt {
    /// Text that the model continues. The begin token is added if the model's file requests it, and
    /// control tokens written in the text are read as control tokens.
    Text(String),
    /// Token ids, used unchanged.
    Ids(Vec<u32>),
    /// A conversation, rendered by the model's chat template; the model writes the next message.
    /// Control tokens written in a message are ordinary text.
    Chat(Vec<Message>),
}

/// A request for new tokens: made by [`text`](Request::text), [`ask`](Request::ask),
/// [`chat`](Request::chat) or [`new`](Request::new), and changed by one method for each setting.
///
/// ```
/// use lapwing::Request;
///
/// let request = Request::ask("Why is the sky blue?").temperature(0.7).top_p(0.9).max_tokens(64);
/// assert_eq!(request.sampling.seed, None, "every call draws a new seed");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The prompt.
    pub prompt: Prompt,
    /// Variables of the chat template, for [`Prompt::Chat`].
    pub template_variables: BTreeMap<String, serde_json::Value>,
    /// The time that the chat template reads as the date, for [`Prompt::Chat`]; `None` is the time of the call.
    pub now: Option<SystemTime>,
    /// How the prompt ends, for [`Prompt::Chat`].
    pub prompt_end: PromptEnd,
    /// What becomes of the model's thoughts, for [`Prompt::Chat`].
    #[cfg(feature = "structured")]
    pub thoughts: Thoughts,
    /// Control tokens that are written into the text, by their spelling; others are left out of it.
    pub shown: Vec<String>,
    /// Sampling parameters. Without a seed, every request draws a new one
    /// ([`Summary::seed`](crate::Summary::seed) reports it).
    pub sampling: SamplingParams,
    /// Number of most likely tokens that each [`Token`](crate::Token) reports.
    pub top_logprobs: usize,
    /// Report how much of the prompt is computed ([`TokenStream::next_event`](crate::TokenStream::next_event)).
    pub prompt_progress: bool,
    /// Maximum tokens to generate; `None` for the rest of the context.
    pub max_tokens: Option<usize>,
    /// Number of first tokens among which the model's end tokens are forbidden.
    pub min_tokens: usize,
    /// Texts that end the generation; they are not part of the output.
    pub stop: Vec<String>,
    /// What the answer must look like.
    #[cfg(feature = "structured")]
    pub grammar: Option<Grammar>,
    /// Functions that the model may call, for [`Prompt::Chat`].
    #[cfg(feature = "structured")]
    pub tools: Option<Tools>,
    /// Divide the answer into thoughts, text and calls; a request with tools does so anyway.
    #[cfg(feature = "structured")]
    pub divided: bool,
    /// Continue past the model's end tokens, which are then never sampled.
    pub ignore_eos: bool,
    /// Name of the client that sends it, for queue policies that treat clients apart. Requests without
    /// a name belong to one anonymous client.
    pub client: Option<String>,
    /// How urgent it is, for queue policies that ask.
    pub urgency: Urgency,
    /// Use the engine's prefix cache, if it has one.
    pub prefix_cache: bool,
    /// Share prefixes only with requests of the same text.
    pub cache_salt: Option<String>,
    /// Use the engine's drafter of speculative decoding, if it has one.
    pub drafts: bool,
    /// Record this request when the recorder's scope is marked requests only.
    pub traced: bool,
}

impl Request {
    /// A request with the default sampling.
    pub fn new(prompt: Prompt) -> Request {
        Request {
            prompt,
            template_variables: BTreeMap::new(),
            now: None,
            prompt_end: PromptEnd::default(),
            #[cfg(feature = "structured")]
            thoughts: Thoughts::default(),
            shown: Vec::new(),
            sampling: SamplingParams::default(),
            top_logprobs: 0,
            prompt_progress: false,
            max_tokens: None,
            min_tokens: 0,
            stop: Vec::new(),
            #[cfg(feature = "structured")]
            grammar: None,
            #[cfg(feature = "structured")]
            tools: None,
            #[cfg(feature = "structured")]
            divided: false,
            ignore_eos: false,
            client: None,
            urgency: Urgency::default(),
            prefix_cache: true,
            cache_salt: None,
            drafts: true,
            traced: false,
        }
    }

    /// Continues `text` as plain text.
    pub fn text(text: impl Into<String>) -> Request {
        Request::new(Prompt::Text(text.into()))
    }

    /// Answers one question, through the model's chat template.
    pub fn ask(question: impl Into<String>) -> Request {
        Request::chat(vec![Message::user(question)])
    }

    /// Answers a conversation, through the model's chat template.
    pub fn chat(messages: Vec<Message>) -> Request {
        Request::new(Prompt::Chat(messages))
    }

    /// Always takes the most likely token.
    #[must_use]
    pub fn greedy(mut self) -> Request {
        self.sampling.temperature = 0.0;
        self
    }

    /// Sets all sampling parameters. A seed that was set before stays if `sampling` has none.
    #[must_use]
    pub fn sampling(mut self, sampling: SamplingParams) -> Request {
        let seed = sampling.seed.or(self.sampling.seed);
        self.sampling = SamplingParams { seed, ..sampling };
        self
    }

    /// Sets the seed: the same seed gives the same tokens. Without one, every request draws a new seed,
    /// and its tokens differ from call to call unless it is [`greedy`](Request::greedy).
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Request {
        self.sampling.seed = Some(seed);
        self
    }

    /// Divides the logits; 0 always takes the most likely token. The default is 0.8.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Request {
        self.sampling.temperature = temperature;
        self
    }

    /// Samples from the `k` most likely tokens; 0 turns it off. The default is 40.
    #[must_use]
    pub fn top_k(mut self, k: usize) -> Request {
        self.sampling.top_k = k;
        self
    }

    /// Samples from the smallest set of most likely tokens with a total probability of at least `p`
    /// (nucleus sampling); 1 turns it off. The default is 0.95.
    #[must_use]
    pub fn top_p(mut self, p: f32) -> Request {
        self.sampling.top_p = p;
        self
    }

    /// Samples from tokens at least `p` times as likely as the most likely one; 0 turns it off. The
    /// default is 0.05.
    #[must_use]
    pub fn min_p(mut self, p: f32) -> Request {
        self.sampling.min_p = p;
        self
    }

    /// Divides positive logits of recent tokens by `penalty`, and multiplies negative ones; 1, the
    /// default, turns it off.
    #[must_use]
    pub fn repetition_penalty(mut self, penalty: f32) -> Request {
        self.sampling.repetition_penalty = penalty;
        self
    }

    /// Subtracts `penalty` once from the logits of recent tokens; 0, the default, turns it off.
    #[must_use]
    pub fn presence_penalty(mut self, penalty: f32) -> Request {
        self.sampling.presence_penalty = penalty;
        self
    }

    /// Subtracts `penalty` per occurrence from the logits of recent tokens; 0, the default, turns it
    /// off.
    #[must_use]
    pub fn frequency_penalty(mut self, penalty: f32) -> Request {
        self.sampling.frequency_penalty = penalty;
        self
    }

    /// Number of recent tokens, prompt included, that the penalties apply to. The default is 64.
    #[must_use]
    pub fn penalty_window(mut self, tokens: usize) -> Request {
        self.sampling.penalty_window = tokens;
        self
    }

    /// Adds `bias` to the logit of a token id; −∞ forbids it. May be called several times.
    #[must_use]
    pub fn logit_bias(mut self, id: u32, bias: f32) -> Request {
        self.sampling.logit_bias.push((id, bias));
        self
    }

    /// Whether it uses the engine's prefix cache ([`EngineBuilder::prefix_cache`](crate::EngineBuilder::prefix_cache));
    /// by default it does. Without it, all rows of the prompt are computed, and none stay for others.
    #[must_use]
    pub fn prefix_cache(mut self, on: bool) -> Request {
        self.prefix_cache = on;
        self
    }

    /// Whether it uses the engine's drafter ([`EngineBuilder::draft`](crate::EngineBuilder::draft)); by default it does.
    #[must_use]
    pub fn drafts(mut self, on: bool) -> Request {
        self.drafts = on;
        self
    }

    /// Accepts each drafted token with this probability, whatever the model would choose, to measure what drafts cost and gain at
    /// an acceptance of choice. The answer is then not the model's. Excludes a grammar and tools.
    #[must_use]
    pub fn draft_acceptance(mut self, rate: f32) -> Request {
        self.sampling.draft_acceptance = Some(rate);
        self
    }

    /// Shares prefixes only with requests that have the same `salt`. From the time to first token, a caller
    /// can tell whether a prompt is cached; a salt for each caller hides what others have asked.
    #[must_use]
    pub fn cache_salt(mut self, salt: impl Into<String>) -> Request {
        self.cache_salt = Some(salt.into());
        self
    }

    /// How it uses the prefix cache.
    pub(crate) fn prefix_use(&self) -> PrefixUse {
        match self.prefix_cache {
            true => PrefixUse::Shared(self.cache_salt.as_deref().map(Arc::from)),
            false => PrefixUse::Off,
        }
    }
}
