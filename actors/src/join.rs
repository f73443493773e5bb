//! Fork-join of a shared value: all parts share it, and the last part to finish takes it back with
//! the results of all parts.

use lapwing_kernels::sync::{Arc, Mutex, lock};

/// One part's reference to the shared value.
///
/// The value is immutable while any part holds a reference. If a part is dropped unfinished, no
/// part takes the value back, and it is dropped with the last reference.
#[derive(Debug)]
pub struct JoinPart<T, P> {
    whole: Arc<T>,
    finished: Arc<Mutex<Finished<T, P>>>,
    index: usize,
}

/// For each finished part: its reference and its result.
type Finished<T, P> = Vec<Option<(Arc<T>, P)>>;

/// Shares `whole` between `parts` parts.
pub fn split<T, P>(whole: T, parts: usize) -> Vec<JoinPart<T, P>> {
    let whole = Arc::new(whole);
    let finished = Arc::new(Mutex::new((0..parts).map(|_| None).collect()));
    let hold =
        |index| JoinPart { whole: Arc::clone(&whole), finished: Arc::clone(&finished), index };
    (0..parts).map(hold).collect()
}

impl<T, P> JoinPart<T, P> {
    /// The shared value.
    pub fn whole(&self) -> &T {
        &self.whole
    }

    /// Number of this part.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Stores the part's result. The last part receives the shared value and all results in the order
    /// of the parts.
    pub fn finish(self, result: P) -> Option<(T, Vec<P>)> {
        let JoinPart { whole, finished, index } = self;
        let mut slots = lock(&finished);
        // References are stored under the lock: the part that finds every slot full therefore holds
        // all of them.
        slots[index] = Some((whole, result));
        if slots.iter().any(Option::is_none) {
            return None;
        }
        let all: Vec<(Arc<T>, P)> = slots.drain(..).flatten().collect();
        drop(slots);
        let mut holds = Vec::with_capacity(all.len());
        let mut results = Vec::with_capacity(all.len());
        for (hold, result) in all {
            holds.push(hold);
            results.push(result);
        }
        let last = holds.pop()?;
        drop(holds);
        Arc::try_unwrap(last).ok().map(|whole| (whole, results))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_gets_the_whole_and_all_results_in_order() {
        let mut parts = split("whole".to_owned(), 3);
        let (c, b, a) = (parts.pop(), parts.pop(), parts.pop());
        let (a, b, c) = (a.expect("a"), b.expect("b"), c.expect("c"));
        assert_eq!((a.whole().as_str(), a.index(), c.index()), ("whole", 0, 2));
        assert!(b.finish(1).is_none());
        assert!(c.finish(2).is_none());
        assert_eq!(a.finish(0), Some(("whole".to_owned(), vec![0, 1, 2])));
    }

    #[test]
    fn a_part_that_is_lost_takes_the_whole_with_it() {
        let whole = std::sync::Arc::new(());
        let mut parts = split(std::sync::Arc::clone(&whole), 2);
        drop(parts.pop());
        assert!(parts.pop().is_some_and(|p: JoinPart<_, ()>| p.finish(()).is_none()));
        assert_eq!(std::sync::Arc::strong_count(&whole), 1);
    }
}

#[cfg(all(test, loom))]
mod interleavings {
    use super::*;

    #[test]
    fn exactly_one_part_gets_the_whole_whatever_the_order() {
        loom::model(|| {
            let parts = split(7, 3);
            let handles: Vec<_> = parts
                .into_iter()
                .map(|part| {
                    loom::thread::spawn(move || {
                        let index = part.index();
                        assert_eq!(*part.whole(), 7);
                        part.finish(index)
                    })
                })
                .collect();
            let got: Vec<_> =
                handles.into_iter().filter_map(|h| h.join().expect("it ran")).collect();
            assert_eq!(got, [(7, vec![0, 1, 2])]);
        });
    }
}
