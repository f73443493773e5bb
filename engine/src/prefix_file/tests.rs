use lapwing_actors::prefix::PrefixTree;
use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, StateLayout};

use super::*;

const OWNER: &str = "a model";
/// Layers of different heads.
fn layout() -> KvLayout {
    let layers = [KvHeads::new(1, 2), KvHeads { count: 3, key_dim: 4, value_dim: 2 }];
    KvLayout {
        layers: layers.into(),
        states: [StateLayout { values: 3 }].into(),
        page_rows: 2,
        dtype: KvDtype::F32,
    }
}

fn memory(pages: u32) -> (KvPool, KvStore) {
    (KvPool::new(pages), KvStore::new(layout(), pages).expect("memory"))
}

/// Two texts that begin alike and one of another namespace; the pages of each are filled with its number. States are kept where they
/// part, and at the end of one.
fn kept(folder: &Path) -> std::path::PathBuf {
    let (pool, store) = memory(8);
    let mut tree = PrefixTree::new(layout().page_rows);
    let pages = pool.alloc(5).expect("pages");
    for page in &pages {
        store.write_page(page.id(), &vec![page.id() as u8 + 1; layout().page_bytes()]);
    }
    tree.insert(&Some("salt".into()), &[1, 2, 3], &pages[3..]);
    tree.insert(&None, &[1, 2, 3, 4], &pages[..2]);
    tree.insert(&None, &[1, 2, 5], &[pages[0].clone(), pages[2].clone()]);
    let places = store.state_pool().alloc(2).expect("places");
    for (place, tokens) in places.into_iter().zip([&[1, 2][..], &[1, 2, 5]]) {
        let bytes = vec![place.id() as u8 + 101; layout().state_bytes()];
        store.write_state(place.id(), &bytes);
        tree.insert_state(&None, tokens, place);
    }
    let path = folder.join("kept.lwprefix");
    write(&path, OWNER, &tree.texts(), &store).expect("written");
    path
}

type Contents = (bool, Vec<u32>, Vec<u8>, Vec<(usize, u8)>);

/// Tokens of the texts, the byte that fills each of their pages, and the rows and the byte of each of their states.
fn contents(texts: &[CachedText], store: &KvStore) -> Vec<Contents> {
    let byte = |page: &KvPage| {
        let mut bytes = vec![0; layout().page_bytes()];
        store.read_page(page.id(), &mut bytes).expect("no device");
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        bytes[0]
    };
    let text = |text: &CachedText| {
        let bytes = text.pages.iter().map(byte).collect();
        let of_state = |state: &KeptState| {
            let bytes = store.read_state(state.place.id()).expect("no device");
            assert!(bytes.len() == layout().state_bytes());
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            (state.rows, bytes[0])
        };
        let states = text.states.iter().map(of_state).collect();
        (text.namespace.is_some(), text.tokens.clone(), bytes, states)
    };
    texts.iter().map(text).collect()
}

#[test]
fn texts_come_back_in_order_with_their_pages_and_states() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = kept(folder.path());
    let salted = (true, vec![1, 2, 3], vec![4, 5], vec![]);
    let older = (false, vec![1, 2, 3, 4], vec![1, 2], vec![(2, 101)]);
    let newer = (false, vec![1, 2, 5], vec![1, 3], vec![(2, 101), (3, 102)]);
    let all = [salted.clone(), older.clone(), newer.clone()];
    // With less memory, the most recently used ones.
    for (pages, expected) in [(8, &all[..]), (5, &all), (4, &all[1..]), (2, &all[2..]), (1, &[])] {
        let (pool, store) = memory(pages);
        let texts = read(&path, OWNER, &pool, &store).expect("read");
        assert_eq!(contents(&texts, &store), expected, "{pages} pages");
    }
}

#[test]
fn a_damaged_or_foreign_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = kept(folder.path());
    let bytes = std::fs::read(&path).expect("a file");
    let (pool, store) = memory(8);
    let refused = |owner: &str, what: &str| {
        let error = read(&path, owner, &pool, &store).expect_err(what);
        assert_eq!(pool.free_pages(), 8, "{what}: pages leaked");
        error
    };
    assert!(matches!(refused("another model", "owner"), PrefixFileError::Owner));
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        std::fs::write(&path, flipped).expect("a file");
        refused(OWNER, &format!("byte {at}"));
        std::fs::write(&path, &bytes[..at]).expect("a file");
        refused(OWNER, &format!("{at} bytes"));
    }
    let mut newer = bytes.clone();
    newer[8] = 9;
    std::fs::write(&path, newer).expect("a file");
    let error = refused(OWNER, "version");
    assert_eq!(error.to_string(), "it has format 9, and this program reads format 2");
}
