//! Hands the sampling state of a sequence from a verification pass to the next one while both are in flight.

use std::sync::Arc;

use lapwing_kernels::sync::{Mutex, lock};

use crate::message::Generate;

/// The state that samples the tokens of a pass.
#[derive(Debug)]
pub struct Sampling {
    from: SamplingState,
    /// Through which a later pass may get the state.
    next: Option<Arc<Handover>>,
}

/// Where the state is.
#[derive(Debug)]
enum SamplingState {
    /// The chunk carries it.
    Here(Box<Generate>),
    /// The pass before hands it over if it chooses the token with which this one begins.
    After(Arc<Handover>),
}

impl Sampling {
    /// Sampling with a state that the chunk carries.
    pub fn new(generate: Box<Generate>, next: Option<Arc<Handover>>) -> Sampling {
        Sampling { from: SamplingState::Here(generate), next }
    }

    /// Sampling with the state of the pass before.
    pub fn after(before: Arc<Handover>, next: Option<Arc<Handover>>) -> Sampling {
        Sampling { from: SamplingState::After(before), next }
    }

    /// Whether the pass before did not choose the token with which this one begins.
    pub fn is_rejected(&self) -> bool {
        matches!(&self.from, SamplingState::After(before) if before.is_closed())
    }

    /// The state, and the way to hand it on. `Err` if the pass before has rejected this one.
    pub(crate) fn begin(self) -> Result<(Box<Generate>, Option<Arc<Handover>>), Sampling> {
        match self.from {
            SamplingState::Here(generate) => Ok((generate, self.next)),
            SamplingState::After(before) => match before.take() {
                Some(generate) => Ok((generate, self.next)),
                None => Err(Sampling { from: SamplingState::After(before), ..self }),
            },
        }
    }

    /// Drops the pass, and those after it. Returns the state if this pass has it.
    pub(crate) fn drop_pass(self) -> Option<Box<Generate>> {
        if let Some(next) = &self.next {
            next.close();
        }
        match self.from {
            SamplingState::Here(generate) => Some(generate),
            SamplingState::After(before) => before.close(),
        }
    }
}

/// The link between a pass and the next one of the same sequence. The next pass was sent on the assumption that the
/// pass before accepts its whole draft and then chooses a certain token.
#[derive(Debug, Default)]
pub struct Handover(Mutex<Link>);

#[derive(Debug, Default)]
enum Link {
    /// There is no next pass yet.
    #[default]
    Open,
    /// The next pass begins with this token.
    Awaited(u32),
    /// The pass before has chosen that token.
    Given(Box<Generate>),
    /// The next pass has taken the state.
    Taken,
    /// The pass before has ended otherwise, or the next pass was dropped.
    Closed,
}

impl Handover {
    /// Whether a next pass may be announced.
    pub(crate) fn is_open(&self) -> bool {
        matches!(*lock(&self.0), Link::Open)
    }

    /// Announces a next pass that begins with the token `first`. `false` if the pass before has already ended, so that
    /// there can be no next pass.
    pub(crate) fn follow(&self, first: u32) -> bool {
        let mut link = lock(&self.0);
        let is_open = matches!(*link, Link::Open);
        if is_open {
            *link = Link::Awaited(first);
        }
        is_open
    }

    /// Ends the pass before. `last` is its last token, if the whole draft was accepted and the text goes on. Returns
    /// the state unless the next pass gets it.
    pub(crate) fn give(&self, last: Option<u32>, generate: Box<Generate>) -> Option<Box<Generate>> {
        let mut link = lock(&self.0);
        match *link {
            Link::Awaited(first) if last == Some(first) => {
                *link = Link::Given(generate);
                None
            }
            _ => {
                *link = Link::Closed;
                Some(generate)
            }
        }
    }

    fn take(&self) -> Option<Box<Generate>> {
        let mut link = lock(&self.0);
        match std::mem::replace(&mut *link, Link::Taken) {
            Link::Given(generate) => Some(generate),
            other => {
                *link = other;
                None
            }
        }
    }

    /// Ends the link. Returns the state if it was on its way.
    fn close(&self) -> Option<Box<Generate>> {
        match std::mem::replace(&mut *lock(&self.0), Link::Closed) {
            Link::Given(generate) => Some(generate),
            _ => None,
        }
    }

    fn is_closed(&self) -> bool {
        matches!(*lock(&self.0), Link::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sampler, SamplingParams};

    fn state() -> Box<Generate> {
        Box::new(Generate {
            sampler: Sampler::new(SamplingParams::greedy(), &[]),
            stop_ids: [].into(),
            tokens_max: 1,
            drafts: None,
        })
    }

    #[test]
    fn the_state_goes_to_exactly_one_place_whatever_comes_first() {
        // Name, token of the next pass if one follows, whether it is dropped first, chosen token, and whether the next
        // pass gets the state.
        let rows = [
            ("nothing follows", None, false, Some(5), false),
            ("the right token", Some(5), false, Some(5), true),
            ("another token", Some(5), false, Some(6), false),
            ("the draft before was rejected", Some(5), false, None, false),
            ("the next pass was dropped first", Some(5), true, Some(5), false),
        ];
        for (name, first, dropped, chosen, gets) in rows {
            let link = Arc::new(Handover::default());
            let next = first.map(|first| {
                assert!(link.follow(first), "{name}");
                assert!(!link.follow(first), "{name}: two passes follow one");
                Sampling::after(Arc::clone(&link), None)
            });
            let next = match dropped {
                true => {
                    assert!(next.and_then(Sampling::drop_pass).is_none(), "{name}");
                    None
                }
                false => next,
            };
            assert_eq!(link.give(chosen, state()).is_none(), gets, "{name}");
            assert!(!link.follow(5), "{name}: the pass before has ended");
            if let Some(next) = next {
                assert_eq!(next.is_rejected(), !gets, "{name}");
                assert_eq!(next.begin().is_ok(), gets, "{name}");
            }
        }
    }

    #[test]
    fn a_dropped_pass_returns_the_state_and_rejects_those_after_it() {
        let (first, second) = (Arc::new(Handover::default()), Arc::new(Handover::default()));
        assert!(first.follow(1) && second.follow(2));
        let middle = Sampling::after(Arc::clone(&first), Some(Arc::clone(&second)));
        let last = Sampling::after(second, None);
        assert!(first.give(Some(1), state()).is_none() && !last.is_rejected());
        assert!(middle.drop_pass().is_some(), "the state was on its way to it");
        assert!(last.is_rejected() && last.drop_pass().is_none());
    }
}
