//! A model given by its dimensions, as in `layers=16,dim=2048,ffn=8192,heads=32,vocab=128256`.

use lapwing_kernels::formats::DType;
use lapwing_kernels::model::shape::ModelShape;

use super::error::SimulateError;

/// Names of the dimensions, their ranges, and whether they may be left out.
const DIMENSIONS: [(&str, usize, usize, bool); 8] = [
    ("layers", 1, 1_000, false),
    ("dim", 1, 1 << 17, false),
    ("ffn", 1, 1 << 20, false),
    ("heads", 1, 1 << 12, false),
    ("vocab", 1, 1 << 22, false),
    ("kv-heads", 1, 1 << 12, true),
    ("head-dim", 2, 1 << 12, true),
    ("tied", 0, 1, true),
];
/// Range of the bits of a weight.
const BITS: (f64, f64) = (1.0, 32.0);

/// A model of the architecture `llama` with given dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GivenShape {
    pub(super) shape: ModelShape,
    /// Bits of a weight; `None` if not given.
    pub(super) bits: Option<f64>,
}

impl GivenShape {
    /// Whether the name of a model is meant as its dimensions.
    pub(super) fn is_meant(text: &str) -> bool {
        text.split_once('=').is_some_and(|(key, _)| is_key(key.trim()))
    }

    /// Parses `KEY=VALUE,…`; `;` separates, too, so that a sweep can list several shapes.
    ///
    /// # Errors
    /// [`SimulateError::Model`], naming the dimension at fault.
    pub(super) fn parse(text: &str) -> Result<GivenShape, SimulateError> {
        let wrong = |reason: String| SimulateError::Model {
            reason: format!(
                "'{text}' is not a shape: {reason} (write layers=16,dim=2048,ffn=8192,heads=32,vocab=128256 \
                 and optionally kv-heads=8, head-dim=64, tied=1, bits=4.5)"
            ),
        };
        let mut found: [Option<usize>; DIMENSIONS.len()] = [None; DIMENSIONS.len()];
        let mut bits = None;
        for item in text.split([',', ';']).map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let (key, value) = (key.trim(), value.trim());
            if !is_key(key) {
                return Err(wrong(format!("there is no dimension '{key}'")));
            }
            let twice = wrong(format!("{key} is given twice"));
            let Some(at) = DIMENSIONS.iter().position(|(name, ..)| *name == key) else {
                let number = value.parse().ok().filter(|bits| (BITS.0..=BITS.1).contains(bits));
                let number = number.ok_or_else(|| wrong("bits must be from 1 to 32".to_owned()))?;
                if bits.replace(number).is_some() {
                    return Err(twice);
                }
                continue;
            };
            let (_, least, most, _) = DIMENSIONS[at];
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            let range = || wrong(format!("{key} must be a whole number from {least} to {most}"));
            if found[at].replace(number.ok_or_else(range)?).is_some() {
                return Err(twice);
            }
        }
        let absent = DIMENSIONS.iter().zip(&found).find(|(d, found)| found.is_none() && !d.3);
        if let Some(((name, ..), _)) = absent {
            return Err(wrong(format!("{name} is missing")));
        }
        let of = |at: usize, default: usize| found[at].unwrap_or(default);
        let (width, heads) = (of(1, 1), of(3, 1));
        let shape = ModelShape {
            name: "given",
            title: "given dimensions",
            source: "given dimensions",
            layers: of(0, 1),
            width,
            heads,
            kv_heads: of(5, heads),
            head_dim: of(6, width / heads),
            ffn_width: of(2, 1),
            vocab: of(4, 1),
            tied: of(7, 0) == 1,
            context: 1 << 22,
            ..ModelShape::all()[0].clone()
        };
        if !heads.is_multiple_of(shape.kv_heads) {
            return Err(wrong(format!(
                "heads {heads} must be a multiple of kv-heads {}",
                shape.kv_heads
            )));
        }
        if found[6].is_none() && (!width.is_multiple_of(heads) || shape.head_dim < 2) {
            return Err(wrong(format!(
                "dim {width} does not divide into {heads} heads; add head-dim"
            )));
        }
        Ok(GivenShape { shape, bits })
    }

    /// The stored format, in blocks of at most 32 weights, whose bits are nearest to those of a weight; `None` without bits.
    pub(super) fn nearest_format(&self) -> Option<DType> {
        let bits = self.bits?;
        let far = |dtype: &DType| {
            (dtype.block_bytes() as f64 * 8.0 / dtype.block_len() as f64 - bits).abs()
        };
        let small = DType::ALL.into_iter().filter(|dtype| dtype.block_len() <= 32);
        small.min_by(|a, b| far(a).total_cmp(&far(b)))
    }
}

fn is_key(key: &str) -> bool {
    key == "bits" || DIMENSIONS.iter().any(|(name, ..)| *name == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Scenario;

    const LLAMA: &str = "layers=32,dim=4096,ffn=14336,heads=32,kv-heads=8,vocab=128256";

    #[test]
    fn the_dimensions_of_a_known_shape_give_its_times() {
        let mut known = Scenario::new("sd8gen3").expect("a preset");
        known.decode = 4;
        let mut given = known.clone();
        given.model = LLAMA.replace(',', ";");
        let (known, given) = (known.run().expect("a run"), given.run().expect("a run"));
        assert_eq!(known, given);
    }

    #[test]
    fn fewer_bits_make_decode_faster() {
        let time = |bits: &str| {
            let mut scenario = Scenario::new("sd8gen3").expect("a preset");
            scenario.decode = 4;
            scenario.model = format!("{LLAMA},bits={bits}");
            scenario.run().expect("a run").decode_ms.expect("decode steps")
        };
        assert!(time("8") > 1.5 * time("4"));
        // The devices of a machine read stored formats: Q8_0 has 8.5 bits, Q4_0 has 4.5.
        let stored = |bits: &str| {
            let mut scenario = Scenario::new("core-ultra-5-125h").expect("a preset");
            scenario.decode = 4;
            scenario.set("strategy", "gpu-only").expect("a strategy");
            scenario.model = format!("layers=2,dim=1024,ffn=4096,heads=8,vocab=4096{bits}");
            scenario.run().expect("a run").decode_ms.expect("decode steps")
        };
        let ratio = stored(",bits=8") / stored(",bits=4");
        assert!((1.6..1.9).contains(&ratio), "{ratio}");
        assert_eq!(stored(",bits=4.5"), stored(""));
    }

    #[test]
    fn an_impossible_shape_is_named() {
        let rows = [
            ("layers=2", "dim is missing"),
            ("layers=2,depth=3", "'depth'"),
            ("layers=0,dim=64,ffn=64,heads=2,vocab=9", "layers"),
            ("layers=2,dim=64,ffn=64,heads=3,vocab=9", "head-dim"),
            ("layers=2,dim=64,ffn=64,heads=4,kv-heads=3,vocab=9", "kv-heads"),
            ("layers=2,layers=2", "twice"),
            ("bits=0", "bits"),
            ("layers=x", "whole number"),
            ("layers", "'layers'"),
        ];
        for (text, says) in rows {
            let error = GivenShape::parse(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
