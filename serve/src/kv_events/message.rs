//! Batches of events in vLLM's format: `[time, [event, …], rank]`.

use lapwing_engine::kv_events::{BlockHash, CacheBatch, CacheEvent, CacheGroup, StoredBlocks};

use super::msgpack::Packed;
use super::settings::KvEventsForm;

/// The first tier of a cache, whatever memory it is in, as vLLM names it.
const MEDIUM: &str = "GPU";

/// How the events of an engine are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    pub(super) form: KvEventsForm,
    /// Whether the engine has states beside keys and values, so that events have a group.
    pub(super) has_groups: bool,
}

/// A field of an event.
type Field<'a> = (&'static str, Value<'a>);

/// The value of a field.
#[derive(Clone, Copy)]
enum Value<'a> {
    Nil,
    Number(usize),
    Text(&'a str),
    Hash(BlockHash),
    Hashes(&'a [BlockHash]),
    Tokens(&'a [u32]),
    /// A text that belongs to the first of so many blocks.
    KeyOfFirst(&'a str, usize),
}

impl Writing {
    /// The bytes of a batch at a time in seconds since 1970.
    pub(super) fn batch(self, time: f64, batches: &[CacheBatch]) -> Vec<u8> {
        let mut out = Packed::default();
        out.list(3);
        out.float(time);
        out.list(batches.iter().map(|batch| batch.len()).sum());
        for event in batches.iter().flat_map(|batch| batch.iter()) {
            self.event(&mut out, event);
        }
        // The only rank: an engine is not divided into copies that share requests.
        out.uint(0);
        out.bytes
    }

    fn event(self, out: &mut Packed, event: &CacheEvent) {
        match event {
            CacheEvent::Stored(blocks) => self.fields(out, "BlockStored", self.stored(blocks)),
            CacheEvent::Removed { group, hashes } => {
                let mut fields =
                    vec![("block_hashes", Value::Hashes(hashes)), ("medium", Value::Text(MEDIUM))];
                if self.has_groups {
                    fields.push(("group_idx", Value::Number(*group as usize)));
                }
                self.fields(out, "BlockRemoved", fields);
            }
            CacheEvent::Cleared => self.fields(out, "AllBlocksCleared", Vec::new()),
        }
    }

    /// Fields of stored blocks in the order of vLLM's list.
    fn stored(self, blocks: &StoredBlocks) -> Vec<Field<'_>> {
        let StoredBlocks { group, hashes, parent, tokens, block_tokens, namespace } = blocks;
        let mut fields = vec![
            ("block_hashes", Value::Hashes(hashes)),
            ("parent_block_hash", parent.map_or(Value::Nil, Value::Hash)),
            ("token_ids", Value::Tokens(tokens)),
            ("block_size", Value::Number(*block_tokens)),
            ("lora_id", Value::Nil),
            ("medium", Value::Text(MEDIUM)),
            ("lora_name", Value::Nil),
        ];
        let namespace = namespace.as_deref();
        let salt = namespace.filter(|_| parent.is_none());
        let is_map = self.form == KvEventsForm::Map;
        match salt {
            Some(salt) => fields.push(("extra_keys", Value::KeyOfFirst(salt, hashes.len()))),
            None if self.has_groups && !is_map => fields.push(("extra_keys", Value::Nil)),
            None => {}
        }
        if self.has_groups {
            let kind = match group {
                CacheGroup::Attention => "full_attention",
                CacheGroup::States => "mamba",
            };
            fields.push(("group_idx", Value::Number(*group as usize)));
            fields.push(("kv_cache_spec_kind", Value::Text(kind)));
        }
        if let (Some(salt), true) = (namespace, is_map) {
            fields.push(("cache_salt", Value::Text(salt)));
        }
        fields
    }

    fn fields(self, out: &mut Packed, kind: &str, fields: Vec<Field<'_>>) {
        let is_map = self.form == KvEventsForm::Map;
        if is_map {
            out.map(fields.len() + 1);
            out.text("type");
        } else {
            out.list(fields.len() + 1);
        }
        out.text(kind);
        for (name, value) in fields {
            if is_map {
                out.text(name);
            }
            value.write(out);
        }
    }
}

impl Value<'_> {
    fn write(self, out: &mut Packed) {
        match self {
            Value::Nil => out.nil(),
            Value::Number(number) => out.uint(number as u64),
            Value::Text(text) => out.text(text),
            Value::Hash(hash) => out.uint(hash.0),
            Value::Hashes(hashes) => out.uints(hashes.iter().map(|hash| hash.0)),
            Value::Tokens(tokens) => out.uints(tokens.iter().map(|id| u64::from(*id))),
            Value::KeyOfFirst(text, blocks) => {
                out.list(blocks);
                out.list(1);
                out.text(text);
                (1..blocks).for_each(|_| out.nil());
            }
        }
    }
}
