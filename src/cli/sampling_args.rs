//! Options that say how tokens are chosen, and when to stop.

use clap::Args;
use lapwing::{Prompt, Request, SamplingParams};

use super::failure::Failure;
use super::parse::{TokenLimit, at_least_one, logit_bias};
use super::resolve::ModelChoice;

/// How tokens are chosen, and when to stop.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Most tokens to generate; 'max' for as many as the context holds
    #[arg(short = 'n', long, value_name = "N", default_value = "512")]
    pub(crate) max_tokens: TokenLimit,

    /// Most tokens of prompt and answer together [default: as the model was trained, up to 8192]
    #[arg(short, long, value_name = "TOKENS", value_parser = at_least_one, help_heading = "Engine")]
    pub(crate) ctx: Option<usize>,

    /// Temperature; 0 always takes the most likely token [default: what the makers of a model
    /// that is known by name recommend, else 0.8]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temp: Option<f32>,

    /// Choose among the K most likely tokens; 0 is off
    #[arg(long, value_name = "K", default_value_t = 40)]
    top_k: usize,

    /// Choose among the most likely tokens that together have probability P; 1 is off
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    top_p: f32,

    /// Choose among tokens at least P times as likely as the most likely one; 0 is off
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    min_p: f32,

    /// Makes recent tokens less likely: divides their logits; 1 is off
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    repeat_penalty: f32,

    /// How many recent tokens the penalties look at, prompt included
    #[arg(long, value_name = "N", default_value_t = 64)]
    repeat_last_n: usize,

    /// Subtracted once from the logits of recent tokens; 0 is off
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,

    /// Subtracted per occurrence from the logits of recent tokens; 0 is off
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,

    /// Added to the logit of a token id; -inf forbids it; may be given several times
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,

    /// Seed of the random choice: same seed, same text [default: another one every time]
    #[arg(short, long, value_name = "N")]
    seed: Option<u64>,

    /// End the answer before TEXT; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,

    /// Go on where the model would end
    #[arg(long)]
    ignore_eos: bool,
}

impl SamplingArgs {
    /// Checks what can be checked without a model, so that nothing is fetched in vain.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.params().check().map_err(|error| Failure::usage(error.to_string()))
    }

    /// Checks what needs the model's vocabulary: that biased ids are in it.
    pub(crate) fn check_ids(&self, vocab_size: usize) -> Result<(), Failure> {
        match self.logit_bias.iter().find(|(id, _)| *id as usize >= vocab_size) {
            Some((id, _)) => Err(Failure::usage(format!(
                "--logit-bias names token id {id}, but the model has ids 0 to {}",
                vocab_size.saturating_sub(1)
            ))),
            None => Ok(()),
        }
    }

    /// A request for `prompt`.
    pub(crate) fn request(&self, prompt: Prompt) -> Request {
        Request {
            prompt,
            sampling: self.params(),
            seeded: self.seed.is_some(),
            max_tokens: self.max_tokens.tokens(),
            stop: self.stop.clone(),
            ignore_eos: self.ignore_eos,
            client: None,
            traced: false,
        }
    }

    /// Fills in what the model's makers recommend and the user left open.
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
            seed: self.seed.unwrap_or_default(),
        }
    }
}
