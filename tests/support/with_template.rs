//! Models with another chat template.

use std::path::{Path, PathBuf};

/// A copy of a model without a chat template that has this one, as `chat.gguf` in `folder`.
pub(crate) fn with_template(model: &Path, template: &str, folder: &Path) -> PathBuf {
    let whole = std::fs::read(model).expect("a model");
    let key = "tokenizer.chat_template";
    let mut entry = Vec::new();
    entry.extend((key.len() as u64).to_le_bytes());
    entry.extend(key.as_bytes());
    entry.extend(8u32.to_le_bytes());
    // The data section is aligned to 32 bytes and must stay so.
    let padding = (32 - (entry.len() + 8 + template.len()) % 32) % 32;
    entry.extend(((template.len() + padding) as u64).to_le_bytes());
    entry.extend(template.as_bytes());
    entry.extend(std::iter::repeat_n(b' ', padding));
    let (head, rest) = whole.split_at(24);
    let pairs = u64::from_le_bytes(head[16..].try_into().expect("8 bytes"));
    let mut bytes = head[..16].to_vec();
    bytes.extend((pairs + 1).to_le_bytes());
    bytes.extend(entry);
    bytes.extend(rest);
    let path = folder.join("chat.gguf");
    std::fs::write(&path, bytes).expect("write");
    path
}
