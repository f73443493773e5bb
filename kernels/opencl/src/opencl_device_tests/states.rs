//! Models whose layers keep a state of the rows before.

use super::runs::check_runs;
use super::*;
use lapwing_model::device::SpanStates;
use lapwing_model::kv::{KvCopies, StateId};

/// Small models: with delta nets beside attention, with convolutions, with Mamba-2 and attention in one layer or by turns, without
/// attention, with factors of each value of a key beside latent attention, with experts, and with joined queries and keys.
const RECURRENT: [&str; 19] = [
    "qwen35",
    "lfm2",
    "nemotron_h",
    "granitehybrid",
    "mamba2",
    "kimi-linear",
    "mamba",
    "falcon-h1",
    "qwen3next",
    "lfm2moe",
    "qwen35moe",
    "granitehybrid-experts",
    "nemotron_h_moe",
    "qwen3next-split",
    "bailingmoe3",
    "bailingmoe3-vl",
    "jamba",
    "mamba-falcon",
    "plamo2",
];

#[test]
fn a_model_with_states_gives_the_logits_of_the_cpu_in_one_run_and_in_several() {
    needs_driver!();
    RECURRENT.into_iter().take(cases(7, RECURRENT.len())).for_each(check_runs);
}

#[test]
fn a_model_with_states_gives_the_same_logits_with_the_kernels_of_gpus() {
    needs_driver!();
    ops::AS_ON_GPU.set(true);
    RECURRENT.into_iter().take(cases(1, 7)).for_each(check_runs);
}

#[test]
fn stages_of_a_model_with_states_that_end_between_any_nodes_give_the_same_logits() {
    needs_driver!();
    let case = case_of("qwen35");
    let nodes = case.graph.nodes().len();
    let mut device = case.queue();
    let whole = case.run_stages(&mut device, 5, &[0, nodes]);
    for cut in (1..nodes).step_by(cases(9, 1)) {
        let found = case.run_stages(&mut device, 5, &[0, cut, nodes]);
        assert!(found == whole, "a cut before node {cut}");
    }
}

/// Rows of a sequence whose states are where these say.
fn rows(case: &Case, rows: std::ops::Range<usize>, states: SpanStates) -> Work {
    let mut work = case.work(rows, MemoryDomain::Host);
    let mut batch = work.payload.batch.clone();
    batch.spans[0].states = states;
    work.payload = Arc::new(Payload { batch, values: TensorSet::default() });
    work
}

fn on(from: StateId, to: StateId) -> SpanStates {
    SpanStates { from: Some(from), to, keep: Vec::new() }
}

/// The case on a device that copies, and on one that uses values, pages and states in place, each way.
fn each_way(model: &str) -> Vec<Case> {
    let in_place = kinds().into_iter().map(|kind| case_of(model).in_place(kind));
    in_place.chain([case_of(model)]).collect()
}

/// A device, and a CPU with the same keys, values and states.
fn both(case: &Case) -> (OpenClDevice, Box<dyn Device>, Arc<KvStore>) {
    let parts = case.parts();
    let kv = Arc::clone(&parts.kv);
    let device = OpenClDevice::new(parts, &case.file).expect("a device");
    let parts = CpuDeviceParts {
        name: "cpu".to_owned(),
        cpu: Cpu::new(1, Isa::best()).with_activations(Activations::F32),
        graph: Arc::clone(&case.graph),
        kv: Arc::clone(&kv),
        slots: case.slots.clone(),
    };
    let cpu = CpuDevice::new(parts, &case.file).expect("a device");
    let cpu = Blocking::new(DeviceInfo::new("cpu", DeviceKind::Cpu), cpu);
    (device, Box::new(cpu), kv)
}

#[test]
fn a_sequence_goes_on_where_another_has_kept_its_states_on_the_device_or_the_cpu() {
    needs_driver!();
    for model in RECURRENT.into_iter().take(cases(2, 5)) {
        for case in each_way(model) {
            let (mut device, mut cpu, kv) = both(&case);
            let keep = vec![(3, 3), (7, 1)];
            let states = SpanStates { from: None, to: 2, keep };
            let whole = case.run(&mut device, rows(&case, 0..12, states)).expect("a run");
            let vocab = whole.len() / 12;
            let wanted =
                |rows: std::ops::Range<usize>| &whole[rows.start * vocab..rows.end * vocab];
            let kept = [1, 3].map(|place| kv.read_state(place).expect("states"));
            assert_ne!(kept[0], kept[1], "{model}");
            let found = case.run(&mut device, rows(&case, 7..12, on(1, 0))).expect("a run");
            assert!(found == wanted(7..12), "{model}: on the device");
            let found = case.run(&mut *cpu, rows(&case, 3..7, on(3, 3))).expect("a run");
            assert_close(&found, wanted(3..7));
            let found = case.run(&mut device, rows(&case, 7..9, on(3, 0))).expect("a run");
            assert_close(&found, wanted(7..9));
            let found = case.run(&mut *cpu, rows(&case, 9..12, on(0, 0))).expect("a run");
            assert_close(&found, wanted(9..12));
            assert_eq!(kv.read_state(1).expect("states"), kept[0], "{model}: what is kept stays");
            match case.shared {
                Some(_) => assert_eq!(kv.copies(), KvCopies::default(), "{model}"),
                None => assert!(kv.copies().to_host > 0 && kv.copies().to_device > 0, "{model}"),
            }
        }
    }
}

#[test]
fn states_that_were_saved_go_on_on_the_device() {
    needs_driver!();
    for case in each_way("qwen35") {
        let (mut device, _, kv) = both(&case);
        let states = SpanStates { from: None, to: 2, keep: vec![(5, 1)] };
        let whole = case.run(&mut device, rows(&case, 0..9, states)).expect("a run");
        let saved = kv.read_state(1).expect("states");
        // Another sequence takes the place, and then what was saved.
        let other = SpanStates { from: None, to: 1, keep: Vec::new() };
        case.run(&mut device, rows(&case, 0..3, other)).expect("a run");
        assert_ne!(kv.read_state(1).expect("states"), saved);
        kv.write_state(1, &saved);
        let found = case.run(&mut device, rows(&case, 5..9, on(1, 3))).expect("a run");
        assert!(found == whole[5 * whole.len() / 9..], "{:?}", case.shared);
    }
}

#[test]
fn sequences_of_different_lengths_in_one_run_have_the_logits_of_their_own() {
    needs_driver!();
    for model in RECURRENT.into_iter().take(cases(2, 5)) {
        let case = case_of(model);
        let whole = case.run(&mut case.queue(), case.work(0..20, MemoryDomain::Host));
        let (whole, mut device) = (whole.expect("a run"), case.queue());
        let vocab = whole.len() / 20;
        // Two sequences with the same text, at different rows.
        for parts in [[0..1, 0..9], [1..14, 9..10], [14..16, 10..17], [16..20, 17..20]] {
            let mut batch = Batch::default();
            for (own, part) in parts.iter().enumerate() {
                let ids = case.work(part.clone(), DOMAIN).payload.batch.ids.clone();
                batch.push(&ids, part.start, [own as u32], 0..ids.len());
            }
            let mut work = case.work(0..1, MemoryDomain::Host);
            work.payload = Arc::new(Payload { batch, values: TensorSet::default() });
            let found = case.run(&mut device, work).expect("a run");
            let wanted = parts.iter().flat_map(|part| &whole[part.start * vocab..part.end * vocab]);
            assert!(found.iter().eq(wanted), "{model}: {parts:?}");
        }
    }
}

#[test]
fn branches_and_some_rows_of_a_model_with_states_are_refused_by_name() {
    needs_driver!();
    let case = case_of("lfm2");
    let mut device = case.queue();
    let mut work = case.work(0..4, MemoryDomain::Host);
    let mut batch = work.payload.batch.clone();
    let fork = lapwing_model::device::Fork { after: 1, copy: Some((2, 1)) };
    batch.push_branch(&[9], 2, [1].into(), fork);
    work.payload = Arc::new(Payload { batch, values: TensorSet::default() });
    let what = "short_conv 'conv' over branches of a token tree".to_owned();
    let error = DeviceError::Unsupported { device: "gpu".to_owned(), what };
    assert_eq!(case.run(&mut device, work), Err(error));
}

/// Places that commands may still write are not given to another request; others are.
#[test]
fn a_lost_device_keeps_the_places_of_states_that_its_runs_write() {
    needs_driver!();
    for case in each_way("lfm2") {
        let parts = case.parts();
        let places = parts.kv.state_pool().clone();
        let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
        device.inject(Fault::Failed(-5));
        let states = SpanStates { from: None, to: 2, keep: vec![(3, 0)] };
        let error = case.run(&mut device, rows(&case, 0..6, states)).expect_err("a lost device");
        assert!(error.to_string().contains("not used any further"), "{error}");
        let given = places.alloc(places.free_pages()).expect("places");
        let given: Vec<_> = given.iter().map(lapwing_model::kv::KvPage::id).collect();
        let free: &[u32] = if case.shared.is_some() { &[1, 3] } else { &[0, 1, 2, 3] };
        assert_eq!(given, free, "{:?}", case.shared);
    }
}
