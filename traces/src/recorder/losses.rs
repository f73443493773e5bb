//! How many events were dropped, and when they were recorded.

use std::collections::VecDeque;

/// Dropped events that are counted together.
const GROUP: u64 = 4096;

/// Most groups that are kept apart.
const GROUPS_MAX: usize = 1024;

/// Events dropped so far, in groups by the order in which they were dropped.
#[derive(Debug, Default)]
pub(super) struct Losses {
    groups: VecDeque<Group>,
}

#[derive(Debug)]
struct Group {
    count: u64,
    /// Time of its latest event, in ns.
    latest: u64,
}

impl Losses {
    /// Counts dropped events, the latest of which is of this time.
    pub(super) fn add(&mut self, count: u64, latest: u64) {
        if count == 0 {
            return;
        }
        match self.groups.back_mut().filter(|group| group.count + count <= GROUP) {
            Some(group) => {
                group.count += count;
                group.latest = group.latest.max(latest);
            }
            None => self.groups.push_back(Group { count, latest }),
        }
        if self.groups.len() > GROUPS_MAX
            && let Some(oldest) = self.groups.pop_front()
            && let Some(next) = self.groups.front_mut()
        {
            next.count += oldest.count;
            next.latest = next.latest.max(oldest.latest);
        }
    }

    /// Number of events of this time in ns or later: 0 only if there are none, otherwise at least their number. A group
    /// counts as a whole.
    pub(super) fn since(&self, time: u64) -> u64 {
        let groups = self.groups.iter().filter(|group| group.latest >= time);
        groups.map(|group| group.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_dropped_before_a_moment_are_not_missing_after_it() {
        let mut losses = Losses::default();
        (0..3_000_000).for_each(|time| losses.add(1, time));
        assert_eq!(losses.since(0), 3_000_000);
        assert_eq!(losses.since(3_000_000), 0, "all were earlier");
        let count = losses.since(2_500_000);
        assert!((500_000..500_000 + GROUP).contains(&count), "{count}");
        assert!((1..=GROUP).contains(&losses.since(2_999_999)));
        losses.add(0, u64::MAX);
        assert_eq!(losses.since(3_000_000), 0, "nothing was dropped then");
        (0..5_000_000).for_each(|time| losses.add(1, 3_000_000 + time));
        assert!(losses.groups.len() <= GROUPS_MAX && losses.since(0) == 8_000_000);
    }
}
