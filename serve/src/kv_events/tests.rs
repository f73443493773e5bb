//! The bytes that readers get.

use std::sync::Arc;

use lapwing_engine::kv_events::{BlockHash, CacheBatch, CacheEvent, CacheGroup, StoredBlocks};

use super::address::Address;
use super::message::Writing;
use super::msgpack::Packed;
use super::ring::Ring;
use super::settings::{KvEventsConfig, KvEventsForm};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn numbers_and_texts_have_their_shortest_form() {
    let mut out = Packed::default();
    for value in [0, 127, 128, 255, 256, 65_535, 65_536, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        out.uint(value);
    }
    assert_eq!(
        hex(&out.bytes),
        "007fcc80ccffcd0100cdffffce00010000ceffffffffcf0000000100000000cfffffffffffffffff"
    );
    for length in [31, 32, 255, 256, 65_535, 65_536] {
        let mut out = Packed::default();
        out.text(&"a".repeat(length));
        let head = hex(&out.bytes[..out.bytes.len() - length]);
        let expected = match length {
            31 => "bf",
            32 => "d920",
            255 => "d9ff",
            256 => "da0100",
            65_535 => "daffff",
            _ => "db00010000",
        };
        assert_eq!(head, expected, "{length}");
    }
    for (length, expected) in [(15, "9f"), (16, "dc0010"), (65_536, "dd00010000")] {
        let mut out = Packed::default();
        out.list(length);
        assert_eq!(hex(&out.bytes), expected);
    }
}

fn stored(parent: Option<BlockHash>, namespace: Option<&str>, group: CacheGroup) -> CacheBatch {
    let stored = StoredBlocks {
        group,
        hashes: vec![BlockHash(1), BlockHash(2)],
        parent,
        tokens: vec![5, 6, 7, 300],
        block_tokens: 2,
        namespace: namespace.map(Arc::from),
    };
    [CacheEvent::Stored(stored)].into()
}

/// The events of a batch: what is between its time and its rank.
fn events(form: KvEventsForm, has_groups: bool, batch: CacheBatch) -> String {
    let bytes = Writing { form, has_groups }.batch(1.5, &[batch]);
    let (head, rest) = bytes.split_at(11);
    assert_eq!(hex(head), "93cb3ff800000000000091");
    let (rank, events) = rest.split_last().expect("a rank");
    assert_eq!(*rank, 0);
    let text = |bytes: &[u8]| bytes.iter().all(|byte| byte.is_ascii_graphic());
    assert!(!text(events));
    hex(events)
}

fn text(text: &str) -> String {
    let mut out = Packed::default();
    out.text(text);
    hex(&out.bytes)
}

#[test]
fn a_list_has_the_fields_in_vllms_order() {
    let first = stored(None, None, CacheGroup::Attention);
    let fields = |tail: &str, length: &str, parent: &str| {
        let (kind, medium) = (text("BlockStored"), text("GPU"));
        format!("{length}{kind}920102{parent}94050607cd012c02c0{medium}c0{tail}")
    };
    assert_eq!(events(KvEventsForm::Array, false, first), fields("", "98", "c0"));
    let salted = stored(None, Some("me"), CacheGroup::Attention);
    let keys = format!("9291{}c0", text("me"));
    assert_eq!(events(KvEventsForm::Array, false, salted.clone()), fields(&keys, "99", "c0"));
    let later = stored(Some(BlockHash(9)), Some("me"), CacheGroup::States);
    let tail = format!("c001{}", text("mamba"));
    assert_eq!(events(KvEventsForm::Array, true, later), fields(&tail, "9b", "09"));
    let tail = format!("{keys}00{}", text("full_attention"));
    assert_eq!(events(KvEventsForm::Array, true, salted), fields(&tail, "9b", "c0"));
    let removed: CacheBatch =
        [CacheEvent::Removed { group: CacheGroup::States, hashes: vec![BlockHash(u64::MAX)] }]
            .into();
    let plain = format!("{}91cfffffffffffffffff{}", text("BlockRemoved"), text("GPU"));
    assert_eq!(events(KvEventsForm::Array, false, removed.clone()), format!("93{plain}"));
    assert_eq!(events(KvEventsForm::Array, true, removed), format!("94{plain}01"));
    let cleared: CacheBatch = [CacheEvent::Cleared].into();
    assert_eq!(
        events(KvEventsForm::Array, true, cleared),
        format!("91{}", text("AllBlocksCleared"))
    );
}

#[test]
fn a_map_names_its_fields() {
    let named = |pairs: &[(&str, String)]| -> String {
        let head = format!("8{:x}", pairs.len());
        pairs.iter().fold(head, |all, (name, value)| all + &text(name) + value)
    };
    let salted = stored(None, Some("me"), CacheGroup::Attention);
    let pairs = [
        ("type", text("BlockStored")),
        ("block_hashes", "920102".to_owned()),
        ("parent_block_hash", "c0".to_owned()),
        ("token_ids", "94050607cd012c".to_owned()),
        ("block_size", "02".to_owned()),
        ("lora_id", "c0".to_owned()),
        ("medium", text("GPU")),
        ("lora_name", "c0".to_owned()),
        ("extra_keys", format!("9291{}c0", text("me"))),
        ("group_idx", "00".to_owned()),
        ("kv_cache_spec_kind", text("full_attention")),
        ("cache_salt", text("me")),
    ];
    assert_eq!(events(KvEventsForm::Map, true, salted), named(&pairs));
    let plain = stored(None, None, CacheGroup::Attention);
    assert_eq!(events(KvEventsForm::Map, false, plain), named(&pairs[..8]));
}

#[tokio::test]
async fn readers_go_on_where_batches_are_left() {
    let ring = Ring::new(100, 3);
    assert!(ring.next(0).is_none());
    assert_eq!((ring.start(0).await, ring.start(200).await), (100, 200), "nothing is gone");
    for number in 0..5u8 {
        ring.push(vec![number], number == 0);
    }
    let next = |from| ring.next(from).map(|batch| (batch.number, batch.payload[0]));
    assert_eq!(
        (ring.end(), next(0), next(104), next(105)),
        (105, Some((102, 2)), Some((104, 4)), None)
    );
    assert_eq!(ring.start(103).await, 103);
    // The batch with all blocks is no longer kept, so the reader waits for a new one.
    let told = async {
        ring.wanted().await;
        ring.push(vec![5], false);
        ring.push(vec![6], true);
    };
    let (start, ()) = tokio::join!(ring.start(7), told);
    assert_eq!((start, next(start)), (106, Some((106, 6))));
    assert_eq!(ring.start(7).await, 106, "and is not asked for again");
}

#[test]
fn the_bytes_of_batches_are_bounded() {
    let ring = Ring::new(0, usize::MAX);
    for _ in 0..5 {
        ring.push(vec![0; 20 << 20], false);
    }
    assert_eq!(ring.next(0).map(|batch| batch.number), Some(2), "three of 20 MiB");
    ring.push(vec![0; 80 << 20], false);
    assert_eq!(ring.next(0).map(|batch| batch.number), Some(5), "the last one is always there");
}

#[tokio::test]
async fn addresses_are_those_of_zeromq() {
    assert!(Address::of("tcp://127.0.0.1:5557").is_ok());
    for wrong in ["127.0.0.1:5557", "tcp://127.0.0.1", "tcp://:5557", "ipc:///tmp/x", "tcp://a:b"] {
        assert!(Address::of(wrong).is_err(), "{wrong}");
    }
    let all = Address::of("tcp://*:0").expect("an address");
    let error = all.listen(0, false).await.expect_err("other machines reach it");
    assert!(error.to_string().contains("--public"), "{error}");
    assert!(all.listen(0, true).await.is_ok());
    let last = Address::of("tcp://127.0.0.1:65535").expect("an address");
    let error = last.listen(1, false).await.expect_err("no such port");
    assert!(error.to_string().contains("65536"), "{error}");
}

#[test]
fn forms_have_names() {
    for name in KvEventsForm::NAMES {
        assert_eq!(name.parse::<KvEventsForm>().map(|form| form.to_string()), Ok(name.to_owned()));
    }
    assert!("maps".parse::<KvEventsForm>().is_err());
    let read: KvEventsConfig = toml::from_str("form = \"array\"\nbatches_max = 5").expect("TOML");
    assert_eq!((read.form, read.batches_max, &*read.topic), (KvEventsForm::Array, 5, "{model}"));
}
