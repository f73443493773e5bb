//! What a caller asks for.

use crate::chat::Message;
use crate::sampling::SamplingParams;

/// A prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// Text that is continued as it stands. The begin token is added if the model's file says
    /// so, and control tokens written in the text count as such.
    Text(String),
    /// Token ids, taken as they are.
    Ids(Vec<u32>),
    /// A conversation, rendered by the model's own template; the model answers next.
    Chat(Vec<Message>),
}

/// A request for new tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What to continue.
    pub prompt: Prompt,
    /// How tokens are chosen. Its seed is used only with `seeded`.
    pub sampling: SamplingParams,
    /// Whether `sampling.seed` counts; otherwise a new seed is drawn for every request.
    pub seeded: bool,
    /// Most tokens to generate; `None` up to the end of the context.
    pub max_tokens: Option<usize>,
    /// Texts that end the generation; they are not part of the output.
    pub stop: Vec<String>,
    /// Go on after the model's end tokens, which then cannot be chosen.
    pub ignore_eos: bool,
    /// Name of the client that sends it, for queue policies that treat clients apart; requests
    /// without a name are those of one anonymous client.
    pub client: Option<String>,
    /// Record it where the recorder takes only marked requests.
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

    /// Continues `text` as it stands.
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

    /// Always the most likely token.
    #[must_use]
    pub fn greedy(mut self) -> Request {
        self.sampling.temperature = 0.0;
        self
    }

    /// Other sampling parameters; their seed counts.
    #[must_use]
    pub fn sampling(mut self, sampling: SamplingParams) -> Request {
        self.sampling = sampling;
        self.seeded = true;
        self
    }

    /// The same seed gives the same tokens.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Request {
        self.sampling.seed = seed;
        self.seeded = true;
        self
    }

    /// At most `tokens` new tokens.
    #[must_use]
    pub fn max_tokens(mut self, tokens: usize) -> Request {
        self.max_tokens = Some(tokens);
        self
    }

    /// Ends the generation when `text` appears; it is left out.
    #[must_use]
    pub fn stop(mut self, text: impl Into<String>) -> Request {
        self.stop.push(text.into());
        self
    }

    /// Goes on after the model's end tokens.
    #[must_use]
    pub fn ignore_eos(mut self) -> Request {
        self.ignore_eos = true;
        self
    }

    /// Is sent by the client of that name: queue policies may treat clients apart
    /// ([`EngineBuilder::policy`](crate::EngineBuilder::policy)).
    #[must_use]
    pub fn client(mut self, name: impl Into<String>) -> Request {
        self.client = Some(name.into());
        self
    }

    /// Is recorded where the engine's recorder takes only marked requests
    /// ([`Scope::Marked`](lapwing_traces::Scope::Marked)).
    #[must_use]
    pub fn traced(mut self) -> Request {
        self.traced = true;
        self
    }
}
