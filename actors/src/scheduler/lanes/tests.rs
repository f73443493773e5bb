//! The moment of chunks in flight.

use lapwing_kernels::device::{DeviceInfo, DeviceKind, ModelId};
use lapwing_kernels::formats::DType;
use lapwing_kernels::graph::{Graph, NewNode, WeightSpec};
use lapwing_kernels::op::Op;
use lapwing_plan::{DeviceId, Route, RouteFor, Stage};

use super::*;

fn candidate(alone_ms: u64, crossings: u32) -> Candidate {
    let mut graph = Graph::default();
    let table = WeightSpec { name: "w".into(), rows: 8, cols: 8, dtype: DType::F32 };
    let table = graph.add_weight(table);
    let op = Op::Embed { table, scale: 1.0 };
    graph.push(NewNode { op, inputs: &[], width: 8, layer: None, role: "test" });
    let devices = [DeviceInfo::new("cpu", DeviceKind::Cpu)];
    let (model, rows, selected) = (ModelId::default(), 1, 1);
    let of = RouteFor { model, graph: &graph, devices: &devices, rows, selected };
    let stages = vec![Stage::whole(DeviceId(0), 0..1)];
    let route = Route::new(stages, String::new(), None, of).expect("a route");
    let alone = Duration::from_millis(alone_ms);
    let lanes = Arc::new([LaneWork { time: alone, longest: alone, parts: 1 }]);
    let (devices, parts) = Default::default();
    Candidate { route, devices, alone, lanes, parts, crossings }
}

#[test]
fn a_choice_tells_all_routes_with_what_their_devices_had_to_do() {
    let mut lanes = Lanes::default();
    let end = Duration::from_millis(100);
    let busy = Duration::from_millis(60);
    let longest = busy;
    lanes.moment.lanes = vec![LaneWork { time: busy, longest, parts: 1 }];
    let chosen = Chosen {
        candidates: Arc::new([candidate(40, 0), candidate(30, 0)]),
        choice: Choice { at: 0, end, first: end },
        haste: Haste::InTurn,
        is_step: false,
        allowed: None,
        unready: Some(0b10),
        bandwidth: 0.0,
    };
    let life = Arc::default();
    let sent = SentChunk { id: 1, life: &life, runs: &None };
    let told = lanes.on_sent(sent, chosen, Nanos(0)).expect("two routes");
    let rated: Vec<_> =
        told.rated.iter().map(|it| (it.end, it.alone, it.busy, it.is_ready)).collect();
    let ms = Duration::from_millis;
    assert_eq!(rated, [(ms(100), ms(40), ms(60), true), (ms(90), ms(30), ms(60), false)]);
}

#[test]
fn a_device_is_busy_for_the_rest_of_what_it_was_sent() {
    let mut lanes = Lanes::default();
    let end = Duration::from_millis(100);
    let chosen = Chosen {
        candidates: Arc::new([candidate(100, 0)]),
        choice: Choice { at: 0, end, first: end },
        haste: Haste::InTurn,
        is_step: false,
        allowed: None,
        unready: None,
        bandwidth: 0.0,
    };
    let life = Arc::default();
    lanes.on_sent(SentChunk { id: 1, life: &life, runs: &None }, chosen, Nanos(0));
    let mut left = |at: u64| lanes.moment(1, false, Nanos(at * 1_000_000)).lanes[0].time;
    assert_eq!(left(0), end);
    assert_eq!(left(75), Duration::from_millis(25));
    assert_eq!(left(500), Duration::from_millis(10));
    lanes.on_ended(1, true, Nanos(1));
    assert_eq!(lanes.moment(1, false, Nanos(2)).lanes[0], LaneWork::default());
}
