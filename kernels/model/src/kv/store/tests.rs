use super::panel::Panel;
use super::*;
use crate::kv::KvHeads;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn reading_a_missing_page_or_head_panics() {
    for dtype in KvDtype::ALL {
        let layout = KvLayout::uniform(1, KvHeads::new(2, 4), 4, dtype);
        let store = KvStore::new(layout, 3).unwrap();
        for (page, head) in [(0, 2), (1, 3), (3, 0), (3, 2)] {
            for read in [KvLayer::keys, KvLayer::values] {
                let read = || _ = read(&store.layer(0), page, head);
                assert!(catch_unwind(AssertUnwindSafe(read)).is_err(), "{dtype} {page} {head}");
            }
        }
    }
}

#[test]
fn clearing_some_pages_leaves_the_others_unchanged() {
    for dtype in KvDtype::ALL {
        let layout = KvLayout::uniform(2, KvHeads::new(1, 4), 4, dtype);
        let store = KvStore::new(layout, 3).unwrap();
        for (layer, page) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
            store.layer(layer).fill(page, 1);
        }
        store.clear(2);
        for (layer, page) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
            let layer = store.layer(layer);
            let kept = [layer.keys(page, 0), layer.values(page, 0)].map(|panel| match panel {
                Panel::F32(x) => x.iter().filter(|x| **x != 0.0).count(),
                Panel::F16(x) => x.iter().filter(|x| **x != 0).count(),
                Panel::I8(x) => x.iter().filter(|x| **x != 0).count(),
            });
            assert_eq!(kept, [if page == 2 { 16 } else { 0 }; 2], "{dtype} page {page}");
        }
        store.clear(usize::MAX);
    }
}

#[test]
fn panels_of_all_heads_and_layers_tile_the_pages() {
    let heads = [KvHeads { count: 3, key_dim: 6, value_dim: 4 }, KvHeads::new(1, 8)];
    for dtype in KvDtype::ALL {
        let layout = KvLayout { layers: heads.into(), states: Arc::new([]), page_rows: 4, dtype };
        assert_eq!(layout.page_bytes(), (0..2).map(|at| layout.layer(at).page_bytes()).sum());
        let store = KvStore::new(layout.clone(), 2).unwrap();
        for (number, KvHeads { count, key_dim, value_dim }) in heads.into_iter().enumerate() {
            let layer = store.layer(number);
            let keys = (0..count).map(|head| (layer.keys(1, head), 4 * key_dim));
            let values = (0..count).map(|head| (layer.values(1, head), 4 * value_dim));
            let mut next = None;
            for (panel, len) in keys.chain(values) {
                let found = match panel {
                    Panel::F32(x) => x.len(),
                    Panel::F16(x) => x.len(),
                    Panel::I8(x) => x.len(),
                };
                let of = panel.addresses();
                assert_eq!(found, len, "{dtype}");
                assert!(next.is_none_or(|next| next == of.start), "{dtype}: a gap");
                next = Some(of.end);
            }
            for scales in (0..count).map(|head| layer.scales(1, head)) {
                let len = if dtype == KvDtype::I8 { 16 } else { 0 };
                assert_eq!(scales.map(<[i8]>::len), [len; 2], "{dtype}");
            }
        }
    }
}
