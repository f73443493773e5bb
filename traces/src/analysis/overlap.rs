//! Overlap: how much of the lanes' busy time ran beside other busy time.

/// Overlap of the lanes that compute (all devices; without devices, all lanes). With B_i the
/// times at which lane i runs something, |·| the length and LB = max(max |B_i|, busy time on the
/// critical path).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Lanes that count, by index.
    pub lanes: Vec<usize>,
    /// |B_i| of each, in ns.
    pub busy: Vec<u64>,
    /// |∪ B_i|, in ns.
    pub union: u64,
    /// LB, in ns.
    pub lower_bound: u64,
    /// |B_i ∩ B_j| in ns of each two of `lanes` (positions in it), i < j.
    pub pairs: Vec<(usize, usize, u64)>,
}

impl Overlap {
    /// (Σ|B_i| − |∪B_i|) / Σ|B_i|; `None` if nothing ran.
    pub fn ratio(&self) -> Option<f64> {
        self.share(self.union)
    }

    /// (Σ|B_i| − LB) / Σ|B_i|: what the dependencies allow; `None` if nothing ran.
    pub fn achievable(&self) -> Option<f64> {
        self.share(self.lower_bound)
    }

    /// Achieved by achievable; `None` if none is achievable.
    pub fn efficiency(&self) -> Option<f64> {
        let achievable = self.achievable().filter(|a| *a > 0.0)?;
        Some(self.ratio()? / achievable)
    }

    fn share(&self, rest: u64) -> Option<f64> {
        let total: u64 = self.busy.iter().sum();
        (total > 0).then(|| total.saturating_sub(rest) as f64 / total as f64)
    }
}

impl Overlap {
    pub(super) fn new(_t: &crate::Timeline) -> Overlap {
        unimplemented!()
    }
}
