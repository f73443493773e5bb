//! A layer of a file that predicts a further token has llama.cpp's logits, whatever the chunks, and the model that passes its hidden
//! states on to it has the same bits as without.

use lapwing_kernels::cpu::packed_users;
use lapwing_kernels::kv::{KvDtype, KvLayout};
use lapwing_kernels::model::{ModelError, ModelPart};

use super::*;

/// A model of `predictors.json`, with its reference.
struct Predicting {
    name: String,
    file: WeightFile,
    ids: Vec<u32>,
    reference: Value,
}

fn references() -> impl Iterator<Item = Predicting> {
    let text = std::fs::read_to_string(folder().join("../predictors.json")).expect("references");
    let all: serde_json::Map<String, Value> = serde_json::from_str(&text).expect("JSON");
    all.into_iter().map(|entry| {
        let (name, reference) = entry;
        let file = folder().join("..").join(reference["file"].as_str().expect("a file"));
        let file = WeightFile::open(&file).expect("a weight file");
        Predicting { name, file, ids: ids(&reference), reference }
    })
}

/// A sequence of a part of a file, with keys and values in f32.
struct Sequence {
    graph: Arc<Graph>,
    device: CpuDevice,
    lease: KvLease,
    rows: usize,
}

impl Sequence {
    fn new(file: &WeightFile, part: ModelPart) -> Sequence {
        let model = Model::part(file, None, part).expect("a part of the file");
        let layout = KvLayout { dtype: KvDtype::F32, ..model.config.kv_layout() };
        let (pool, mut lease) = (KvPool::new(8), KvLease::default());
        lease.grow(&pool, &layout, 80).expect("pages");
        let kv = Arc::new(KvStore::new(layout, 8).expect("memory"));
        let (graph, slots) = (Arc::new(model.graph), SlotPool::default());
        let (name, cpu) = ("cpu".to_owned(), Cpu::new(2, Isa::best()));
        let parts = CpuDeviceParts { name, cpu, graph: Arc::clone(&graph), kv, slots };
        let device = CpuDevice::new(parts, file).expect("bound weights");
        Sequence { graph, device, lease, rows: 0 }
    }

    /// Computes further rows in chunks. Returns their logits, and what they pass on.
    fn run(&mut self, ids: &[u32], given: &[f32], chunk: usize) -> [Vec<Vec<f32>>; 2] {
        let nodes = 0..self.graph.nodes().len();
        let mut all = [Vec::new(), Vec::new()];
        for (number, ids) in ids.chunks(chunk).enumerate() {
            let mut batch = Batch::default();
            batch.push(ids, self.rows, self.lease.page_ids().to_vec(), 0..ids.len());
            batch.passes_on = true;
            let width = self.graph.given_width();
            batch.given.extend_from_slice(&given[number * chunk * width..][..ids.len() * width]);
            let mut tensors = TensorSet::default();
            run(&mut self.device, &self.graph, nodes.clone(), &batch, &mut tensors);
            let passed_on = self.graph.passed_on();
            for (all, value) in all.iter_mut().zip([Some(self.graph.output()), passed_on]) {
                let Some(tensor) = value.and_then(|value| tensors.take(value)) else { continue };
                all.extend((0..tensor.rows()).map(|row| tensor.row(row).to_vec()));
            }
            self.rows += ids.len();
        }
        all
    }
}

#[test]
fn a_predictor_gives_llama_cpps_logits_in_any_chunks() {
    for Predicting { name, file, ids, reference } in references() {
        let [_, hidden] = Sequence::new(&file, ModelPart::WithRows).run(&ids, &[], 64);
        let given = hidden.concat();
        let mut whole = None;
        for chunk in [256, 1, 7, 32] {
            // It has no row at position 0, so that its positions are less by one than llama.cpp's.
            let mut predictor = Sequence::new(&file, ModelPart::Predictor);
            let [rows, own] = predictor.run(&ids[1..], &given, chunk);
            let last = own.last().expect("rows");
            let [then, _] = predictor.run(&ids[..1], last, 1);
            let at = |row: usize| &rows[row - 1];
            let positions = reference["positions"].as_array().expect("positions");
            let positions = positions.iter().map(|at| at.as_u64().expect("a position") as usize);
            let expected = reference["rows"].as_array().expect("rows").iter();
            let pairs = positions.map(at).zip(expected).chain([(&then[0], &reference["then"][0])]);
            for (number, (found, expected)) in pairs.enumerate() {
                let apart = found.iter().zip(floats(expected)).map(|(a, b)| (a - b).abs());
                let apart = apart.fold(0.0, f32::max);
                assert!(apart < 2e-4, "{name}, row {number}: {apart} apart");
            }
            let found = (rows, then);
            assert_eq!(whole.get_or_insert_with(|| found.clone()), &found, "{name} in {chunk}");
        }
    }
}

#[test]
fn a_model_that_passes_its_hidden_states_on_has_the_same_bits() {
    for Predicting { name, file, ids, .. } in references() {
        let [wanted, none] = Sequence::new(&file, ModelPart::Whole).run(&ids, &[], 64);
        assert!(none.is_empty());
        for chunk in [1, 7, 64] {
            let [found, hidden] = Sequence::new(&file, ModelPart::WithRows).run(&ids, &[], chunk);
            assert_eq!(found, wanted, "{name} in {chunk}");
            assert_eq!(hidden.len(), ids.len(), "{name}");
        }
    }
}

#[test]
fn rows_are_passed_on_where_they_are_wanted_and_logits_are_the_same_anyhow() {
    for Predicting { name, file, ids, .. } in references() {
        let [wanted, all] = Sequence::new(&file, ModelPart::WithRows).run(&ids, &[], 64);
        for (passes_on, selected) in
            [(true, 20..20), (true, 18..20), (false, 20..20), (false, 18..20)]
        {
            let mut sequence = Sequence::new(&file, ModelPart::WithRows);
            let mut batch = Batch { passes_on, ..Batch::default() };
            batch.push(&ids[..20], 0, sequence.lease.page_ids().to_vec(), selected.clone());
            let (nodes, mut tensors) = (0..sequence.graph.nodes().len(), TensorSet::default());
            run(&mut sequence.device, &sequence.graph, nodes, &batch, &mut tensors);
            let mut rows = |value| {
                let tensor = tensors.take(value).expect("a value");
                (0..tensor.rows()).map(|row| tensor.row(row).to_vec()).collect::<Vec<_>>()
            };
            let passed = sequence.graph.passed_on().expect("a value");
            let expected = if passes_on { 0..20 } else { selected.clone() };
            assert_eq!(rows(passed), all[expected], "{name}, {passes_on}, {selected:?}");
            assert_eq!(
                rows(sequence.graph.output()),
                wanted[selected.clone()],
                "{name}, {selected:?}"
            );
        }
    }
}

#[test]
fn a_predictor_shares_the_matrices_of_its_model_and_computes_the_same() {
    for Predicting { name, file, ids, .. } in references() {
        let alone = |file: &WeightFile| {
            let mut predictor = Sequence::new(file, ModelPart::Predictor);
            let given: Vec<f32> = (0..ids.len() * 32).map(|at| (at as f32 * 0.7).sin()).collect();
            let rows = predictor.run(&ids, &given, 64);
            (rows, packed_users(&[file]).bytes().own_bytes, predictor)
        };
        let (wanted, of_predictor, first) = alone(&file);
        drop(first);
        let target = Sequence::new(&file, ModelPart::WithRows);
        let of_target = packed_users(&[&file]).bytes().own_bytes;
        let (found, both, _predictor) = alone(&file);
        assert!(found == wanted, "{name}");
        // An output matrix of 128 rows of 32 values that is the model's is not there twice.
        let is_own = file.tensors().any(|tensor| tensor.name.contains("shared_head_head"));
        let shared = if is_own { 0 } else { 4 * 32 * 128 };
        assert!(both + shared <= of_target + of_predictor, "{name}: {both}, {of_target}");
        drop(target);
    }
}

#[test]
fn a_file_without_a_predictor_says_so() {
    // GLM 4's layer behind the model is of a form that is not supported.
    for name in ["qwen35", "llama", "glm4-mtp", "glm4moe-defaults"] {
        let error = Model::part(&Tiny::open(name).file, None, ModelPart::Predictor).map(|_| ());
        let error = error.expect_err("no predictor");
        assert!(matches!(error, ModelError::NoPredictor { .. }), "{name}: {error}");
        assert!(error.to_string().contains("glm4moe, deepseek2"), "{error}");
    }
}

#[test]
fn rows_that_are_not_given_are_an_error() {
    let Tiny { file, ids } = Tiny::open("qwen35-mtp");
    let Sequence { graph, mut device, lease, .. } = Sequence::new(&file, ModelPart::Predictor);
    let mut batch = Batch::default();
    batch.push(&ids[..3], 0, lease.page_ids().to_vec(), 2..3);
    let (nodes, mut outputs) = (0..graph.nodes().len(), TensorSet::default());
    let work = StageRun {
        nodes: nodes.clone(),
        part: &Part::WHOLE,
        prepare: Prepare::Ahead,
        batch: &batch,
        inputs: &TensorSet::default(),
        writes: &graph.writes(nodes),
        outputs: &mut outputs,
        observer: &mut Seen(Vec::new()),
    };
    let error = device.run(work).expect_err("nothing is given").to_string();
    assert!(error.contains("rows that are not given"), "{error}");
}
