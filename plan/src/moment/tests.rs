use std::sync::Arc;

use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;

use super::candidate::crossings;
use super::*;
use crate::route::Route;
use crate::stage::Stage;
use crate::validate::RouteFor;

const MS: Duration = Duration::from_millis(1);

/// A route whose nodes run on these devices in turn.
fn route(devices: &[usize]) -> Arc<Route> {
    let mut graph = Graph::default();
    let spec = WeightSpec { name: "w".into(), rows: 8, cols: 8, dtype: DType::F32 };
    let weight = graph.add_weight(spec);
    let node = |op| NewNode { op, inputs: &[], width: 8, layer: None, role: "test" };
    let mut x = graph.push(node(Op::Embed { table: weight, scale: 1.0 }));
    for _ in 1..devices.len() {
        let op = node(Op::MatMul { weight, bias: None });
        x = graph.push(NewNode { inputs: &[x], ..op });
    }
    let infos = ["cpu", "gpu"].map(|name| DeviceInfo::new(name, DeviceKind::Cpu));
    let of = RouteFor {
        model: ModelId::default(),
        graph: &graph,
        devices: &infos,
        rows: 1,
        selected: 1,
    };
    let stage = |(at, device): (usize, &usize)| Stage::whole(DeviceId(*device), at..at + 1);
    let stages = devices.iter().enumerate().map(stage).collect();
    let route = Route::new(stages, String::new(), None, of).expect("a route");
    Arc::new(Route { rule: Rule::Mix, ..Route::clone(&route) })
}

/// A candidate with so many ms of work on each device, in parts of so many at most.
fn candidate(devices: &[usize], alone: u32, lanes: [[u32; 2]; 2]) -> Candidate {
    let route = route(devices);
    let lanes = lanes.map(|[time, longest]| LaneWork {
        time: MS * time,
        longest: MS * longest,
        parts: time.min(1),
    });
    let (devices, crossings) = (Arc::default(), crossings(&route));
    let (alone, lanes, parts) = (MS * alone, lanes.into(), Arc::default());
    Candidate { route, devices, alone, lanes, parts, crossings }
}

fn moment(lanes: [[u32; 2]; 2], crossing: u32) -> Moment {
    let lanes = lanes.map(|[time, longest]| LaneWork {
        time: MS * time,
        longest: MS * longest,
        parts: time.min(1),
    });
    Moment { lanes: lanes.into(), crossing: MS * crossing, ..Moment::default() }
}

fn choose(moment: &Moment, candidates: &[Candidate], haste: Haste) -> (usize, u128) {
    let choice = moment.choose(candidates, haste, |_| true);
    (choice.at, choice.end.as_millis())
}

#[test]
fn a_chunk_takes_the_route_on_which_it_ends_first() {
    let cpu = candidate(&[0, 0], 60, [[60, 60], [0, 0]]);
    let gpu = candidate(&[1, 1], 50, [[0, 0], [50, 50]]);
    let both = candidate(&[0, 1], 40, [[20, 20], [20, 20]]);
    let all = [both, gpu, cpu];
    let turn = Haste::InTurn;
    assert_eq!(choose(&moment([[0, 0], [0, 0]], 0), &all, turn), (0, 40));
    // Its first stage begins later on a busy device.
    assert_eq!(choose(&moment([[30, 30], [0, 0]], 0), &all, turn), (1, 50));
    assert_eq!(choose(&moment([[0, 0], [100, 50]], 0), &all, turn), (2, 60));
    assert_eq!(choose(&moment([[0, 0], [100, 50]], 0), &all[..2], turn), (0, 120));
    // One that is not ready is not chosen.
    let choice = moment([[30, 30], [0, 0]], 0).choose(&all, turn, |at| all[at].alone != MS * 50);
    assert_eq!((choice.at, choice.end, choice.first), (0, MS * 70, MS * 70));
}

#[test]
fn a_step_that_is_due_waits_once_for_what_has_begun() {
    let cut = candidate(&[0, 1, 0, 1], 30, [[15, 8], [15, 8]]);
    let gpu = candidate(&[1, 1, 1, 1], 45, [[0, 0], [45, 45]]);
    let all = [cut, gpu];
    let busy = moment([[500, 60], [500, 20]], 0);
    assert_eq!(choose(&busy, &all, Haste::Due), (1, 65));
    assert_eq!(choose(&moment([[500, 10], [500, 20]], 0), &all, Haste::Due), (0, 60));
    // What crossings were found to take decides, too.
    assert_eq!(all[0].crossings, 3);
    assert_eq!(choose(&moment([[0, 0], [0, 0]], 0), &all, Haste::Due), (0, 30));
    assert_eq!(choose(&moment([[0, 0], [0, 0]], 6), &all, Haste::Due), (1, 45));
}

#[test]
fn small_gains_change_no_route() {
    let all =
        [candidate(&[0, 0], 100, [[100, 100], [0, 0]]), candidate(&[1, 1], 99, [[0, 0], [99, 99]])];
    assert_eq!(choose(&moment([[0, 0], [0, 0]], 0), &all, Haste::InTurn), (0, 100));
}

#[test]
fn candidates_that_are_never_better_are_left_out() {
    let first = candidate(&[0, 0], 100, [[100, 100], [0, 0]]);
    let worse = candidate(&[0, 0], 120, [[120, 120], [0, 0]]);
    let other = candidate(&[1, 1], 150, [[0, 0], [150, 10]]);
    let best = Candidate::best(vec![first.clone(), worse.clone(), other.clone()]);
    let alone: Vec<Duration> = best.iter().map(|it| it.alone).collect();
    assert_eq!(alone, [first.alone, other.alone]);
    // The first one stays.
    assert_eq!(Candidate::best(vec![worse, first]).len(), 2);
    let many = (0..20).map(|i| candidate(&[0, 1], 50 + i, [[50 - i, 9], [1 + i, 9]]));
    // One of a set of devices of its own stays, however slow it is.
    let best = Candidate::best(many.chain([candidate(&[1], 200, [[0, 0], [200, 90]])]).collect());
    assert_eq!(best.len(), CANDIDATES_MAX);
    assert!(best.iter().any(|it| it.alone == MS * 200));
}

#[test]
fn with_chunks_behind_it_a_chunk_takes_the_route_with_which_all_end_first() {
    let both = candidate(&[0, 1], 30, [[30, 30], [30, 30]]);
    let cpu = candidate(&[0, 0], 40, [[40, 40], [0, 0]]);
    let gpu = candidate(&[1, 1], 40, [[0, 0], [40, 40]]);
    let all = [both, cpu, gpu];
    let of = |lanes, behind| Moment { behind, prices: Prices::of(2), ..moment(lanes, 0) };
    let at = |moment: Moment| choose(&moment, &all, Haste::InTurn).0;
    assert_eq!(at(of([[0, 0], [0, 0]], 0.0)), 0);
    assert_eq!(at(of([[0, 0], [0, 0]], 9.0)), 1);
    assert_eq!(at(of([[40, 40], [0, 0]], 8.0)), 2);
    // The last one ends first where no other waits for it.
    assert_eq!(at(of([[30, 30], [30, 30]], 0.0)), 0);
    let beside = Moment { has_other_models: true, ..of([[0, 0], [0, 0]], 9.0) };
    assert_eq!(at(beside), 0, "the rule is one for chunks of one model");
    // By another rule it takes the route of a chunk alone, unless another ends far earlier.
    let alone = all.map(|it| {
        let route = Arc::new(Route { rule: Rule::Alone, ..Route::clone(&it.route) });
        Candidate { route, ..it }
    });
    let at = |lanes| choose(&of(lanes, 9.0), &alone, Haste::InTurn).0;
    assert_eq!(
        [at([[20, 20], [20, 20]]), at([[20, 20], [0, 0]]), at([[70, 70], [0, 0]])],
        [0, 0, 2]
    );
}

#[test]
fn a_step_goes_where_it_delays_prompts_least() {
    let cpu = candidate(&[0, 0], 54, [[54, 54], [0, 0]]);
    let gpu = candidate(&[1, 1], 43, [[0, 0], [43, 43]]);
    let all = [gpu, cpu];
    assert_eq!(choose(&moment([[0, 0], [0, 0]], 0), &all, Haste::Step), (0, 43));
    assert_eq!(choose(&moment([[0, 0], [500, 20]], 0), &all, Haste::Step).0, 1);
    assert_eq!(choose(&moment([[500, 20], [500, 20]], 0), &all, Haste::Step).0, 0);
}

#[test]
fn prompts_leave_the_device_of_steps_to_them() {
    let all = [
        candidate(&[0, 1, 0, 1], 100, [[60, 10], [60, 10]]),
        candidate(&[0, 0], 110, [[110, 10], [0, 0]]),
    ];
    let idle = moment([[0, 0], [0, 0]], 0);
    assert_eq!(choose(&idle, &all, Haste::InTurn), (0, 100));
    let step = StepLoad { share: 0.9, part: MS * 43 };
    let beside = Moment { steps: vec![StepLoad::default(), step], ..idle };
    assert_eq!(choose(&beside, &all, Haste::InTurn), (1, 110));
}

#[test]
fn a_device_that_others_slow_down_is_taken_for_slower() {
    let all =
        [candidate(&[0, 0], 50, [[50, 50], [0, 0]]), candidate(&[1, 1], 60, [[0, 0], [60, 60]])];
    let idle = moment([[0, 0], [0, 0]], 0);
    assert_eq!(choose(&idle, &all, Haste::InTurn), (0, 50));
    let slowed = Moment { slow: vec![1.5, 1.1], ..idle };
    assert_eq!(choose(&slowed, &all, Haste::InTurn), (1, 66));
    assert_eq!(slowed.end_of(&all[0], Haste::Due), MS * 75);
}
