//! A worker as a router knows it.

/// Number of a worker, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// Its place among all workers.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a worker announces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerSpec {
    /// How fast it is: a worker of speed 0.5 takes twice the time of one of speed 1.
    pub speed: f64,
    /// Tokens that its KV cache holds.
    pub kv_tokens: usize,
    /// Time in which a worker of speed 1 computes prompt rows.
    pub prefill: PrefillTime,
}

impl WorkerSpec {
    /// Seconds in which it computes prompt rows behind a context.
    pub fn prefill_seconds(&self, rows: usize, context: usize) -> f64 {
        self.prefill.seconds(rows, context) / self.speed
    }
}

/// Time of prompt rows: `constant` + `row` · rows + `context` · tokens before them + `row_context` · rows · tokens before them, in
/// seconds; 0 without rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PrefillTime {
    /// Seconds of any number of rows.
    pub constant: f64,
    /// Seconds for each row.
    pub row: f64,
    /// Seconds for each token before them.
    pub context: f64,
    /// Seconds for each row and token before it.
    pub row_context: f64,
}

impl PrefillTime {
    /// The form that has the times of four measurements: `few` and `many` rows, alone and behind `context` tokens.
    pub fn fit(
        few: usize,
        many: usize,
        context: usize,
        time: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let (rows, before) = ((many - few) as f64, context as f64);
        let row = (time(many, 0) - time(few, 0)) / rows;
        let constant = time(few, 0) - row * few as f64;
        let added = |rows: usize| (time(rows, context) - time(rows, 0)) / before;
        let row_context = (added(many) - added(few)) / rows;
        PrefillTime { constant, row, context: added(few) - row_context * few as f64, row_context }
    }

    /// So many times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> PrefillTime {
        let PrefillTime { constant, row, context, row_context } = self;
        PrefillTime {
            constant: constant * factor,
            row: row * factor,
            context: context * factor,
            row_context: row_context * factor,
        }
    }

    /// Seconds of so many rows behind so many tokens.
    pub fn seconds(&self, rows: usize, context: usize) -> f64 {
        if rows == 0 {
            return 0.0;
        }
        let (rows, context) = (rows as f64, context as f64);
        let PrefillTime { constant, row, context: token, row_context } = *self;
        (constant + row * rows + token * context + row_context * rows * context).max(0.0)
    }
}

/// What a worker has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerLoad {
    /// Requests without a token.
    pub waiting: usize,
    /// Requests that have a token and not yet all.
    pub generating: usize,
    /// Prompt tokens of the requests without a token.
    pub waiting_tokens: usize,
    /// Requests that it was sent in all.
    pub sent: u64,
}

impl WorkerLoad {
    /// Requests that have not ended.
    pub fn in_flight(&self) -> usize {
        self.waiting + self.generating
    }
}
