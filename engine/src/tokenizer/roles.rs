//! Tokens with a role in the protocol: begin and end of text, and all that end a generation.
//!
//! Files rarely state all of them, so well-known texts count too, as in llama.cpp.

use std::collections::BTreeSet;

use super::token_table::{TokenTable, Traits};
use super::vocabulary::{RoleIds, Vocabulary};

/// Texts that identify an end-of-turn token when the file states none.
const EOT: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];
const EOM: &[&str] = &["<|eom_id|>"];
const FIM_PREFIX: &[&str] = &[
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
];
const FIM_SUFFIX: &[&str] = &[
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
];
const FIM_MIDDLE: &[&str] = &[
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
];
const FIM_PAD: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const FIM_REPOSITORY: &[&str] =
    &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"];
const FIM_SEPARATOR: &[&str] = &["<|file_sep|>"];

/// Texts that end a generation wherever they are tokens.
const END: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Tokens of the channel protocol, which are part of the visible text.
const CHANNEL: &[&str] = &["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// The tokens with a role, after defaults and well-known texts are applied.
#[derive(Debug, Default)]
pub(super) struct Roles {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) ends: BTreeSet<u32>,
}

impl Roles {
    /// Finds the roles in `table`, and corrects the traits of tokens known by their text.
    /// `defaults` apply where the file states no valid id.
    pub(super) fn find(vocabulary: &Vocabulary, table: &mut TokenTable, defaults: RoleIds) -> Self {
        let stated = vocabulary.roles;
        let len = table.len();
        let valid = |id: Option<u32>| id.filter(|id| *id < len);
        let bos = valid(stated.bos).or(valid(defaults.bos));
        let eos = valid(stated.eos).or(valid(defaults.eos));
        table.set_byte_default(valid(stated.unk).or(valid(defaults.unk)));

        let mut known = |stated, texts| valid(stated).or_else(|| first_known(table, texts));
        let eot = known(stated.eot, EOT);
        let eom = known(stated.eom, EOM);
        known(stated.fim_prefix, FIM_PREFIX);
        known(stated.fim_suffix, FIM_SUFFIX);
        known(stated.fim_middle, FIM_MIDDLE);
        let fim = [
            known(stated.fim_pad, FIM_PAD),
            known(stated.fim_repository, FIM_REPOSITORY),
            known(stated.fim_separator, FIM_SEPARATOR),
        ];
        let mut ends: BTreeSet<u32> = fim.into_iter().flatten().collect();
        for id in ids_of(table, END) {
            ends.insert(id);
            table.change(id, |traits| traits.control = true);
        }
        for id in ids_of(table, CHANNEL) {
            table.change(id, |traits| *traits = Traits::user_defined());
        }
        ends.extend([eos, eot, eom].into_iter().flatten());
        let mut roles = Self { bos, eos, ends };
        roles.remove_ambiguous_ends(table);
        roles
    }

    /// Removes end tokens that have another meaning in the presence of certain other tokens.
    fn remove_ambiguous_ends(&mut self, table: &mut TokenTable) {
        let end = |roles: &Self, text: &str| table.id(text).filter(|id| roles.ends.contains(id));
        let any = |texts: &[&str]| texts.iter().any(|text| end(self, text).is_some());
        let channel = any(&["<|call|>", "<|calls|>"]) && any(&["<|return|>", "<|flush|>"]);
        let plain_eos = any(&["<|tool_response>", "<|plamo:eos|>"]);
        let turn_end = end(self, "<|end|>").filter(|_| channel);
        let text_end = end(self, "</s>").filter(|_| plain_eos);
        if let Some(id) = turn_end {
            self.ends.remove(&id);
            table.change(id, |traits| *traits = Traits::user_defined());
        }
        if let Some(id) = text_end {
            self.ends.remove(&id);
            table.change(id, |traits| *traits = Traits::normal());
        }
    }
}

/// The ids of those `texts` that are tokens.
fn ids_of(table: &TokenTable, texts: &[&str]) -> Vec<u32> {
    texts.iter().filter_map(|text| table.id(text)).collect()
}

/// The token with the lowest id among `texts`, marked as a control token.
fn first_known(table: &mut TokenTable, texts: &[&str]) -> Option<u32> {
    let id = ids_of(table, texts).into_iter().min()?;
    table.change(id, |traits| traits.control = true);
    Some(id)
}
