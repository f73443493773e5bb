//! Options of sampling, and of when to stop.

mod set;

use clap::Args;
use lapwing_engine::{Prompt, Request, SamplingParams};

use super::failure::Failure;
use super::grammar_args::GrammarArgs;
use super::parse::{TokenLimit, at_least_one, logit_bias};
use super::resolve::ModelChoice;

/// Sampling parameters and stop conditions.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Maximum tokens to generate; 'max' for all that fit
    #[arg(short = 'n', long, value_name = "N", default_value = "512")]
    pub(crate) max_tokens: TokenLimit,

    /// Maximum tokens of prompt and answer [default: the training context, up to 8192]
    #[arg(short, long, value_name = "TOKENS", value_parser = at_least_one, help_heading = "Engine")]
    pub(crate) ctx: Option<usize>,

    /// Temperature; 0 always takes the most likely token [default: 0.8, or as the makers say]
    ///
    /// The makers of some models of `lapwing models` recommend one.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temp: Option<f32>,

    /// Sample from the K most likely tokens; 0 for all
    #[arg(long, value_name = "K", default_value_t = 40)]
    top_k: usize,

    /// Sample from the most likely tokens that together have probability P
    ///
    /// 1 turns it off.
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    top_p: f32,

    /// Sample from tokens at least P times as likely as the best one
    ///
    /// 0 turns it off.
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    min_p: f32,

    /// Make recent tokens less likely; 1 turns it off
    ///
    /// Their logits are divided by X.
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    repeat_penalty: f32,

    /// Number of recent tokens that penalties apply to, prompt included
    #[arg(long, value_name = "N", default_value_t = 64, hide_short_help = true)]
    repeat_last_n: usize,

    /// Subtract this once from the logits of recent tokens; 0 turns it off
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    presence_penalty: f32,

    /// Subtract this per occurrence from the logits of recent tokens; 0 turns it off
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    frequency_penalty: f32,

    /// Add a bias to the logit of a token id; -inf forbids it; may be repeated
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias, hide_short_help = true)]
    logit_bias: Vec<(u32, f32)>,

    /// Seed of the sampler: the same seed gives the same text [default: a new one each time]
    ///
    /// Every answer of a chat starts with it. --json reports it.
    #[arg(short, long, value_name = "N")]
    seed: Option<u64>,

    /// End the answer before TEXT; may be repeated
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,

    /// Continue past the model's end tokens
    #[arg(long, hide_short_help = true)]
    ignore_eos: bool,

    #[command(flatten)]
    grammar: GrammarArgs,
}

impl SamplingArgs {
    /// Whether a grammar says what an answer looks like.
    pub(crate) fn has_grammar(&self) -> bool {
        self.grammar.grammar().is_some()
    }

    /// Checks everything that needs no model, before anything is fetched.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.params().check().map_err(|error| Failure::usage(error.to_string()))
    }

    /// Checks biased token ids against the model's vocabulary.
    pub(crate) fn check_ids(&self, vocab_size: usize) -> Result<(), Failure> {
        match self.logit_bias.iter().find(|(id, _)| *id as usize >= vocab_size) {
            Some((id, _)) => Err(Failure::usage(format!(
                "--logit-bias names token id {id}, but the model has ids 0 to {}",
                vocab_size.saturating_sub(1)
            ))),
            None => Ok(()),
        }
    }

    /// Builds a request for `prompt`.
    pub(crate) fn request(&self, prompt: Prompt) -> Request {
        let mut request = Request::new(prompt).sampling(self.params());
        request.max_tokens = self.max_tokens.tokens();
        request.stop.clone_from(&self.stop);
        request.ignore_eos = self.ignore_eos;
        request.grammar = self.grammar.grammar().cloned();
        request
    }

    /// Applies the recommendations of the model's makers where the user set nothing.
    pub(crate) fn settle(&mut self, model: &ModelChoice) {
        self.temp = self.temp.or(model.temperature());
    }

    fn params(&self) -> SamplingParams {
        let default = SamplingParams::default();
        SamplingParams {
            logit_bias: self.logit_bias.clone(),
            penalty_window: self.repeat_last_n,
            repetition_penalty: self.repeat_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            temperature: self.temp.unwrap_or(default.temperature),
            seed: self.seed,
            draft_acceptance: None,
        }
    }
}
