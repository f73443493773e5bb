//! The causes of idle time.

/// Why a lane ran nothing. Each has a name in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
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

impl Cause {
    /// Every cause; [`Dependency`](Cause::Dependency) with lane 0.
    pub const ALL: [Cause; 14] = [
        Cause::Dependency(0),
        Cause::Prepare,
        Cause::Convert,
        Cause::BackPressure,
        Cause::SlotPool,
        Cause::PolicyBarrier,
        Cause::HandOff,
        Cause::Overshoot,
        Cause::Spin,
        Cause::Restart,
        Cause::MailboxEmpty,
        Cause::Start,
        Cause::End,
        Cause::Unknown,
    ];

    /// Name in reports and exports, without the lane.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Dependency(_) => "dependency",
            Cause::Prepare => "graph build",
            Cause::Convert => "conversion",
            Cause::BackPressure => "back-pressure",
            Cause::SlotPool => "slot pool empty",
            Cause::PolicyBarrier => "policy barrier",
            Cause::HandOff => "hand-off",
            Cause::Overshoot => "sleep overshoot",
            Cause::Spin => "spin",
            Cause::Restart => "restart",
            Cause::MailboxEmpty => "mailbox empty",
            Cause::Start => "start",
            Cause::End => "end",
            Cause::Unknown => "unattributed",
        }
    }
}
