//! `tokenizer_config.json` and `special_tokens_map.json`: special tokens with their roles, and the chat template.

use lapwing_kernels::weights::Metadata;
use serde_json::{Map, Value, json};

use super::architectures;
use super::error::HfError;
use crate::chat::{ChatOptions, ChatTemplate, Message, SPECIALS};
use crate::tokenizer::Tokenizer;

/// The class that reads `tokenizer.json` as it is.
const CLASS: &str = "PreTrainedTokenizerFast";

/// Model types for which transformers 5 builds a tokenizer of its own, whatever the folder says, which normalises text; unless
/// the folder names a class for `AutoTokenizer`.
const REBUILT: [&str; 3] = ["qwen2", "qwen3_5", "qwen3_5_moe"];

/// A special token with a role.
pub(super) struct Special {
    /// Name of the role, which is also that of the variable in templates.
    role: &'static str,
    text: String,
    /// Whether it is cut out of texts. The roles of others are left out: `transformers` would cut them out, too.
    is_cut_out: bool,
}

/// The chat template.
pub(super) struct Template {
    value: Value,
    /// Why there is none, or why Lapwing cannot use it.
    pub(super) fault: Option<String>,
}

/// The tokens with roles.
///
/// # Errors
/// If a key has the wrong type.
pub(super) fn specials(
    metadata: &Metadata,
    tokenizer: &Tokenizer,
) -> Result<Vec<Special>, HfError> {
    let mut ids = vec![("bos_token", tokenizer.bos()), ("eos_token", tokenizer.eos())];
    for (role, key) in SPECIALS {
        ids.push((role, metadata.opt_u32(key)?));
    }
    let special = |pair: (&'static str, Option<u32>)| {
        let text = tokenizer.token_text(pair.1?)?.to_owned();
        Some(Special {
            role: pair.0,
            text,
            is_cut_out: pair.1.is_some_and(|id| tokenizer.is_special(id)),
        })
    };
    Ok(ids.into_iter().filter_map(special).collect())
}

/// The roles of tokens that are cut out of texts: `special_tokens_map.json`.
pub(super) fn declared(specials: &[Special]) -> Value {
    let declared = specials.iter().filter(|special| special.is_cut_out);
    declared
        .map(|special| (special.role.to_owned(), json!(special.text)))
        .collect::<Map<_, _>>()
        .into()
}

/// `tokenizer_config.json`.
///
/// # Errors
/// If a key has the wrong type.
pub(super) fn tokenizer_config(
    metadata: &Metadata,
    tokenizer: &Tokenizer,
    specials: &[Special],
    template: &Template,
) -> Result<Value, HfError> {
    let mut config = Map::new();
    config.insert("tokenizer_class".to_owned(), json!(CLASS));
    config.insert("clean_up_tokenization_spaces".to_owned(), json!(false));
    let arch = metadata.str("general.architecture")?;
    if architectures::known(arch).is_some_and(|named| REBUILT.contains(&named.model_type)) {
        config.insert("auto_map".to_owned(), json!({"AutoTokenizer": [CLASS, CLASS]}));
    }
    if let Some(context) = metadata.opt_u64(&format!("{arch}.context_length"))? {
        config.insert("model_max_length".to_owned(), json!(context));
    }
    if let Value::Object(declared) = declared(specials) {
        config.extend(declared);
    }
    let mut decoder = Map::new();
    for token in tokenizer.added_tokens() {
        let flags = json!({
            "content": token.content,
            "lstrip": token.lstrip,
            "normalized": token.normalized,
            "rstrip": token.rstrip,
            "single_word": token.single_word,
            "special": token.special,
        });
        decoder.insert(token.id.to_string(), flags);
    }
    config.insert("added_tokens_decoder".to_owned(), decoder.into());
    if !template.value.is_null() {
        config.insert("chat_template".to_owned(), template.value.clone());
    }
    Ok(config.into())
}

impl Template {
    /// The template of a file, with what Lapwing adds to its prompts.
    ///
    /// # Errors
    /// If a key has the wrong type.
    pub(super) fn of(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Template, HfError> {
        let Some(template) = ChatTemplate::from_metadata(metadata, tokenizer)? else {
            let fault = "the model's file has no chat template (tokenizer.chat_template)";
            return Ok(Template { value: Value::Null, fault: Some(fault.to_owned()) });
        };
        let fault = template.check().err().map(|error| error.to_string());
        let specials = specials(metadata, tokenizer)?;
        let adjusted = |template: &ChatTemplate| adjusted(template, tokenizer, &specials);
        let mut named = Vec::new();
        for name in ChatTemplate::names_in(metadata) {
            if let Some(template) = ChatTemplate::named_from_metadata(metadata, tokenizer, name)? {
                named.push(json!({"name": name, "template": adjusted(&template)}));
            }
        }
        let default = adjusted(&template);
        let value = match named.is_empty() {
            true => json!(default),
            false => {
                named.insert(0, json!({"name": "default", "template": default}));
                json!(named)
            }
        };
        Ok(Template { value, fault })
    }
}

/// The source of a template, such that it makes the text of the whole prompt: `transformers` adds no begin and end tokens to
/// what a template makes, and knows only those roles that the folder declares.
fn adjusted(template: &ChatTemplate, tokenizer: &Tokenizer, specials: &[Special]) -> String {
    let quoted = |text: &str| json!(text).to_string();
    let mut begin = String::new();
    for special in specials.iter().filter(|special| !special.is_cut_out) {
        if template.source().contains(special.role) {
            begin.push_str(&format!("{{% set {} = {} %}}", special.role, quoted(&special.text)));
        }
    }
    let text = |id: Option<u32>| id.and_then(|id| tokenizer.token_text(id)).map(quoted);
    if let Some(bos) = text(tokenizer.bos().filter(|_| tokenizer.adds_bos()))
        && !writes_bos(template, tokenizer)
    {
        begin.push_str(&format!("{{{{ {bos} }}}}"));
    }
    let source = template.source();
    match text(tokenizer.eos().filter(|_| tokenizer.adds_eos())) {
        // A line feed at the end of a template is no part of it.
        Some(eos) => {
            format!("{begin}{}{{{{ {eos} }}}}", source.strip_suffix('\n').unwrap_or(source))
        }
        None => format!("{begin}{source}"),
    }
}

/// Whether prompts start with the begin token without that of encoding.
fn writes_bos(template: &ChatTemplate, tokenizer: &Tokenizer) -> bool {
    let Some(bos) = tokenizer.bos().and_then(|id| tokenizer.token_text(id)) else { return false };
    let options = ChatOptions { add_generation_prompt: true, ..ChatOptions::default() };
    let user = Message::user("a");
    let conversations = [vec![user.clone()], vec![Message::system("b"), user]];
    let mut rendered =
        conversations.iter().filter_map(|messages| template.render_with(messages, &options).ok());
    rendered.next().is_some_and(|prompt| prompt.starts_with(bos))
}
