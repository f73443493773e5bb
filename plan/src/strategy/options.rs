//! What can be set on strategies.

use std::fmt;
use std::str::FromStr;

/// Whether a strategy may swap a product's operands on the NPU (S2-24).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderSwap {
    /// Each product in the order whose array shape is better: `[M,N]·[N,K]` or `([K,N]·[N,M])ᵀ`.
    #[default]
    On,
    /// Always x·Wᵀ, to show what swapping brings.
    Off,
}

/// How features are divided between processors: so many units for the NPU, the GPU and the CPU, in
/// that order, of those that the engine has. `3:1` gives the NPU three quarters and the GPU (or,
/// without one, the CPU) a quarter; `6:2:1` uses three processors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ratio(Vec<usize>);

/// Why a text is no ratio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "ratio '{text}' must be two or three whole numbers from 1 to {}, such as 3:1 or 6:2:1, for NPU:GPU:CPU",
    Ratio::UNITS_MAX
)]
pub struct RatioError {
    /// The text.
    pub text: String,
}

impl Ratio {
    /// Most units of one processor.
    pub const UNITS_MAX: usize = 1000;

    /// A ratio of two or three numbers.
    ///
    /// # Errors
    /// [`RatioError`] for another count of numbers, and for one outside 1..=[`Ratio::UNITS_MAX`].
    pub fn new(units: &[usize]) -> Result<Ratio, RatioError> {
        let sensible = |unit: &usize| (1..=Ratio::UNITS_MAX).contains(unit);
        if !(2..=3).contains(&units.len()) || !units.iter().all(sensible) {
            return Err(RatioError { text: Ratio(units.to_vec()).to_string() });
        }
        Ok(Ratio(units.to_vec()))
    }

    /// Units of each processor, the fastest first.
    pub fn units(&self) -> &[usize] {
        &self.0
    }
}

impl Default for Ratio {
    /// 3:1, as the published cut of decode products (S2-40).
    fn default() -> Ratio {
        Ratio(vec![3, 1])
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&units.join(":"))
    }
}

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Ratio, RatioError> {
        let fail = |_| RatioError { text: text.to_owned() };
        let units: Result<Vec<usize>, _> = text.split(':').map(|u| u.trim().parse()).collect();
        Ratio::new(&units.map_err(fail)?).map_err(|_| RatioError { text: text.to_owned() })
    }
}

/// Settings of the strategies that are made by name. What a strategy has no use for, it ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyOptions {
    /// Whether products may be swapped on the NPU.
    pub order_swap: OrderSwap,
    /// Rows of a chunk for the strategies that cut prompts themselves; each has its own default.
    pub chunk: Option<usize>,
    /// How features are divided.
    pub ratio: Ratio,
    /// Multi-sequence cut: most rows that are left to the helper while a standard size fits.
    pub edge_rows: usize,
    /// Decider: chunks that the engine lets in at once.
    pub in_flight: usize,
}

impl StrategyOptions {
    /// 64 rows: with it the cut of 600 rows is the published 512 + 32 ‖ 56 (S2-30).
    pub const EDGE_ROWS: usize = 64;
}

impl Default for StrategyOptions {
    fn default() -> StrategyOptions {
        StrategyOptions {
            order_swap: OrderSwap::default(),
            chunk: None,
            ratio: Ratio::default(),
            edge_rows: StrategyOptions::EDGE_ROWS,
            in_flight: 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_read_as_it_is_written_and_nonsense_is_refused() {
        for text in ["3:1", "6:2:1", "1:1000"] {
            assert_eq!(text.parse::<Ratio>().expect("a ratio").to_string(), text);
        }
        for text in ["", "3", "3:0", "0:1", "3:1:1:1", "a:b", "3:-1", "1001:1", ":"] {
            let error = text.parse::<Ratio>().expect_err(text);
            assert_eq!(error.text, text);
        }
    }
}
