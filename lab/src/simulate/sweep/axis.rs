//! The axes of a sweep.

use lapwing_plan::registry::choices;

use crate::simulate::change::multiple;
use crate::simulate::error::SimulateError;
use crate::simulate::labels::{multiple_label, setting_label};
use crate::simulate::names::WHOLE_NUMBERS;
use crate::simulate::repeated::check_count;
use crate::simulate::scenario::Scenario;

/// A setting or parameter, and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Setting or parameter.
    pub key: String,
    /// Values, as text.
    pub values: Vec<String>,
}

/// The setting of which all runs are combined in plots.
pub(crate) const SEED: &str = "seed";
/// Maximum number of values of an axis.
const VALUES_MAX: usize = 10_000;

impl Axis {
    /// Parses `KEY=A,B,C` or `KEY=FROM:TO[:STEP]`. Without a step there are about 16 values; settings
    /// that are counts get integers. The numbers of a range may be multiples: `KEY=0.5x:2x:0.5x`. Strategies may have
    /// parameters: `strategy=pipe,chunked:chunk=64`.
    ///
    /// # Errors
    /// [`SimulateError::NoChange`] and [`SimulateError::BadValue`].
    pub fn parse(text: &str) -> Result<Axis, SimulateError> {
        let fail = || SimulateError::NoChange { text: text.to_owned() };
        let (key, values) = text.split_once('=').ok_or_else(fail)?;
        let (key, values) = (key.trim(), values.trim());
        if key.is_empty() || values.is_empty() {
            return Err(fail());
        }
        let is_range = values.contains(':') && !values.contains('=');
        let values = if is_range { range(key, values)? } else { choices(values) };
        Ok(Axis { key: key.to_owned(), values })
    }

    /// An axis of `count` seeds of the noise, from `first` on: from 2 to [`Repeated::MAX`].
    ///
    /// [`Repeated::MAX`]: crate::simulate::Repeated::MAX
    ///
    /// # Errors
    /// [`SimulateError::BadValue`] for another count.
    pub fn seeds(first: u64, count: usize) -> Result<Axis, SimulateError> {
        check_count(count)?;
        let seeds = (0..count as u64).map(|at| first.wrapping_add(at).to_string());
        Ok(Axis { key: SEED.to_owned(), values: seeds.collect() })
    }

    /// Its values as numbers, for the x-axis of a plot: themselves, or the factors if all of them are
    /// multiples (`0.5x`) or changes in percent (`+10%`). `None` if some value is neither, or if both
    /// kinds are mixed.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let plain: Option<Vec<f64>> = self.values.iter().map(|value| value.parse().ok()).collect();
        plain.or_else(|| self.values.iter().map(|value| multiple(value)).collect())
    }

    /// The position of the axis with this key, which must have this value. An axis of seeds is not found.
    ///
    /// # Errors
    /// [`SimulateError::BadValue`] lists the keys of the axes, or the values.
    pub fn with_value(axes: &[Axis], key: &str, value: &str) -> Result<usize, SimulateError> {
        let wrong = |expected: String| SimulateError::BadValue {
            key: "against".to_owned(),
            value: format!("{key}={value}"),
            expected,
        };
        let at = axes.iter().position(|axis| axis.key == key && key != SEED);
        let at = at.ok_or_else(|| {
            let keys = axes.iter().map(|axis| &*axis.key).filter(|key| *key != SEED);
            wrong(format!("its key must be one of {}", keys.collect::<Vec<_>>().join(", ")))
        })?;
        match axes[at].values.iter().any(|known| known == value) {
            true => Ok(at),
            false => Err(wrong(format!("its value must be one of {}", axes[at].values.join(", ")))),
        }
    }

    /// The axis in words, with its unit.
    pub(crate) fn label(&self, base: &Scenario) -> String {
        match self.values.iter().all(|value| multiple(value).is_some()) {
            true => multiple_label(&self.key),
            false => setting_label(&self.key, base),
        }
    }
}

fn range(key: &str, text: &str) -> Result<Vec<String>, SimulateError> {
    let bad = |expected: &str| SimulateError::BadValue {
        key: key.to_owned(),
        value: text.to_owned(),
        expected: expected.to_owned(),
    };
    // All numbers are multiples, or none is.
    let unit = if text.ends_with('x') { "x" } else { "" };
    let number = |text: &str| text.trim().strip_suffix(unit).unwrap_or("").parse();
    let numbers: Result<Vec<f64>, _> = text.split(':').map(number).collect();
    let numbers = numbers.map_err(|_| bad("write a range as FROM:TO or FROM:TO:STEP"))?;
    let (from, to, step) = match numbers[..] {
        [from, to] => (from, to, default_step(key, from, to)),
        [from, to, step] => (from, to, step),
        _ => return Err(bad("write a range as FROM:TO or FROM:TO:STEP")),
    };
    if !(from.is_finite() && to.is_finite() && from <= to && step > 0.0) {
        return Err(bad("a range must ascend, in steps above 0"));
    }
    let count = ((to - from) / step + 1e-9).floor();
    if count >= VALUES_MAX as f64 {
        return Err(bad(&format!("a range has at most {VALUES_MAX} values")));
    }
    let digits = 12;
    let value = |at: usize| {
        let text = format!("{:.digits$}", from + at as f64 * step);
        text.trim_end_matches('0').trim_end_matches('.').to_owned() + unit
    };
    Ok((0..=count as usize).map(value).collect())
}

/// A fifteenth of the range; an integer if both ends are.
fn default_step(key: &str, from: f64, to: f64) -> f64 {
    let step = (to - from) / 15.0;
    let whole = from.fract() == 0.0 && to.fract() == 0.0 && to - from >= 15.0;
    if whole || WHOLE_NUMBERS.contains(&key) {
        step.round().max(1.0)
    } else if step > 0.0 {
        step
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_the_values_as_written() {
        let values = |text: &str| Axis::parse(text).expect(text).values;
        assert_eq!(values("strategy=pipe, auto"), ["pipe", "auto"]);
        let of_size = ["pipe", "chunked:chunk=64", "chunked:chunk=128"];
        assert_eq!(values("strategy=pipe, chunked:chunk=64,chunked:chunk=128"), of_size);
        assert_eq!(values("prompt=32:128:32"), ["32", "64", "96", "128"]);
        assert_eq!(values("gpu.rate=0.1:0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("prompt=32:1024").len(), 16);
        assert_eq!(values("prompt=5:5"), ["5"]);
        assert_eq!(values("verify=1:8"), ["1", "2", "3", "4", "5", "6", "7", "8"]);
        assert_eq!(values("npu.tile=16:64").len(), 17);
        assert_eq!(values("gpu.rate=0.5x:2x:0.5x"), ["0.5x", "1x", "1.5x", "2x"]);
        for wrong in ["gpu.rate=0.5x:2", "gpu.rate=1:2x", "gpu.rate=x:2x"] {
            assert!(Axis::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["prompt", "=3", "prompt=", "prompt=9:3", "prompt=1:9:0", "prompt=1:2:3:4"] {
            assert!(Axis::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Axis::parse("prompt=0:1e9:1").expect_err("many").to_string().contains("at most"));
    }

    #[test]
    fn multiples_are_plotted_as_factors_and_mixtures_not_at_all() {
        let numbers = |text: &str| Axis::parse(text).expect(text).numbers();
        assert_eq!(numbers("prompt=64,128"), Some(vec![64.0, 128.0]));
        assert_eq!(numbers("gpu.rate=0.5x,1x,+100%"), Some(vec![0.5, 1.0, 2.0]));
        assert_eq!(numbers("gpu.rate=1,2x"), None);
        assert_eq!(numbers("strategy=pipe,auto"), None);
        let base = Scenario::new("sd8gen3").expect("a preset");
        let label = |text: &str| Axis::parse(text).expect(text).label(&base);
        assert_eq!(label("gpu.bandwidth=20,40"), "gpu bandwidth (GB/s)");
        assert_eq!(label("gpu.bandwidth=1x,2x"), "gpu bandwidth (multiple of its value)");
    }
}
