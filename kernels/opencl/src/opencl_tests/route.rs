//! Choices of experts, and the sums of what they make.

use super::rows::of_both_kinds;
use super::{Bench, assert_near, bits, noise};
use crate::ops::{Mix, Route};
use lapwing_model::op::{ExpertGroups, RouteOp, RouterScore};
use lapwing_model::reference;

const SCORES: [RouterScore; 5] = [
    RouterScore::Softmax,
    RouterScore::Sigmoid,
    RouterScore::ChosenSoftmax,
    RouterScore::ChosenSigmoid,
    RouterScore::RootSoftplus,
];

of_both_kinds! {
    routes_agree_with_the_reference
    routes_of_gpus_agree_with_the_reference
    check_routes

    experts_are_chosen_from_the_best_groups
    experts_are_chosen_by_gpus_from_the_best_groups
    check_groups

    of_equal_scores_the_first_is_chosen
    of_equal_scores_the_first_is_chosen_by_gpus
    check_ties

    logits_that_are_no_numbers_choose_distinct_experts
    logits_that_are_no_numbers_choose_distinct_experts_on_gpus
    check_odd_logits

    a_mixture_is_the_sum_in_the_order_of_the_route
    a_mixture_of_gpus_is_the_sum_in_the_order_of_the_route
    check_mix
}

fn op(used: usize, score: RouterScore) -> RouteOp {
    RouteOp { used, score, bias: None, groups: None, is_normalised: false, scale: 1.0 }
}

/// The routes of rows of logits.
fn routed(bench: &mut Bench, op: &RouteOp, logits: &[f32], bias: &Option<Vec<f32>>) -> Vec<f32> {
    let experts = bias.as_ref().map_or(logits.len(), Vec::len);
    routed_rows(bench, op, logits, experts, bias.as_deref())
}

fn routed_rows(
    bench: &mut Bench,
    op: &RouteOp,
    logits: &[f32],
    experts: usize,
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let rows = logits.len() / experts;
    let (x, out) = (bench.guarded(logits, experts), bench.room(rows, 2 * op.used));
    let bytes = Route::scores_bytes(op, rows, experts);
    let scores = bench.session.buffer(bytes, "a test").unwrap();
    let bias = bias.map(|bias| bench.floats(bias));
    let (scores, bias) = (&scores, bias.as_ref());
    let job = Route { op, x: x.view(), rows, experts, bias, scores, out: out.view() };
    bench.kernels.route(&job).unwrap();
    bench.rows(&out)
}

fn check(bench: &mut Bench, op: &RouteOp, logits: &[f32], bias: &Option<Vec<f32>>) {
    let experts = bias.as_ref().map_or(logits.len(), Vec::len);
    let found = routed(bench, op, logits, bias);
    for (row, found) in logits.chunks(experts).zip(found.chunks(2 * op.used)) {
        let wanted = reference::route(op, row, bias.as_deref());
        let what = format!("{op:?} of {experts}");
        let numbers: Vec<f32> = wanted.iter().map(|(number, _)| *number as f32).collect();
        assert_eq!(found[..op.used], numbers, "{what}");
        let weights: Vec<f64> = wanted.iter().map(|(_, weight)| *weight).collect();
        assert_near(&found[op.used..], &weights, 2e-6, &what);
    }
}

fn check_routes(mut bench: Bench) {
    for (experts, used, rows) in [(1, 1, 1), (7, 3, 2), (128, 8, 33), (130, 130, 1), (600, 6, 2)] {
        let logits: Vec<f32> = noise(5, rows * experts).iter().map(|x| x * 8.0).collect();
        for score in SCORES {
            for (is_normalised, scale, has_bias) in
                [(false, 1.0, false), (true, 2.5, false), (true, 0.5, true)]
            {
                let op = RouteOp { is_normalised, scale, ..op(used, score) };
                let bias = has_bias.then(|| noise(6, experts));
                // A route does not depend on the other rows.
                let all = routed_rows(&mut bench, &op, &logits, experts, bias.as_deref());
                for (row, of_all) in logits.chunks(experts).zip(all.chunks(2 * used)) {
                    let alone = routed_rows(&mut bench, &op, row, experts, bias.as_deref());
                    assert_eq!(bits(&alone), bits(of_all), "{op:?} of {experts}");
                    let wanted = reference::route(&op, row, bias.as_deref());
                    let numbers: Vec<f32> =
                        wanted.iter().map(|(number, _)| *number as f32).collect();
                    assert_eq!(alone[..used], numbers, "{op:?} of {experts}");
                    let weights: Vec<f64> = wanted.iter().map(|(_, weight)| *weight).collect();
                    assert_near(&alone[used..], &weights, 2e-6, &format!("{op:?} of {experts}"));
                }
            }
        }
    }
}

fn check_groups(mut bench: Bench) {
    for (experts, count, kept, used) in
        [(16, 4, 2, 3), (32, 8, 4, 8), (6, 3, 1, 2), (600, 300, 7, 5)]
    {
        let groups = Some(ExpertGroups { count, used: kept });
        for score in [RouterScore::Sigmoid, RouterScore::Softmax] {
            let op = RouteOp { groups, is_normalised: true, ..op(used, score) };
            for seed in 0..10 {
                let logits: Vec<f32> = noise(11 + seed, experts).iter().map(|x| x * 3.0).collect();
                check(&mut bench, &op, &logits, &None);
                check(&mut bench, &op, &logits, &Some(noise(12, experts)));
            }
        }
    }
}

fn check_ties(mut bench: Bench) {
    for score in SCORES {
        let logits = [0.5, -0.0, 0.5, 0.0, 0.5, 0.0];
        let found = routed(&mut bench, &op(5, score), &logits, &None);
        assert_eq!(found[..5], [0.0, 2.0, 4.0, 1.0, 3.0], "{score:?}");
        let found = routed(&mut bench, &op(3, score), &[0.25; 300], &None);
        assert_eq!(found[..3], [0.0, 1.0, 2.0], "{score:?}");
    }
    // Groups of equal sums.
    let groups = Some(ExpertGroups { count: 3, used: 2 });
    let op = RouteOp { groups, ..op(4, RouterScore::Sigmoid) };
    let found = routed(&mut bench, &op, &[1.0, 2.0, 2.0, 1.0, 1.0, 2.0], &None);
    assert_eq!(found[..4], [1.0, 2.0, 0.0, 3.0]);
}

fn check_odd_logits(mut bench: Bench) {
    let odd = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0, -1e30];
    for (score, first) in SCORES.into_iter().flat_map(|score| (0..6).map(move |i| (score, i))) {
        let logits: Vec<f32> = (0..20).map(|i| odd[(i / 5 * first + i) % 6]).collect();
        for groups in [None, Some(ExpertGroups { count: 4, used: 1 })] {
            let op = RouteOp { groups, is_normalised: true, ..op(8, score) };
            for bias in [None, Some(vec![f32::NAN; 20])] {
                let found = routed(&mut bench, &op, &logits, &bias);
                let mut numbers: Vec<u32> = found[..8].iter().map(|x| *x as u32).collect();
                assert!(found[..8].iter().all(|x| x.fract() == 0.0 && *x < 20.0), "{found:?}");
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), 8, "{score:?} {found:?}");
            }
        }
    }
}

fn check_mix(mut bench: Bench) {
    for (width, used) in [(1, 1), (15, 8), (257, 2), (300, 3)] {
        for (rows, is_weighted) in [(1, true), (3, false), (5, true)] {
            let (made, route) = (noise(1, rows * used * width), noise(2, rows * 2 * used));
            let (from, chosen) =
                (bench.guarded(&made, used * width), bench.guarded(&route, 2 * used));
            let out = bench.room(rows, width);
            let (made_at, route_at, to) = (from.view(), chosen.view(), out.view());
            let job =
                Mix { made: made_at, route: route_at, rows, width, used, is_weighted, out: to };
            bench.kernels.mix(&job).unwrap();
            let weight = |row: usize, slot: usize| match is_weighted {
                true => route[(2 * row + 1) * used + slot],
                false => 1.0,
            };
            let sum = |row: usize, at: usize| {
                let of = |slot: usize| made[(row * used + slot) * width + at];
                let first = weight(row, 0) * of(0);
                (1..used).fold(first, |sum, slot| weight(row, slot).mul_add(of(slot), sum))
            };
            let wanted = (0..rows).flat_map(|row| (0..width).map(move |at| (row, at)));
            let wanted: Vec<f32> = wanted.map(|(row, at)| sum(row, at)).collect();
            assert_eq!(bits(&bench.rows(&out)), bits(&wanted), "[{rows}, {width}] of {used}");
        }
    }
}
