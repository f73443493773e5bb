use super::*;

fn caches(l2: usize, prefetch_hint: PrefetchHint) -> Caches {
    Caches { l2, prefetch_hint, ..Caches::default() }
}

#[test]
fn each_line_is_prefetched_once_and_none_after_the_end() {
    let bytes = [0u8; 100 * CACHE_LINE];
    for (l2, skip, want) in [
        (usize::MAX, 0, 0..100),
        (usize::MAX, 4 * CACHE_LINE, 4..100),
        (usize::MAX, 200 * CACHE_LINE, 0..0),
        (64 * CACHE_LINE, 4 * CACHE_LINE, 4..16),
        (64 * CACHE_LINE, 16 * CACHE_LINE, 0..0),
        (0, 0, 0..0),
    ] {
        for hint in [PrefetchHint::AllLevels, PrefetchHint::L2Only] {
            let mut prefetch = IdlePrefetch::of(&caches(l2, hint), &bytes, skip);
            let found: Vec<_> = std::iter::from_fn(|| prefetch.next()).collect();
            let want: Vec<_> = want.clone().map(|i| bytes[i * CACHE_LINE..].as_ptr()).collect();
            assert_eq!(found, want, "{l2} bytes of cache, {skip} prefetched before");
        }
    }
    let mut first = IdlePrefetch::of(&caches(usize::MAX, PrefetchHint::L1Only), &bytes, 0);
    assert_eq!(first.next(), None, "the first level has no room");
}

#[test]
fn waiting_returns_at_the_word_and_continues_the_prefetch() {
    let bytes = [0u8; 100 * CACHE_LINE];
    IdlePrefetch::of(&caches(usize::MAX, PrefetchHint::AllLevels), &bytes, 0).register();
    let loads = Cell::new(0);
    let load = || loads.replace(loads.get() + 1);
    let left = || IDLE_PREFETCH.get().lines;
    assert_eq!(spin_until(10, load, |word| word == 0), 0);
    assert_eq!((loads.get(), left()), (1, 100), "nothing is prefetched without waiting");
    assert_eq!(spin_until(10, load, |word| word == 5), 5);
    assert_eq!((loads.get(), left()), (6, 92));
    assert_eq!(spin_until(3, load, |_| false), 9);
    assert_eq!((loads.get(), left()), (10, 86));
    assert_eq!(spin_until(1000, load, |word| word == 500), 500);
    assert_eq!(left(), 0);
    assert_eq!(spin_until(0, load, |_| false), 501);
}
