//! Options of strategies.

use std::fmt;
use std::str::FromStr;

/// Whether a strategy may swap the operands of a matmul on the NPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderSwap {
    /// Each matmul in the order that suits the array better: `[M,N]·[N,K]` or `([K,N]·[N,M])ᵀ`.
    #[default]
    On,
    /// Always x·Wᵀ, to show the gain of swapping.
    Off,
}

/// Which routes a chunk may take where devices are busy, besides the one for a chunk alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MomentRoutes {
    /// Those whose devices give the same bits, so that no answer depends on what else the devices do.
    #[default]
    Class,
    /// All. Where drivers round in their own ways, an answer then depends on what else the devices do.
    Any,
    /// None: each shape of chunk has one route.
    Off,
}

/// The text names no choice of routes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not any, class or off")]
pub struct MomentError {
    /// The text.
    pub text: String,
}

impl MomentRoutes {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            MomentRoutes::Class => "class",
            MomentRoutes::Any => "any",
            MomentRoutes::Off => "off",
        }
    }
}

impl FromStr for MomentRoutes {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<MomentRoutes, MomentError> {
        let all = [MomentRoutes::Class, MomentRoutes::Any, MomentRoutes::Off];
        let known = all.into_iter().find(|choice| choice.name() == text);
        known.ok_or_else(|| MomentError { text: text.to_owned() })
    }
}

/// How a row cut divides output channels: units for the NPU, the GPU and the CPU, in that order;
/// processors that the engine lacks are left out. `3:1` gives the NPU three quarters and the GPU (the
/// CPU if there is no GPU) one quarter; `6:2:1` uses three processors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ratio(Vec<usize>);

/// The text is not a ratio.
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
    /// Maximum units of one processor.
    pub const UNITS_MAX: usize = 1000;

    /// A ratio of two or three numbers.
    ///
    /// # Errors
    /// [`RatioError`] for another count of numbers, and for a number outside 1..=[`Ratio::UNITS_MAX`].
    pub fn new(units: &[usize]) -> Result<Ratio, RatioError> {
        let sensible = |unit: &usize| (1..=Ratio::UNITS_MAX).contains(unit);
        if !(2..=3).contains(&units.len()) || !units.iter().all(sensible) {
            return Err(RatioError { text: Ratio(units.to_vec()).to_string() });
        }
        Ok(Ratio(units.to_vec()))
    }

    /// Units of each processor, fastest first: NPU, GPU, CPU.
    pub fn units(&self) -> &[usize] {
        &self.0
    }
}

impl Default for Ratio {
    /// 3:1, for prefill, which is bound by computation: an NPU of three times the GPU's rate. It is an
    /// estimate between published cuts: at 256 rows, the NPU takes all of a \[4096, 4096\] matmul and
    /// three fifths of a \[4096, 14336\] one (HeteroInfer, SOSP 2025, table 3).
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

/// Options of the strategies that are created by name. A strategy ignores options that it does not
/// use. A parameter in the name of a strategy, as in `chunked:chunk=128`, comes before the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyOptions {
    /// Whether operands of matmuls may be swapped on the NPU.
    pub order_swap: OrderSwap,
    /// The parameter `chunk` of `chunked` and `chunk-graph`; `None` for the default of each.
    pub chunk: Option<usize>,
    /// How `row-cut` and `hybrid-cut` divide output channels. `None` for the default ratio in prefill,
    /// and for shares in proportion to memory bandwidth in the decode steps of `row-cut`.
    pub ratio: Option<Ratio>,
    /// The parameter `edge-rows` of `multi-sequence-cut`; `None` for its default.
    pub edge_rows: Option<usize>,
    /// `auto`: chunks that the engine admits at the same time.
    pub in_flight: usize,
    /// `auto`: which routes a chunk may take where devices are busy.
    pub moment: MomentRoutes,
}

impl Default for StrategyOptions {
    fn default() -> StrategyOptions {
        StrategyOptions {
            order_swap: OrderSwap::default(),
            chunk: None,
            ratio: None,
            edge_rows: None,
            in_flight: 2,
            moment: MomentRoutes::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_routes_parses_as_it_is_named() {
        for choice in [MomentRoutes::Class, MomentRoutes::Any, MomentRoutes::Off] {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let error = "on".parse::<MomentRoutes>().expect_err("no choice");
        assert_eq!(error.to_string(), "'on' is not any, class or off");
    }

    #[test]
    fn a_ratio_parses_as_it_is_displayed_and_nonsense_is_refused() {
        for text in ["3:1", "6:2:1", "1:1000"] {
            assert_eq!(text.parse::<Ratio>().expect("a ratio").to_string(), text);
        }
        for text in ["", "3", "3:0", "0:1", "3:1:1:1", "a:b", "3:-1", "1001:1", ":"] {
            let error = text.parse::<Ratio>().expect_err(text);
            assert_eq!(error.text, text);
        }
    }
}
