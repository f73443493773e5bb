//! Kinds and causes, each with a stored code and a name.

/// Defines an enum whose values each have a stored code and a name.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $code:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$value_doc])* $value),* }

        impl $name {
            /// All values.
            pub const ALL: &[$name] = &[$($name::$value),*];

            /// Name in reports and exports.
            pub const fn name(self) -> &'static str {
                match self { $($name::$value => $text),* }
            }

            pub(crate) const fn code(self) -> u8 {
                match self { $($name::$value => $code),* }
            }

            pub(crate) const fn from_code(code: u8) -> Option<$name> {
                match code { $($code => Some($name::$value),)* _ => None }
            }
        }
    };
}

coded! {
    /// Kind of a lane.
    LaneKind {
        /// Queue of a processor.
        Device = 0 "device",
        /// An actor of the runtime.
        Actor = 1 "actor",
        /// Link between two memories.
        Link = 2 "link",
        /// Channel between threads or tasks.
        Channel = 3 "channel",
        /// A thread of the embedding application.
        Thread = 4 "thread",
    }
}

coded! {
    /// Kind of work that a span does.
    Activity {
        /// Computation.
        Compute = 0 "compute",
        /// Transfer between memories.
        Copy = 1 "copy",
        /// Change of layout or precision.
        Convert = 2 "convert",
        /// Graph construction or kernel compilation.
        Prepare = 3 "prepare",
        /// Scheduling decision.
        Schedule = 4 "schedule",
        /// Sampling: from logits to tokens.
        Sample = 5 "sample",
        /// Synchronisation of two processors.
        Sync = 6 "sync",
        /// Anything else.
        Other = 7 "other",
        /// Waiting for data from a disk.
        Read = 8 "read",
    }
}

coded! {
    /// What a pass through a model is for in speculative decoding.
    DraftRole {
        /// A draft model computes the tokens to verify.
        Draft = 1 "draft",
        /// The model verifies drafted tokens.
        Verify = 2 "verify",
    }
}

coded! {
    /// Which rows a chunk has.
    ChunkPhase {
        /// Rows of prompts.
        Prefill = 1 "prefill",
        /// The next rows of sequences that generate.
        Decode = 2 "decode",
        /// Both.
        Mixed = 3 "mixed",
    }
}

coded! {
    /// How a thread waits.
    WaitMode {
        /// Notified by a callback or an event.
        Callback = 0 "callback",
        /// Blocked in the operating system.
        Blocking = 1 "blocking",
        /// Polls from the beginning.
        Spin = 2 "spin",
        /// Sleeps until shortly before the predicted end, then polls.
        SleepThenSpin = 3 "sleep-then-spin",
    }
}

coded! {
    /// Why a message that was ready stayed at its sender.
    StallCause {
        /// No permit was free: the limit of work in flight was reached.
        BackPressure = 1 "back-pressure",
        /// No memory slot or KV page was free.
        SlotPool = 2 "slot pool empty",
        /// The policy waited for the whole group.
        PolicyBarrier = 3 "policy barrier",
        /// A graph or kernel was not yet prepared.
        GraphMissing = 4 "graph missing",
    }
}

coded! {
    /// Why a span came after another one without a message between them.
    Order {
        /// The lane runs such spans one after another, as a device's queue or a thread does.
        Queue = 1 "queue",
        /// The span needed what the other one did.
        Need = 2 "need",
    }
}

coded! {
    /// Milestone in the life of a request.
    Milestone {
        /// The engine received the request; the value is the number of prompt tokens.
        Submitted = 0 "submitted",
        /// The request left the queue; the value is the number of prompt tokens that the prefix cache had.
        Admitted = 1 "admitted",
        /// Tokens (or the scores of a chunk) were produced; the value is their number.
        Token = 2 "token",
        /// The request is complete.
        Finished = 3 "finished",
        /// The caller cancelled the request.
        Cancelled = 4 "cancelled",
        /// The request failed.
        Failed = 5 "failed",
        /// The request has a target for the time between two of its tokens; the value is the target in ns.
        TokenGap = 6 "token gap",
        /// The request left the queue, and some of its prompt's tokens are computed again although the prefix cache had their keys and
        /// values: no state of the recurrent layers was kept behind them. The value is their number.
        Recomputed = 7 "recomputed",
    }
}
