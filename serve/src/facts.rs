//! What a model's file says about it, read without loading it.

mod digest;
mod file_type;

use std::collections::HashMap;
use std::path::Path;

use lapwing_kernels::model::Architecture;
use lapwing_kernels::weights::{WeightError, WeightFile};

use lapwing_engine::chat::{ChatFault, ChatTemplate};
use lapwing_engine::error::Error;

/// Facts of a model's file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelFacts {
    /// Bytes of its files.
    pub(crate) bytes: u64,
    /// Its architecture, such as `llama`.
    pub(crate) architecture: String,
    /// Number of its weights.
    pub(crate) parameters: u64,
    /// How it is quantised, such as `Q4_K_M`: as its file says, or the format of most of its weights.
    pub(crate) quantization: String,
    /// Its digest, 64 hex digits.
    pub(crate) digest: String,
    /// Tokens of the context that it was trained with.
    pub(crate) context: Option<u32>,
    /// Its chat template.
    pub(crate) template: Option<String>,
    /// Why it cannot answer conversations, if it cannot.
    pub(crate) chat_fault: Option<String>,
}

impl ModelFacts {
    /// Those of a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(path: &Path) -> Result<ModelFacts, Error> {
        let file = WeightFile::open(path)?;
        let metadata = file.metadata();
        let text = |key: &str| metadata.opt_str(key).ok().flatten().map(str::to_owned);
        let architecture = text("general.architecture").unwrap_or_default();
        let mut weights: HashMap<String, u64> = HashMap::new();
        for tensor in file.tensors() {
            *weights.entry(tensor.dtype.to_string()).or_default() += tensor.shape.len() as u64;
        }
        let named = metadata.opt_u32("general.file_type").ok().flatten().and_then(file_type::name);
        let most = weights.iter().max_by_key(|(_, count)| **count).map(|(format, _)| &**format);
        let bytes = file.bytes_total();
        let unreadable = |source| WeightError::Open { path: path.to_owned(), source };
        let mut facts = ModelFacts {
            bytes,
            digest: digest::of_model(path, bytes).map_err(unreadable)?,
            parameters: weights.values().sum(),
            quantization: named.or(most).unwrap_or_default().to_owned(),
            context: metadata.opt_u32(&format!("{architecture}.context_length")).ok().flatten(),
            template: text("tokenizer.chat_template"),
            architecture,
            chat_fault: None,
        };
        facts.chat_fault = facts.find_chat_fault();
        Ok(facts)
    }

    /// Number of weights as people write it, such as `135M` or `1.5B`.
    pub(crate) fn size(&self) -> String {
        let (value, unit) = match self.parameters {
            0..1_000_000 => return format!("{}K", self.parameters.div_ceil(1000)),
            1_000_000..1_000_000_000 => (self.parameters as f64 / 1e6, 'M'),
            _ => (self.parameters as f64 / 1e9, 'B'),
        };
        match value < 10.0 {
            true => format!("{value:.1}{unit}"),
            false => format!("{value:.0}{unit}"),
        }
    }

    /// Whether it makes embeddings only.
    pub(crate) fn is_encoder(&self) -> bool {
        Architecture::by_name(&self.architecture).is_some_and(|known| known.is_encoder())
    }

    /// Why it cannot answer conversations, if it cannot.
    fn find_chat_fault(&self) -> Option<String> {
        let fault = ChatFault::of(self.is_encoder(), self.template.as_deref())?;
        Some(fault.to_string())
    }

    /// Whether its template has tags for thoughts.
    pub(crate) fn knows_thoughts(&self) -> bool {
        let template = self.template.as_deref().map(|source| ChatTemplate::new(source, "", ""));
        template.is_some_and(|template| template.thought_tags().is_some())
    }

    /// Whether its template writes descriptions of functions into the prompt.
    pub(crate) fn knows_tools(&self) -> bool {
        self.template.as_ref().is_some_and(|template| template.contains("tools"))
    }
}
