//! Requests for new tokens.

use crate::chat::Message;
use crate::sampling::SamplingParams;

/// The prompt of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// Text that the model continues. The begin token is added if the model's file requests it, and
    /// control tokens written in the text are read as control tokens.
    Text(String),
    /// Token ids, used unchanged.
    Ids(Vec<u32>),
    /// A conversation, rendered by the model's chat template; the model writes the next message.
    Chat(Vec<Message>),
}

/// A request for new tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The prompt.
    pub prompt: Prompt,
    /// Sampling parameters. Their seed is used only if `seeded` is set.
    pub sampling: SamplingParams,
    /// Whether `sampling.seed` is used; otherwise every request draws a new seed.
    pub seeded: bool,
    /// Maximum tokens to generate; `None` for the rest of the context.
    pub max_tokens: Option<usize>,
    /// Texts that end the generation; they are not part of the output.
    pub stop: Vec<String>,
    /// Continue past the model's end tokens, which are then never sampled.
    pub ignore_eos: bool,
    /// Name of the client that sends it, for queue policies that treat clients apart. Requests without
    /// a name belong to one anonymous client.
    pub client: Option<String>,
    /// Record this request when the recorder's scope is marked requests only.
    pub traced: bool,
}

impl Request {
    /// A request with the default sampling.
    pub fn new(prompt: Prompt) -> Request {
        Request {
            prompt,
            sampling: SamplingParams::default(),
            seeded: false,
            max_tokens: None,
            stop: Vec::new(),
            ignore_eos: false,
            client: None,
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

    /// Sets all sampling parameters, including the seed.
    #[must_use]
    pub fn sampling(mut self, sampling: SamplingParams) -> Request {
        self.sampling = sampling;
        self.seeded = true;
        self
    }

    /// Sets the seed: the same seed gives the same tokens.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Request {
        self.sampling.seed = seed;
        self.seeded = true;
        self
    }

    /// Generates at most `tokens` new tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Request {
        self.max_tokens = Some(tokens);
        self
    }

    /// Ends the generation when `text` appears; the text itself is not part of the output.
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Request {
        self.stop.push(text.into());
        self
    }

    /// Continues past the model's end tokens.
    #[must_use]
    pub fn ignore_eos(mut self) -> Request {
        self.ignore_eos = true;
        self
    }

    /// Names the client that sends the request: queue policies may treat clients apart
    /// ([`EngineBuilder::policy`](crate::EngineBuilder::policy)).
    #[must_use]
    pub fn client(mut self, name: impl Into<String>) -> Request {
        self.client = Some(name.into());
        self
    }

    /// Marks the request for a recorder whose scope is marked requests only
    /// ([`Scope::Marked`](lapwing_traces::Scope::Marked)).
    #[must_use]
    pub fn traced(mut self) -> Request {
        self.traced = true;
        self
    }
}
