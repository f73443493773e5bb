use super::{expert_middle, route};
use crate::op::{Activation, Curve, ExpertForm, ExpertGroups, RouteOp, RouterScore};
use crate::reference::sigmoid;

const SOFTMAX: RouteOp = RouteOp {
    used: 2,
    score: RouterScore::Softmax,
    bias: None,
    groups: None,
    is_normalised: false,
    scale: 1.0,
};

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

fn numbers(route: &[(usize, f64)]) -> Vec<usize> {
    route.iter().map(|(number, _)| *number).collect()
}

/// Logits whose softmax is this.
fn logits<const N: usize>(of: [f32; N]) -> [f32; N] {
    of.map(f32::ln)
}

#[test]
fn the_best_experts_come_first_with_their_share_of_all() {
    let found = route(&SOFTMAX, &[1.0, 3.0, 0.0, 2.0], None);
    let all: f64 = (0..4).map(|x| f64::from(x).exp()).sum();
    assert_eq!(numbers(&found), [1, 3]);
    close(found[0].1, 3f64.exp() / all);
    close(found[1].1, 2f64.exp() / all);
}

#[test]
fn of_equal_scores_that_of_the_smaller_number_is_better() {
    let op = RouteOp { used: 3, ..SOFTMAX };
    assert_eq!(numbers(&route(&op, &[1.0, 2.0, 1.0, 2.0, 1.0], None)), [1, 3, 0]);
}

#[test]
fn normalised_weights_add_up_to_the_scale() {
    let op = RouteOp { is_normalised: true, scale: 2.5, ..SOFTMAX };
    let found = route(&op, &[1.0, 3.0, 0.0, 2.0], None);
    close(found[0].1 + found[1].1, 2.5);
    close(found[0].1 / found[1].1, 1f64.exp());
}

#[test]
fn a_sum_of_almost_nothing_does_not_divide_weights() {
    let op = RouteOp { score: RouterScore::Sigmoid, is_normalised: true, ..SOFTMAX };
    let found = route(&op, &[-30.0, -31.0], None);
    close(found[0].1, sigmoid(-30.0) / f64::from(RouteOp::LEAST_SUM));
}

#[test]
fn a_bias_chooses_and_does_not_weigh() {
    let op = RouteOp { score: RouterScore::Sigmoid, ..SOFTMAX };
    let found = route(&op, &[2.0, 0.0, 1.0, -1.0], Some(&[0.0, 0.0, 0.0, 1.0]));
    assert_eq!(numbers(&found), [3, 0]);
    close(found[0].1, sigmoid(-1.0));
    close(found[1].1, sigmoid(2.0));
}

#[test]
fn experts_are_of_the_groups_whose_two_best_have_the_largest_sum() {
    let groups = Some(ExpertGroups { count: 3, used: 1 });
    let op = RouteOp { groups, ..SOFTMAX };
    // The best expert is in the first group, but the two best of the last one have more together.
    let found = route(&op, &logits([0.3, 0.01, 0.0, 0.1, 0.1, 0.05, 0.2, 0.2, 0.04]), None);
    assert_eq!(numbers(&found), [6, 7]);
    close(found[0].1, found[1].1);
}

#[test]
fn a_bias_counts_for_groups_too() {
    let groups = Some(ExpertGroups { count: 2, used: 1 });
    let op = RouteOp { groups, ..SOFTMAX };
    let bias = [0.0, 0.0, 0.0, 0.5];
    let found = route(&op, &logits([0.4, 0.3, 0.2, 0.1]), Some(&bias));
    assert_eq!(numbers(&found), [3, 2]);
}

#[test]
fn weights_of_chosen_logits_are_their_softmax_or_sigmoids() {
    let logits = [1.0, -3.0, 2.0];
    let found = route(&RouteOp { score: RouterScore::ChosenSoftmax, ..SOFTMAX }, &logits, None);
    assert_eq!(numbers(&found), [2, 0]);
    close(found[0].1, sigmoid(1.0));
    close(found[1].1, sigmoid(-1.0));
    let found = route(&RouteOp { score: RouterScore::ChosenSigmoid, ..SOFTMAX }, &logits, None);
    close(found[0].1, sigmoid(2.0));
    close(found[1].1, sigmoid(1.0));
}

#[test]
fn roots_of_softplus_are_scores() {
    let op = RouteOp { score: RouterScore::RootSoftplus, ..SOFTMAX };
    let found = route(&op, &[0.0, 1.0, -1.0], None);
    assert_eq!(numbers(&found), [1, 0]);
    close(found[1].1, 2f64.ln().sqrt());
}

#[test]
fn gates_of_each_form_are_as_written() {
    let clamped = ExpertForm::ClampedGated { alpha: 1.5, gate_limit: 2.0, limit: 2.0, offset: 1.0 };
    close(expert_middle(clamped, 9.0, -9.0), 2.0 * sigmoid(3.0) * (-2.0 + 1.0));
    close(expert_middle(clamped, -9.0, 1.0), -9.0 * sigmoid(-13.5) * 2.0);
    let bounded = ExpertForm::ClampedGated { alpha: 1.0, gate_limit: 3.0, limit: 0.5, offset: 0.0 };
    close(expert_middle(bounded, 4.0, -9.0), 3.0 * sigmoid(3.0) * -0.5);
    close(expert_middle(bounded, -4.0, 0.25), -4.0 * sigmoid(-4.0) * 0.25);
    close(expert_middle(ExpertForm::ReluGated, -1.0, 3.0), 0.0);
    close(expert_middle(ExpertForm::ReluGated, 2.0, 3.0), 6.0);
    close(expert_middle(ExpertForm::Gated(Activation::Silu), 2.0, 3.0), 6.0 * sigmoid(2.0));
    close(expert_middle(ExpertForm::Plain(Curve::ReluSquared), 5.0, 3.0), 9.0);
}
