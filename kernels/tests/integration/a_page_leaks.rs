//! Every KV page returns to its pool exactly once.

use lapwing_kernels::kv::{KvDtype, KvHeads, KvLayout, KvLease, KvPage, KvPool, OutOfPages};

fn layout() -> KvLayout {
    KvLayout::uniform(1, KvHeads::new(1, 4), 32, KvDtype::F16)
}

#[test]
fn pages_return_when_the_last_owner_drops_them() {
    let pool = KvPool::new(8);
    let mut lease = KvLease::default();
    lease.grow(&pool, &layout(), 33).unwrap();
    assert_eq!((lease.page_ids().len(), pool.free_pages()), (2, 6));
    let shared = lease.clone();
    lease.grow(&pool, &layout(), 96).unwrap();
    assert_eq!((&shared.page_ids()[..], pool.free_pages()), (&lease.page_ids()[..2], 5));
    drop(lease);
    assert_eq!(pool.free_pages(), 6);
    drop(shared);
    assert_eq!((pool.free_pages(), pool.capacity()), (8, 8));
}

#[test]
fn a_refused_allocation_takes_no_page() {
    let pool = KvPool::new(3);
    let mut lease = KvLease::new(pool.alloc(2).unwrap());
    let before = lease.page_ids().to_vec();
    let error = lease.grow(&pool, &layout(), 4 * 32 + 1).unwrap_err();
    assert_eq!(error, OutOfPages { wanted: 3, free: 1 });
    assert_eq!((&lease.page_ids()[..], pool.free_pages()), (&before[..], 1));
}

#[test]
fn a_withheld_page_is_not_allocated_again_whoever_has_it() {
    let pool = KvPool::new(8);
    let (leased, shared) = (pool.alloc(2).unwrap(), KvLease::new(pool.alloc(1).unwrap()));
    let clone = shared.clone();
    // Page 7 is free. A page may be withheld twice.
    for pages in [&[leased[0].id(), shared.page_ids()[0], 7][..], &[7]] {
        pool.withhold(pages);
        assert_eq!((pool.free_pages(), pool.usable(), pool.capacity()), (4, 5, 8));
    }
    drop((leased, shared));
    assert_eq!(pool.free_pages(), 5, "the other leased page returns");
    drop(clone);
    let found: Vec<u32> = pool.alloc(5).unwrap().iter().map(KvPage::id).collect();
    assert_eq!((found, pool.free_pages()), (vec![1, 3, 4, 5, 6], 5));
    assert_eq!(pool.alloc(6).unwrap_err(), OutOfPages { wanted: 6, free: 5 });
}

#[test]
fn no_page_has_two_owners_under_random_use() {
    let pool = KvPool::new(50);
    let mut leases: Vec<KvLease> = Vec::new();
    let mut state = 12345u64;
    for _ in 0..10_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (choice, pick) = (state >> 60, (state >> 33) as usize);
        match (choice, leases.len()) {
            (0..6, _) | (_, 0) => {
                let mut lease = KvLease::default();
                if lease.grow(&pool, &layout(), pick % 300).is_ok() {
                    leases.push(lease);
                }
            }
            (6..9, n) => {
                let _ = leases[pick % n].grow(&pool, &layout(), pick % 700);
            }
            (9..11, n) => leases[pick % n].truncate(&layout(), pick % 100),
            (_, n) => drop(leases.swap_remove(pick % n)),
        }
        let mut held: Vec<u32> = leases.iter().flat_map(|l| l.page_ids().to_vec()).collect();
        let count = held.len();
        held.sort_unstable();
        held.dedup();
        assert_eq!((held.len(), count + pool.free_pages()), (count, 50));
    }
    drop(leases);
    let mut ids: Vec<u32> = pool.alloc(50).unwrap().iter().map(|p| p.id()).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..50));
}
