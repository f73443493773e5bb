//! Requantisation of matrices to fewer bits than the weight file has. It loses precision, so it only
//! happens on request.

mod blocks;
mod form;
mod names;
mod report;
mod search;
mod write;

use crate::formats::DType;
use crate::graph::{Graph, WeightId};
use crate::op::Op;
pub use blocks::quantize;
pub use form::{Group, Requant};
pub use names::UnknownRequant;
pub use report::{KeptReason, KeptTensor, Requantized};
pub use write::RequantError;

impl Requant {
    /// The form for a matrix of format `stored` with `cols` columns, or the reason not to requantise it.
    fn for_matrix(self, stored: DType, cols: usize) -> Result<Requant, KeptReason> {
        let bits = |dtype: DType| 8.0 * dtype.block_bytes() as f64 / dtype.block_len() as f64;
        let form = self.within(cols);
        let grows = bits(form.unwrap_or(self).dtype()) > bits(stored);
        match form.and_then(|form| form.bits(cols).zip(Some(form))) {
            _ if grows => Err(KeptReason::NoMoreBits),
            None => Err(KeptReason::Columns { cols }),
            Some((own, _)) if own >= bits(stored) => Err(KeptReason::NoMoreBits),
            Some((_, form)) => Ok(form),
        }
    }
}

impl Graph {
    /// Requantises to `format` every matrix of a matmul or of experts, but not of routers, that the file stores in more bits per weight,
    /// [counted once per group](Requant::bits), in no fewer bits than the blocks take, and whose rows are whole groups. Rows that
    /// are not whole blocks of 256 get the form that takes its place ([`Requant::within`]). An embedding table is only requantised
    /// if it is also the matrix of a matmul. All other weights stay as stored. Replaces the effect of earlier calls.
    pub fn requantize(&mut self, format: Requant) -> Requantized {
        let is_matrix = self.is_matrix();
        let mut report = Requantized::new(format);
        for id in (0..is_matrix.len()).map(WeightId) {
            self.set_requant(id, None);
            if !is_matrix[id.0] {
                continue;
            }
            let spec = &self.weights()[id.0];
            match format.for_matrix(spec.dtype, spec.cols) {
                Err(reason) => report.keep(spec, reason),
                Ok(form) => {
                    report.change(spec, form);
                    self.set_requant(id, Some(form));
                }
            }
        }
        report
    }

    /// Names of the matrices of matmuls, in graph order.
    pub fn matrices(&self) -> impl Iterator<Item = &str> {
        let specs = self.weights().iter().zip(self.is_matrix());
        specs.filter(|(_, is_matrix)| *is_matrix).map(|(spec, _)| &*spec.name)
    }

    /// Whether each weight is the matrix of a matmul or of experts, but not of a router.
    fn is_matrix(&self) -> Vec<bool> {
        let mut is_matrix = vec![false; self.weights().len()];
        for weight in self.nodes().iter().flat_map(|node| node.op.matrices()) {
            is_matrix[weight.0] = true;
        }
        for weight in self.routers() {
            is_matrix[weight.0] = false;
        }
        is_matrix
    }

    /// The matrices of routers. Fewer bits would change which experts are chosen.
    fn routers(&self) -> impl Iterator<Item = WeightId> {
        let routes = self.nodes().iter().filter(|node| matches!(node.op, Op::Route(_)));
        routes.flat_map(|route| {
            let mut node = &self.nodes()[route.inputs[0].0];
            while let Op::Scale { .. } | Op::ScaleBy { .. } | Op::AddRow { .. } = node.op {
                node = &self.nodes()[node.inputs[0].0];
            }
            node.op.matrices()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{NewNode, ValueId, WeightSpec};

    /// A table, a matmul of each of these formats and columns, and if `tied` a matmul of the table.
    fn graph(matrices: &[(DType, usize)], table: (DType, usize), tied: bool) -> Graph {
        let mut graph = Graph::default();
        let add = |graph: &mut Graph, name: &str, (dtype, cols)| {
            graph.add_weight(WeightSpec { name: name.to_owned(), rows: 64, cols, dtype })
        };
        let table = add(&mut graph, "table", table);
        let push = |graph: &mut Graph, op, inputs: &[ValueId]| {
            graph.push(NewNode { op, inputs, width: 64, layer: None, role: "x" })
        };
        let mut last = push(&mut graph, Op::Embed { table, scale: 1.0 }, &[]);
        for (i, matrix) in matrices.iter().enumerate() {
            let weight = add(&mut graph, &format!("m{i}"), *matrix);
            last = push(&mut graph, Op::MatMul { weight, bias: None }, &[last]);
        }
        let norm = add(&mut graph, "norm", (DType::F32, 64));
        last = push(&mut graph, Op::RmsNorm { weight: Some(norm), group: 64, eps: 1e-5 }, &[last]);
        if tied {
            push(&mut graph, Op::MatMul { weight: table, bias: None }, &[last]);
        }
        graph
    }

    fn formats(graph: &Graph) -> Vec<DType> {
        graph.weights().iter().map(|spec| spec.dtype).collect()
    }

    #[test]
    fn only_matrices_of_more_bits_and_whole_blocks_are_requantised() {
        use DType::*;
        let columns = |dtype: DType| if dtype.block_len() > 32 { 512 } else { 96 };
        let all = DType::ALL.map(|dtype| (dtype, columns(dtype)));
        let rows = [
            (Requant::Q8_0, &[F32, F16, Bf16][..]),
            (Requant::Q4_1, &[F32, F16, Bf16, Q5_0, Q5_1, Q8_0, Q5K, Q6K]),
            (Requant::Q4_0, &[F32, F16, Bf16, Q4_1, Q5_0, Q5_1, Q8_0, Q5K, Q6K]),
        ];
        for (format, changed) in rows {
            let mut graph = graph(&all, (F16, 64), false);
            let before = graph.clone();
            let report = graph.requantize(format);
            let to = |dtype| if changed.contains(&dtype) { format.dtype() } else { dtype };
            let want: Vec<DType> =
                [F16].into_iter().chain(DType::ALL.map(to)).chain([F32]).collect();
            assert_eq!(formats(&graph), want, "{format}");
            assert_eq!(report.changed, changed.len());
            assert_eq!(report.matrices, all.len(), "table and norm are not matrices of matmuls");
            for (id, spec) in before.weights().iter().enumerate().map(|(i, s)| (WeightId(i), s)) {
                assert_eq!(graph.stored(id), spec.dtype);
                let is_changed = graph.weights()[id.0].dtype != spec.dtype;
                assert_eq!(graph.requant(id), is_changed.then_some(format));
            }
            graph.requantize(Requant::Q4_0);
            graph.requantize(format);
            assert_eq!(formats(&graph), want, "the last call counts");
        }
        let mut odd = graph(&[(F16, 100), (F16, 96), (F32, 31)], (F16, 64), false);
        let report = odd.requantize(Requant::Q4_0);
        assert_eq!(formats(&odd), [F16, F16, Q4_0, F32, F32]);
        let kept: Vec<&str> = report.kept.iter().map(|kept| &*kept.tensor).collect();
        assert_eq!(kept, ["m0", "m2"]);
    }

    #[test]
    fn an_embedding_table_is_requantised_only_if_it_is_the_output_matrix() {
        for (tied, want) in [(false, DType::F16), (true, DType::Q8_0)] {
            let mut graph = graph(&[(DType::F16, 64)], (DType::F16, 64), tied);
            let report = graph.requantize(Requant::Q8_0);
            assert_eq!(graph.weights()[0].dtype, want);
            assert_eq!(report.changed, 1 + usize::from(tied));
        }
    }

    #[test]
    fn a_report_counts_changed_matrices_and_names_the_reasons_for_kept_ones() {
        let text = |matrices: &[(DType, usize)], format| {
            graph(matrices, (DType::F32, 64), false).requantize(format).to_string()
        };
        let f16 = (DType::F16, 1 << 14);
        assert_eq!(
            text(&[f16, f16, (DType::F16, 100)], Requant::Q8_0),
            "requantised: 2 of 3 matrices from F16 to Q8_0 (4.2 → 2.2 MB); 1 kept as stored: m2 has \
             100 columns, not a multiple of 32"
        );
        assert_eq!(
            text(&[(DType::F32, 1 << 20), (DType::Q6K, 256), (DType::Q4K, 256)], Requant::Q4_1),
            "requantised: 2 of 3 matrices from F32 and Q6_K to Q4_1 (268 → 42.0 MB); 1 kept as \
             stored: 1 of Q4_K, which takes no more bits"
        );
        assert_eq!(
            text(&[(DType::Q4_0, 64), (DType::Q8_0, 64), (DType::F16, 33)], Requant::Q8_0),
            "requantised to Q8_0: nothing; 3 kept as stored: 1 of Q4_0 and 1 of Q8_0, which take no \
             more bits; m2 has 33 columns, not a multiple of 32"
        );
        let grouped = |group| Requant::Q4_1.with_group(group).expect("whole blocks");
        assert_eq!(
            text(&[f16, (DType::F16, 96), (DType::Q4K, 256)], grouped(Group::Columns(64))),
            "requantised: 1 of 3 matrices from F16 to int4:64:min, stored as Q4_1 (2.1 → 0.7 MB); 2 kept \
             as stored: 1 of Q4_K, which takes no more bits; m1 has 96 columns, not a multiple of 64"
        );
        let from_q8_0 = |form: &str| text(&[(DType::Q8_0, 1 << 14)], form.parse().expect("a form"));
        assert_eq!(
            from_q8_0("int8:64"),
            "requantised: 1 of 1 matrices from Q8_0 to int8:64, stored as Q8_0 (1.1 → 1.1 MB)"
        );
        let nothing = ["q8_0", "int8:32"].map(from_q8_0);
        assert!(nothing.iter().all(|text| text.contains("nothing")), "{nothing:?}");
        // 4.25 bits per weight, but stored in 5.
        let grown = text(&[(DType::Q4K, 512)], "int4:128:min".parse().expect("a form"));
        assert!(grown.contains("nothing; 1 kept as stored: 1 of Q4_K"), "{grown}");
        assert_eq!(
            text(&[(DType::F16, 100)], grouped(Group::Row)),
            "requantised to int4:row:min: nothing; 1 kept as stored: m0 has 100 columns, not a multiple \
             of 32"
        );
        assert_eq!(
            text(&[f16, (DType::F16, 96), (DType::F16, 100)], "q3_k".parse().expect("a form")),
            "requantised: 2 of 3 matrices from F16 to Q3_K, 1 of them to Q4_0 because rows are not whole blocks \
             of 256 (2.1 → 0.5 MB); 1 kept as stored: m2 has 100 columns, not a multiple of 32"
        );
        let many = text(&[(DType::F16, 33); 5], Requant::Q8_0);
        assert!(many.ends_with("m2 has 33 columns, not a multiple of 32; and 2 more"), "{many}");
    }
}
