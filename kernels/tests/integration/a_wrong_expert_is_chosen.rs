//! Routes and mixtures against the reference, and what routes of logits that are no numbers are.

use crate::support::{assert_close, bits, cpus, noise};
use lapwing_kernels::cpu::{self, Cpu, Isa, Mixture};
use lapwing_kernels::op::{ExpertGroups, RouteOp, RouterScore};
use lapwing_kernels::reference;

const SCORES: [RouterScore; 5] = [
    RouterScore::Softmax,
    RouterScore::Sigmoid,
    RouterScore::ChosenSoftmax,
    RouterScore::ChosenSigmoid,
    RouterScore::RootSoftplus,
];

fn op(used: usize, score: RouterScore) -> RouteOp {
    RouteOp { used, score, bias: None, groups: None, is_normalised: false, scale: 1.0 }
}

fn routed(cpu: &Cpu, op: &RouteOp, logits: &[f32], bias: Option<&[f32]>, rows: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; rows * 2 * op.used];
    cpu::route(cpu, op, logits, bias, &mut out);
    out
}

#[test]
fn routes_match_the_reference() {
    let shapes = [(1, 1, 1), (7, 3, 2), (128, 8, 33), (130, 130, 3), (33, 1, 300)];
    for cpu in cpus(2) {
        for ((experts, used, rows), score) in
            shapes.into_iter().flat_map(|shape| SCORES.map(|score| (shape, score)))
        {
            let logits: Vec<f32> = noise(5, rows * experts).iter().map(|x| x * 8.0).collect();
            let bias = noise(6, experts);
            for (is_normalised, scale, bias) in
                [(false, 1.0, None), (true, 2.5, None), (true, 0.5, Some(&bias[..]))]
            {
                let op = RouteOp { is_normalised, scale, ..op(used, score) };
                let found = routed(&cpu, &op, &logits, bias, rows);
                for (row, found) in logits.chunks(experts).zip(found.chunks(2 * used)) {
                    let want = reference::route(&op, row, bias);
                    let what = format!("{} {op:?} of {experts}", cpu.isa().name());
                    let numbers: Vec<f32> = want.iter().map(|(number, _)| *number as f32).collect();
                    assert_eq!(found[..used], numbers, "{what}");
                    let weights: Vec<f64> = want.iter().map(|(_, weight)| *weight).collect();
                    assert_close(&found[used..], &weights, 1e-6, 1e-6, &what);
                }
            }
        }
    }
}

#[test]
fn experts_are_chosen_from_the_best_groups() {
    for cpu in cpus(1) {
        for (experts, count, kept, used) in [(16, 4, 2, 3), (32, 8, 4, 8), (6, 3, 1, 2)] {
            let groups = Some(ExpertGroups { count, used: kept });
            for score in [RouterScore::Sigmoid, RouterScore::Softmax] {
                let op = RouteOp { groups, is_normalised: true, ..op(used, score) };
                let (logits, bias) = (noise(11, 20 * experts), noise(12, experts));
                for bias in [None, Some(&bias[..])] {
                    let found = routed(&cpu, &op, &logits, bias, 20);
                    for (row, found) in logits.chunks(experts).zip(found.chunks(2 * used)) {
                        let want = reference::route(&op, row, bias);
                        let want: Vec<f32> =
                            want.iter().map(|(number, _)| *number as f32).collect();
                        assert_eq!(found[..used], want, "{} {op:?}", cpu.isa().name());
                    }
                }
            }
        }
    }
}

#[test]
fn of_equal_scores_the_first_is_chosen() {
    let cpu = Cpu::new(1, Isa::best());
    for score in SCORES {
        let logits = [0.5, -0.0, 0.5, 0.0, 0.5, 0.0];
        let found = routed(&cpu, &op(5, score), &logits, None, 1);
        assert_eq!(found[..5], [0.0, 2.0, 4.0, 1.0, 3.0], "{score:?}");
    }
}

#[test]
fn logits_that_are_no_numbers_choose_distinct_experts() {
    let odd = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0, -1e30];
    for cpu in cpus(2) {
        for (score, first) in SCORES.into_iter().flat_map(|score| (0..6).map(move |i| (score, i))) {
            let logits: Vec<f32> = (0..40).map(|i| odd[(i / 5 * first + i) % 6]).collect();
            for groups in [None, Some(ExpertGroups { count: 4, used: 1 })] {
                let op = RouteOp { groups, is_normalised: true, ..op(8, score) };
                for bias in [None, Some(&[f32::NAN; 20][..])] {
                    let found = routed(&cpu, &op, &logits, bias, 2);
                    for found in found.chunks(16) {
                        let mut numbers: Vec<u32> = found[..8].iter().map(|x| *x as u32).collect();
                        assert!(found[..8].iter().all(|x| x.fract() == 0.0 && *x < 20.0));
                        numbers.sort_unstable();
                        numbers.dedup();
                        assert_eq!(numbers.len(), 8, "{score:?} {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_has_the_same_route_and_mixture_in_any_batch() {
    let (rows, experts, used, width) = (70, 24, 5, 77);
    let (logits, made) = (noise(1, rows * experts), noise(2, rows * used * width));
    for isa in Isa::available() {
        let (one, many) = (Cpu::new(1, isa), Cpu::new(3, isa));
        let op = op(used, RouterScore::Softmax);
        let route = routed(&many, &op, &logits, None, rows);
        let alone = logits.chunks(experts).flat_map(|row| routed(&one, &op, row, None, 1));
        assert_eq!(bits(&route), bits(&alone.collect::<Vec<f32>>()), "{}", isa.name());
        for is_weighted in [false, true] {
            let mixture = Mixture { made: &made, route: &route, used, is_weighted };
            let mut mixed = vec![f32::NAN; rows * width];
            cpu::mix(&many, &mixture, width, &mut mixed);
            let mut want = Vec::new();
            for (row, mixed) in mixed.chunks(width).enumerate() {
                let made = &made[row * used * width..][..used * width];
                let route = &route[row * 2 * used..][..2 * used];
                let mixture = Mixture { made, route, used, is_weighted };
                let mut alone = vec![f32::NAN; width];
                cpu::mix(&one, &mixture, width, &mut alone);
                assert_eq!(bits(mixed), bits(&alone), "{} row {row}", isa.name());
                for column in 0..width {
                    let shares = (0..used).map(|slot| {
                        let weight = if is_weighted { f64::from(route[used + slot]) } else { 1.0 };
                        weight * f64::from(made[slot * width + column])
                    });
                    want.push(shares.sum());
                }
            }
            assert_close(&mixed, &want, 1e-6, 1.0, isa.name());
        }
    }
}
