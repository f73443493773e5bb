use super::*;

fn caches(second: usize, prefetch_hint: PrefetchHint) -> Caches {
    Caches { l2: second, prefetch_hint, ..Caches::default() }
}

#[test]
fn a_line_is_asked_for_twice_or_beyond_the_end() {
    let bytes = [0u8; 100 * LINE];
    for (second, asked, want) in [
        (usize::MAX, 0, 0..100),
        (usize::MAX, 4 * LINE, 4..100),
        (usize::MAX, 200 * LINE, 0..0),
        (64 * LINE, 4 * LINE, 4..16),
        (64 * LINE, 16 * LINE, 0..0),
        (0, 0, 0..0),
    ] {
        for into in [PrefetchHint::AllLevels, PrefetchHint::L2Only] {
            let mut wanted = IdlePrefetch::of(&caches(second, into), &bytes, asked);
            let found: Vec<_> = std::iter::from_fn(|| wanted.next()).collect();
            let want: Vec<_> = want.clone().map(|i| bytes[i * LINE..].as_ptr()).collect();
            assert_eq!(found, want, "{second} bytes of cache, {asked} asked for");
        }
    }
    let mut first = IdlePrefetch::of(&caches(usize::MAX, PrefetchHint::L1Only), &bytes, 0);
    assert_eq!(first.next(), None, "the first level has no room");
}

#[test]
fn who_waits_misses_the_word_or_asks_anew() {
    let bytes = [0u8; 100 * LINE];
    IdlePrefetch::of(&caches(usize::MAX, PrefetchHint::AllLevels), &bytes, 0).register();
    let looks = Cell::new(0);
    let look = || looks.replace(looks.get() + 1);
    let left = || IDLE_PREFETCH.get().lines;
    assert_eq!(spin_until(10, look, |word| word == 0), 0);
    assert_eq!((looks.get(), left()), (1, 100), "nothing is asked for without waiting");
    assert_eq!(spin_until(10, look, |word| word == 5), 5);
    assert_eq!((looks.get(), left()), (6, 92));
    assert_eq!(spin_until(3, look, |_| false), 9);
    assert_eq!((looks.get(), left()), (10, 86));
    assert_eq!(spin_until(1000, look, |word| word == 500), 500);
    assert_eq!(left(), 0);
    assert_eq!(spin_until(0, look, |_| false), 501);
}
