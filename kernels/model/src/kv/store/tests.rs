use super::panel::Panel;
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn reading_a_missing_page_or_head_panics() {
    for dtype in KvDtype::ALL {
        let layout = KvLayout { layers: 1, kv_heads: 2, head_dim: 4, page_rows: 4, dtype };
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
        let layout = KvLayout { layers: 2, kv_heads: 1, head_dim: 4, page_rows: 4, dtype };
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
