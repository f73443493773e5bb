use proptest::prelude::*;

use super::*;

fn request(blocks: &[&[f64]]) -> RequestWork {
    let blocks: Vec<Vec<f64>> = blocks.iter().map(|lanes| lanes.to_vec()).collect();
    RequestWork { last_row: blocks.clone(), blocks, ..RequestWork::default() }
}

fn area(blocks: &[&[f64]]) -> f64 {
    lower_bound(&[request(blocks)]).area.as_nanos() as f64
}

#[test]
fn simple_bounds_have_their_closed_forms() {
    const NONE: f64 = f64::INFINITY;
    // Devices that are equally fast divide the work.
    assert!((area(&[&[3e6, 3e6, 3e6]]) - 1e6).abs() < 2.0);
    // One of a third of the speed takes a quarter.
    assert!((area(&[&[1e6, 3e6]]) - 0.75e6).abs() < 1e3);
    // What only one device runs stays there.
    assert_eq!(area(&[&[1e6, NONE], &[NONE, 3e6]]), 3e6);
    // A device that lacks one op takes the other, on which it is best.
    assert!((area(&[&[2e6, NONE], &[4e6, 1e6]]) - 2e6).abs() < 2e3);
    assert!((area(&[&[2e6, NONE], &[4e6, 3e6]]) - (2e6 + 1e6 / 7.0 * 4.0)).abs() < 4e3);
    // A block that no device can run adds nothing to the bound.
    assert_eq!(area(&[&[NONE, NONE]]), 0.0);
    assert_eq!(lower_bound(&[]), Bound::default());
}

#[test]
fn a_request_that_arrives_late_ends_late() {
    let early = request(&[&[4e6, 4e6]]);
    let late = RequestWork { arrival: Duration::from_millis(9), ..request(&[&[1e6, 1e6]]) };
    let bound = lower_bound(&[early, late.clone()]);
    let is_near = |time: Duration| time.abs_diff(Duration::from_micros(9_500)).as_nanos() < 3;
    assert!(is_near(bound.time()) && bound.time() == bound.path, "{bound:?}");
    assert!(is_near(lower_bound(&[late]).area));
}

#[test]
fn several_requests_take_as_long_as_one_of_their_work() {
    let one = request(&[&[1e6, 5e6], &[7e6, 2e6]]);
    let both = lower_bound(&[one.clone(), one.clone()]).area.as_nanos() as f64;
    let single = lower_bound(&[one]).area.as_nanos() as f64;
    assert!((both / single - 2.0).abs() < 1e-3, "{both} {single}");
}

/// The least load of the busier of two devices among all fractional assignments: blocks in the order of how much the first device is
/// better, up to where both are equally loaded.
fn fractional(blocks: &[[f64; 2]]) -> f64 {
    let mut order = blocks.to_vec();
    order.sort_by(|a, b| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
    let mut loads = [0.0, order.iter().map(|block| block[1]).sum::<f64>()];
    for [first, second] in order {
        let (then, rest) = (loads[0] + first, loads[1] - second);
        if then >= rest {
            let share = (loads[1] - loads[0]) / (first + second);
            return loads[0] + share * first;
        }
        loads = [then, rest];
    }
    loads[0]
}

proptest! {
    #[test]
    fn no_prices_make_more_than_an_assignment_takes(
        blocks in proptest::collection::vec([1e3..1e7_f64, 1e3..1e7_f64], 1..12),
        prices in [0.001..1.0_f64, 0.001..1.0_f64],
    ) {
        let lanes: Vec<&[f64]> = blocks.iter().map(|block| &block[..]).collect();
        let requests = [request(&lanes)];
        let least = fractional(&blocks);
        prop_assert!(area_at(&requests, &prices) <= least * (1.0 + 1e-9));
        let found = lower_bound(&requests);
        let area = found.area.as_nanos() as f64;
        prop_assert!(area <= least * (1.0 + 1e-9));
        prop_assert!(area >= least * 0.99, "{area} of {least}");
        prop_assert!((found.prices.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
