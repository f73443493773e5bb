//! The solver against brute force over all divisions on its grid.

use proptest::prelude::*;

use super::*;

/// Asserts that the parts tile rows × output channels, with aligned borders.
fn assert_tiles(case: &Case, candidate: &Candidate) {
    let (width, mut area) = (case.width(), 0);
    let align =
        if width % WIDE_ALIGN == 0 && width / WIDE_ALIGN >= 8 { WIDE_ALIGN } else { Share::ALIGN };
    let mut seen: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for StagePart { device, part } in &candidate.parts {
        let rows = part.rows.clone().unwrap_or(0..case.rows);
        let features = part.features.of_width(width);
        area += rows.len() * features.len();
        assert!(rows.end == case.rows || rows.end % SEQUENCE_ALIGN == 0, "{candidate:?}");
        assert!(features.end == width || features.end % align == 0, "{candidate:?}");
        if case.devices[device.0].kind == DeviceKind::Npu {
            assert!(part.graphs.iter().sum::<usize>() >= rows.len(), "{candidate:?}");
        }
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        assert!(!seen.iter().any(|(r, f)| overlap(r, &rows) && overlap(f, &features)));
        seen.push((rows, features));
    }
    assert_eq!(area, case.rows * width, "{candidate:?}");
}

/// a + b·n·k·m; on a device with graphs, m is the size of the graph.
fn affine(a: f64, b: f64) -> Law {
    Arc::new(move |n, k, m| a + b * 1e-6 * (n * k * m) as f64)
}

fn cases() -> impl proptest::strategy::Strategy<Value = Case> {
    let widths = proptest::sample::select(vec![96_usize, 192, 320, 2048, 4096]);
    let speed = || (0.0..200.0_f64, 0.05..20.0_f64);
    let devices = 2..4_usize;
    (widths, 1..300_usize, devices, [speed(), speed(), speed()], (0.0..50.0_f64, 1.0..1e5_f64))
        .prop_map(|(n, rows, count, speeds, (sync, copy))| {
            let all = [
                device(DeviceKind::Cpu, &[]),
                device(DeviceKind::Npu, &SIZES),
                device(DeviceKind::Gpu, &[]),
            ];
            let laws = Laws {
                graph: matmul(n, 64),
                laws: speeds[..count].iter().map(|(a, b)| affine(*a, *b)).collect(),
                sync: Duration::from_nanos((sync * 1000.0) as u64),
                bytes_per_us: copy,
            };
            Case { laws, devices: all[..count].to_vec(), rows }
        })
}

/// The least time over all divisions on the grid.
fn brute_force(case: &Case) -> Duration {
    let graph = &*case.laws.graph;
    let width = case.width();
    let time = |device, part: &Part, rows| case.part_time(device, part, rows);
    let copy = case.laws.copy_time(2 * 4 * (case.rows * width) as u64);
    let sync = 2 * case.laws.sync;
    let mut best = Duration::MAX;
    for device in 0..2 {
        let away = if device == 0 { Duration::ZERO } else { sync };
        best = best.min(time(device, &Part::WHOLE, case.rows) + away);
        let other = 1 - device;
        let units = features::units(width);
        for border in 1..units {
            let part = |from, to| Part { features: Share { from, to, of: units }, ..Part::WHOLE };
            let a = time(device, &part(0, border), case.rows);
            let b = time(other, &part(border, units), case.rows);
            best = best.min(a.max(b) + sync + copy);
        }
        for border in (32..case.rows).step_by(32) {
            let part = |rows| Part { rows: Some(rows), ..Part::WHOLE };
            let a = time(device, &part(0..border), border);
            let b = time(other, &part(border..case.rows), case.rows - border);
            best = best.min(a.max(b) + sync + copy);
        }
    }
    assert_eq!(graph.nodes().len(), 2);
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_winner_is_fastest_and_all_candidates_tile_the_block(case in cases()) {
        let solution = case.solve();
        let best = solution.best().expect("a way").total();
        for candidate in &solution.candidates {
            prop_assert!(best <= candidate.total());
            assert_tiles(&case, candidate);
        }
        let whole = solution.candidates.iter().filter(|c| c.cut == Cut::Whole).count();
        prop_assert_eq!(whole, case.devices.len());
    }

    #[test]
    fn brute_force_finds_nothing_faster_on_two_devices(mut case in cases()) {
        case.devices.truncate(2);
        let best = case.solve().best().expect("a way").total();
        prop_assert_eq!(best, brute_force(&case));
    }

    #[test]
    fn an_additional_device_is_never_slower(case in cases()) {
        let times: Vec<Duration> = (1..=case.devices.len())
            .map(|count| case.solve_with(&case.devices[..count]).best().expect("a way").total())
            .collect();
        prop_assert!(times.is_sorted_by(|a, b| a >= b), "{:?}", times);
    }
}

/// The least time over all divisions on the grid between three devices, in every order.
fn brute_force_of_three(case: &Case) -> Duration {
    let (rows, width) = (case.rows, case.width());
    let time = |device, part: Part, rows| case.part_time(device, &part, rows);
    let units = features::units(width);
    let share = |device, from, to| {
        let part = Part { features: Share { from, to, of: units }, ..Part::WHOLE };
        time(device, part, rows)
    };
    let tokens = |device, from: usize, to: usize| {
        time(device, Part { rows: Some(from..to), ..Part::WHOLE }, to - from)
    };
    let mut best = Duration::MAX;
    for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for first in 1..units {
            for second in first + 1..units {
                let times = [share(a, 0, first), share(b, first, second), share(c, second, units)];
                best = best.min(times.into_iter().max().expect("three"));
            }
        }
        for first in (32..rows).step_by(32) {
            for second in (first + 32..rows).step_by(32) {
                let times =
                    [tokens(a, 0, first), tokens(b, first, second), tokens(c, second, rows)];
                best = best.min(times.into_iter().max().expect("three"));
            }
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// 1152 output channels are 36 units, searched on 12 positions and refined.
    #[test]
    fn brute_force_finds_nothing_faster_on_three_devices(
        case in cases(),
        width in proptest::sample::select(vec![96_usize, 192, 320, 1152]),
        third in (0.0..200.0_f64, 0.05..20.0_f64),
    ) {
        let mut case = case;
        case.laws.graph = matmul(width, 64);
        if case.devices.len() == 2 {
            case.devices.push(device(DeviceKind::Gpu, &[]));
            case.laws.laws.push(affine(third.0, third.1));
        }
        let solution = case.solve();
        let of_three = solution.candidates.iter().filter(|c| c.parts.len() == 3);
        let found = of_three.map(Candidate::slowest).min().expect("a cut between three");
        let best = brute_force_of_three(&case);
        prop_assert_eq!(found, best);
    }
}

#[test]
fn refinement_moves_units_between_parts_that_are_not_adjacent() {
    let graph = matmul(1152, 64);
    let laws = [(0.0, 2.7e-4), (0.0, 0.105), (0.0, 0.05)].map(|(a, b)| affine(a, b)).to_vec();
    let kinds = [DeviceKind::Cpu, DeviceKind::Npu, DeviceKind::Gpu];
    let devices = kinds.map(|kind| device(kind, &SIZES)).to_vec();
    let laws = Laws { graph, laws, sync: Duration::ZERO, bytes_per_us: 1e12 };
    let case = Case { laws, devices, rows: 257 };
    let solution = case.solve();
    let of_three = solution.candidates.iter().filter(|c| c.parts.len() == 3);
    let found = of_three.map(Candidate::slowest).min().expect("a cut between three");
    assert_eq!(found, brute_force_of_three(&case));
}

#[test]
fn three_equal_devices_each_take_a_third() {
    let laws = Laws {
        graph: matmul(96, 64),
        laws: vec![affine(0.0, 1.0), affine(0.0, 1.0), affine(0.0, 1.0)],
        sync: Duration::ZERO,
        bytes_per_us: 1e12,
    };
    let gpu = device(DeviceKind::Gpu, &[]);
    let case = Case { laws, devices: vec![gpu.clone(), gpu.clone(), gpu], rows: 20 };
    let solution = case.solve();
    let best = solution.best().expect("a way");
    assert_eq!(shares(&best.parts, 96), [32, 32, 32], "{best}");
}
