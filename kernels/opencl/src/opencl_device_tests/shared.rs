//! Values and pages that the host and the device use in place, and what can go wrong with them.

use super::*;
use lapwing_model::device::{MappedMemory, Slot};

mod lifetimes;

const HOST: MemoryDomain = MemoryDomain::Host;

/// The outputs of a stage.
fn outputs(
    device: &mut dyn Device,
    mut work: Work,
    nodes: std::ops::Range<usize>,
    values: TensorSet,
    case: &Case,
) -> TensorSet {
    let writes: Arc<[_]> = case.graph.writes(nodes.clone()).into();
    work.task = Task::Nodes { nodes, prepare: Prepare::Ahead, writes, to: HOST };
    let batch = work.payload.batch.clone();
    work.payload = Arc::new(Payload { batch, values });
    Runs::start(device).run(device, work, &mut ()).expect("a run")
}

/// Copies of values, in memory that no device uses.
fn in_plain_memory(values: &TensorSet) -> TensorSet {
    let mut copies = TensorSet::default();
    for (id, tensor) in values.iter() {
        copies.put(id, Tensor::new(tensor.width, tensor.host().expect("values").to_vec()));
    }
    copies
}

fn is_mapped(values: &TensorSet) -> bool {
    values.iter().all(|(_, tensor)| tensor.slot().and_then(Slot::mapped).is_some())
}

#[test]
fn values_and_pages_in_place_give_the_bits_of_copies() {
    needs_driver!();
    for model in MODELS.into_iter().take(cases(2, 4)) {
        let copied = case_of(model);
        let wanted = copied.run(&mut copied.queue(), copied.work(0..40, HOST)).expect("a run");
        let vocab = wanted.len() / 40;
        for kind in kinds() {
            let case = case_of(model).in_place(kind);
            for cuts in [&[0, 40][..], &[0, 1, 33, 40]] {
                let mut device = case.queue();
                for cut in cuts.windows(2) {
                    let logits = case.run(&mut device, case.work(cut[0]..cut[1], HOST));
                    let rows = cut[0] * vocab..cut[1] * vocab;
                    assert!(logits.expect("a run") == wanted[rows], "{model}, {kind}: {cut:?}");
                }
            }
        }
    }
}

#[test]
fn logits_in_place_come_with_their_largest_value() {
    needs_driver!();
    let copied = case();
    let top = |case: &Case, to| {
        let mut device = case.queue();
        let outputs = Runs::start(&mut device).run(&mut device, case.work(0..5, to), &mut ());
        let outputs = outputs.expect("a run");
        outputs.get(case.graph.output()).and_then(Tensor::top).map(<[_]>::to_vec)
    };
    let wanted = top(&copied, DOMAIN);
    assert!(wanted.is_some());
    assert_eq!(top(&copied, HOST), None, "copied logits are reduced on the host");
    for kind in kinds() {
        assert_eq!(top(&case().in_place(kind), HOST), wanted, "{kind}");
    }
}

/// A stage reads what the stage before has written, in place or from plain memory.
#[test]
fn a_stage_reads_values_in_any_memory() {
    needs_driver!();
    let copied = case();
    let (rows, nodes) = (0..5, copied.graph.nodes().len());
    let wanted = copied.run(&mut copied.queue(), copied.work(rows.clone(), HOST)).expect("a run");
    for kind in kinds() {
        let case = case().in_place(kind);
        // Memory of another context than the device's is of no use to it.
        let other = SlotPool::mapped(0, 0, memory(kind));
        for cut in (1..nodes).step_by(cases(7, 1)) {
            let mut device = case.queue();
            let work = case.work(rows.clone(), HOST);
            let first = outputs(&mut device, work.clone(), 0..cut, TensorSet::default(), &case);
            assert!(is_mapped(&first), "{kind}: a cut before node {cut}");
            let mut elsewhere = TensorSet::default();
            for (id, tensor) in first.iter() {
                elsewhere.put(id, tensor.copied(&other).expect("a copy"));
            }
            for values in [in_plain_memory(&first), elsewhere, first] {
                let second = outputs(&mut device, work.clone(), cut..nodes, values, &case);
                let logits = second.get(case.graph.output()).and_then(Tensor::host);
                assert!(logits == Some(&wanted[..]), "{kind}: a cut before node {cut}");
            }
        }
    }
}

/// Logits of rows of one sequence, in turns by the device and by the CPU with the same pages, and the pages copied.
fn in_turns(case: &Case) -> (Vec<Vec<f32>>, lapwing_model::kv::KvCopies) {
    let parts = case.parts();
    let kv = Arc::clone(&parts.kv);
    let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
    let parts = CpuDeviceParts {
        name: "cpu".to_owned(),
        cpu: Cpu::new(1, Isa::best()).with_activations(Activations::F32),
        graph: Arc::clone(&case.graph),
        kv: Arc::clone(&kv),
        slots: case.slots.clone(),
    };
    let cpu = CpuDevice::new(parts, &case.file).expect("a device");
    let mut cpu = Blocking::new(DeviceInfo::new("cpu", DeviceKind::Cpu), cpu);
    let cuts = [0, 3, 9, 10, 11, 12, 27, 40];
    let turns = cuts.windows(2).enumerate().map(|(turn, cut)| {
        let work = case.work(cut[0]..cut[1], HOST);
        let device: &mut dyn Device = if turn % 2 == 0 { &mut cpu } else { &mut device };
        case.run(device, work).expect("a run")
    });
    (turns.collect(), kv.copies())
}

#[test]
fn a_page_that_both_write_in_turns_is_never_copied() {
    needs_driver!();
    for dtype in [KvDtype::F32, KvDtype::F16] {
        let of = |shared| {
            let mut case = case();
            case.layout.dtype = dtype;
            case.graph = Arc::new(
                WeightModel::from_weights(&case.file)
                    .expect("a model")
                    .graph
                    .with_kv(case.layout.clone()),
            );
            Case { shared, ..case }
        };
        let (wanted, copies) = in_turns(&of(None));
        assert!(copies.to_host > 0 && copies.to_device > 0, "{copies:?}");
        for kind in kinds() {
            let (found, copies) = in_turns(&of(Some(kind)));
            assert!(found == wanted, "{kind}, {dtype:?}");
            assert_eq!(copies, lapwing_model::kv::KvCopies::default(), "{kind}, {dtype:?}");
        }
    }
}

/// A device with copies of its own takes a page from the host, which the other one gets back before it reads.
#[test]
fn a_page_that_only_a_third_device_holds_comes_to_the_host_first() {
    needs_driver!();
    let (whole, nodes) = (case(), 0..case().graph.nodes().len());
    let wanted = whole.run(&mut whole.queue(), whole.work(0..12, HOST)).expect("a run");
    let vocab = wanted.len() / 12;
    for kind in kinds() {
        let case = case().in_place(kind);
        let parts = case.parts();
        let kv = Arc::clone(&parts.kv);
        let mut in_place = OpenClDevice::new(parts, &case.file).expect("a device");
        let parts = OpenClDeviceParts {
            domain: DOMAIN,
            shared: None,
            kv: Arc::clone(&kv),
            ..Case { shared: None, ..super::case() }.parts()
        };
        let mut copied = OpenClDevice::new(parts, &case.file).expect("a device");
        for (turn, rows) in [0..3, 3..7, 7..9, 9..12].into_iter().enumerate() {
            let device: &mut dyn Device = if turn % 2 == 0 { &mut copied } else { &mut in_place };
            let work = case.work(rows.clone(), HOST);
            let found = outputs(device, work, nodes.clone(), TensorSet::default(), &case);
            let logits = found.get(case.graph.output()).and_then(Tensor::host);
            let wanted = &wanted[rows.start * vocab..rows.end * vocab];
            assert!(logits == Some(wanted), "{kind}: {rows:?}");
        }
        let layers = case.layout.layers.len();
        let copies = kv.copies();
        assert_eq!((copies.to_host, copies.to_device), (2 * layers, layers), "{kind}");
    }
}

#[test]
fn a_value_larger_than_all_slots_is_in_place_too() {
    needs_driver!();
    for kind in kinds() {
        let case = case().in_place(kind);
        let parts = case.parts();
        let source = parts.shared.clone().expect("shared memory");
        let parts = OpenClDeviceParts { slots: SlotPool::mapped(2, 16, source), ..parts };
        let slots = parts.slots.clone();
        let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
        let nodes = 0..case.graph.nodes().len();
        let work = case.work(0..30, HOST);
        let found = outputs(&mut device, work, nodes, TensorSet::default(), &case);
        assert!(is_mapped(&found), "{kind}");
        assert!(slots.stats().made > 0, "{kind}: {:?}", slots.stats());
    }
}

/// Has no memory.
#[derive(Debug)]
struct Exhausted;

impl SlotSource for Exhausted {
    fn allocate(&self, _values: usize) -> Option<Box<dyn MappedMemory>> {
        None
    }
}

#[test]
fn without_memory_to_share_values_and_pages_are_copied() {
    needs_driver!();
    let copied = case();
    let wanted = copied.run(&mut copied.queue(), copied.work(0..20, HOST)).expect("a run");
    for kind in kinds() {
        let case = case().in_place(kind);
        let kv =
            KvStore::in_memory_of(case.layout.clone(), 4.into(), Some(&Exhausted)).expect("memory");
        assert_eq!(kv.layers_of_host(), case.layout.layers.len());
        assert_eq!(case.parts().kv.layers_of_host(), 0);
        let slots = SlotPool::mapped(2, 100, Arc::new(Exhausted));
        let parts = OpenClDeviceParts { kv: Arc::new(kv), slots, ..case.parts() };
        let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
        let logits = case.run(&mut device, case.work(0..20, HOST)).expect("a run");
        assert!(logits == wanted, "{kind}");
    }
}
