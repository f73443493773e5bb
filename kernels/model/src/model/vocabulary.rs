//! Checks the size of the vocabulary against the embeddings.

use super::ModelError;
use crate::graph::{Graph, WeightSpec};
use crate::op::Op;
use crate::weights::{Metadata, Value};

const KEY: &str = "tokenizer.ggml.tokens";

/// Number of tokens in the file's vocabulary, if it says that. A file without a vocabulary says it for its architecture.
pub(super) fn tokens(meta: &Metadata, arch: &str) -> Option<usize> {
    match meta.get(KEY) {
        Some(Value::Array(tokens)) => Some(tokens.len()),
        _ => meta.opt_u32(&format!("{arch}.vocab_size")).ok().flatten().map(|count| count as usize),
    }
}

/// Checks that every token of the file's vocabulary has an embedding.
pub(super) fn check(meta: &Metadata, graph: &Graph) -> Result<(), ModelError> {
    let Some(Value::Array(tokens)) = meta.get(KEY) else { return Ok(()) };
    let tables = graph.nodes().iter().filter_map(|node| match node.op {
        Op::Embed { table, .. } | Op::Lookup { table, .. } => Some(&graph.weights()[table.0]),
        _ => None,
    });
    match tables.into_iter().find(|table| tokens.len() > table.rows) {
        Some(WeightSpec { name, rows, .. }) => Err(ModelError::BadValue {
            key: KEY.to_owned(),
            found: format!("an array of {} tokens", tokens.len()),
            expected: format!("tensor '{name}' has only {rows} rows; the file is damaged"),
        }),
        None => Ok(()),
    }
}
