//! How many cases a test tries: a part of them, so that it is quick, or all with `LAPWING_TEST=full`
//! (`sh tests/all.sh full`). What a test needs may be missing only where `LAPWING_TEST` is not set.

/// Whether all cases are to be tried.
pub(crate) fn all() -> bool {
    std::env::var_os("LAPWING_TEST").is_some_and(|value| value == "full")
}

/// Whether something missing that a test needs is a failure.
#[allow(dead_code, reason = "not every test program needs something")]
pub(crate) fn needed() -> bool {
    std::env::var_os("LAPWING_TEST").is_some()
}

/// The number of cases of a test that tries `full` in all.
#[allow(dead_code, reason = "not every test program has such a test")]
pub(crate) fn cases<N>(quick: N, full: N) -> N {
    if all() { full } else { quick }
}
