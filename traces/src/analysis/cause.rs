//! Causes of idle time.

/// Why a lane was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdleCause {
    /// The lane's next work needed the result of a span on the lane with this index.
    Dependency(usize),
    /// The next work had to wait for the end of work whose results were discarded: drafts that were rejected, or
    /// passes of an epoch that was over.
    Cancelled,
    /// The next work needed a graph or kernel that was being built.
    Prepare,
    /// The next work needed data that was being converted or copied.
    Convert,
    /// The next work needed a result that waited for data from a disk.
    Read,
    /// The next work was ready elsewhere, but no permit was free.
    BackPressure,
    /// The next work was ready elsewhere, but no memory slot or KV page was free.
    SlotPool,
    /// The next work was ready elsewhere, but the policy waited for the whole group.
    PolicyBarrier,
    /// The next work had been sent but was not yet taken out of the mailbox, or two processors were
    /// synchronising.
    HandOff,
    /// The awaited work was done, but the lane's thread was still asleep.
    Overshoot,
    /// The awaited work was done, but polling had not noticed it yet.
    Spin,
    /// The next work was ready and the lane free, but the work had not started.
    Restart,
    /// There was no work: no request had arrived.
    MailboxEmpty,
    /// Before the first work of the lane; nothing in the recording precedes it.
    Start,
    /// After the last work of the lane.
    End,
    /// The recording does not show a cause.
    Unknown,
}

impl IdleCause {
    /// All causes; [`Dependency`](IdleCause::Dependency) with lane 0.
    pub const ALL: [IdleCause; 16] = [
        IdleCause::Dependency(0),
        IdleCause::Cancelled,
        IdleCause::Prepare,
        IdleCause::Convert,
        IdleCause::Read,
        IdleCause::BackPressure,
        IdleCause::SlotPool,
        IdleCause::PolicyBarrier,
        IdleCause::HandOff,
        IdleCause::Overshoot,
        IdleCause::Spin,
        IdleCause::Restart,
        IdleCause::MailboxEmpty,
        IdleCause::Start,
        IdleCause::End,
        IdleCause::Unknown,
    ];

    /// Name in reports and exports, without the lane.
    pub const fn name(self) -> &'static str {
        match self {
            IdleCause::Dependency(_) => "dependency",
            IdleCause::Cancelled => "cancelled work",
            IdleCause::Prepare => "graph build",
            IdleCause::Convert => "conversion",
            IdleCause::Read => "reading",
            IdleCause::BackPressure => "back-pressure",
            IdleCause::SlotPool => "slot pool empty",
            IdleCause::PolicyBarrier => "policy barrier",
            IdleCause::HandOff => "hand-off",
            IdleCause::Overshoot => "sleep overshoot",
            IdleCause::Spin => "spin",
            IdleCause::Restart => "restart",
            IdleCause::MailboxEmpty => "mailbox empty",
            IdleCause::Start => "start",
            IdleCause::End => "end",
            IdleCause::Unknown => "unattributed",
        }
    }
}
