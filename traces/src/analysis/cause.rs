//! The causes of idle time.

/// Why a lane ran nothing. Each has a name in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdleCause {
    /// Its next work needs the result of this lane (an index), which was running or busy.
    Dependency(usize),
    /// A graph or kernel that its next work needs was being built.
    Prepare,
    /// Data that its next work needs was being converted or copied.
    Convert,
    /// Its next work was ready elsewhere, but no permit was free.
    BackPressure,
    /// Its next work was ready elsewhere, but no memory slot or KV page was free.
    SlotPool,
    /// Its next work was ready elsewhere, but the policy waited for all of a group.
    PolicyBarrier,
    /// Its next work was on its way: sent, but not yet taken out of the mailbox.
    HandOff,
    /// What it waited for was done, but it slept on.
    Overshoot,
    /// What it waited for was done, but its poll had not seen it.
    Spin,
    /// Its next work was there and the lane was free, but it had not begun.
    Restart,
    /// There was nothing to do: no request had come.
    MailboxEmpty,
    /// Before the lane's first work, which nothing in the recording precedes.
    Start,
    /// After its last work.
    End,
    /// Nothing in the recording says why.
    Unknown,
}

impl IdleCause {
    /// Every cause; [`Dependency`](IdleCause::Dependency) with lane 0.
    pub const ALL: [IdleCause; 14] = [
        IdleCause::Dependency(0),
        IdleCause::Prepare,
        IdleCause::Convert,
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
            IdleCause::Prepare => "graph build",
            IdleCause::Convert => "conversion",
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
