//! Names and sizes of blocks.

use std::sync::Arc;

use lapwing_kernels::kv::KvPool;

use crate::prefix::{BlockHash, CacheEvent, PrefixCache, block_tokens};

#[test]
fn hashes_are_those_of_the_formula() {
    // `hashlib.sha256(b"\0" + bytes(8) + b"".join(id.to_bytes(4, "big") for id in range(16))).digest()[-8:]` and so on.
    let tokens: Vec<u32> = (0..32).collect();
    let hashes = |namespace| -> Vec<String> {
        let all = BlockHash::start(namespace).chain(&tokens, 16);
        all.map(|hash| hash.to_string()).collect()
    };
    assert_eq!(hashes(None), ["98c824f2a2517bbd", "e791a21b32b63d4f"]);
    assert_eq!(hashes(Some("alice")), ["4c016c7bdc38281e", "305830c3345526f4"]);
    assert_eq!((block_tokens(32), block_tokens(4)), (16, 4));
}

#[test]
fn a_cache_of_usual_pages_tells_blocks_of_sixteen() {
    let (cache, pool) = (PrefixCache::new(32, None), KvPool::new(2));
    let mut events = cache.follow().expect("it runs");
    let tokens: Arc<[u32]> = (0..40).collect();
    cache.tree().insert(&None, &tokens, &pool.alloc(2).expect("pages"));
    let batch = events.next_blocking().expect("a batch");
    let [CacheEvent::Cleared, CacheEvent::Stored(blocks)] = &*batch else { panic!("{batch:?}") };
    assert_eq!((blocks.block_tokens, blocks.hashes.len(), blocks.tokens.len()), (16, 2, 32));
    assert_eq!(cache.blocks(), std::slice::from_ref(blocks));
}
