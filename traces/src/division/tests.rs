//! Tests of the least time of divided work.

use proptest::prelude::*;

use super::*;

/// The least time of two devices that share all blocks: each takes those that suit it best, and one block is divided.
fn divided(blocks: &[[f64; 2]]) -> f64 {
    let mut blocks = blocks.to_vec();
    blocks.sort_by(|a, b| (a[0] * b[1]).total_cmp(&(b[0] * a[1])));
    let mut first = 0.0;
    let mut second: f64 = blocks.iter().map(|block| block[1]).sum();
    for [a, b] in blocks {
        if first + a >= second - b {
            let share = ((second - first) / (a + b)).clamp(0.0, 1.0);
            return first + share * a;
        }
        (first, second) = (first + a, second - b);
    }
    first
}

fn blocks(all: &[&[f64]]) -> Vec<Blocks> {
    all.iter().map(|times| Blocks { count: 1.0, times: times.to_vec() }).collect()
}

fn least(all: &[&[f64]]) -> f64 {
    least_time(&blocks(all)).time
}

#[test]
fn devices_share_work_as_it_suits_them() {
    const NEVER: f64 = f64::INFINITY;
    assert!((least(&[&[10.0, 10.0]]) - 5.0).abs() < 1e-9);
    assert_eq!(least(&[&[10.0, NEVER], &[NEVER, 20.0]]), 20.0);
    assert!((least(&[&[1.0, 2.0][..]; 6]) / 4.0 - 1.0).abs() < 0.01);
    // Three devices of 8, 10 and 40 GFLOP/s do as much as one of 58; a fourth one and a fifth one that can do nothing change nothing.
    let times = [1e9 / 8.0, 1e9 / 10.0, 1e9 / 40.0, NEVER, NEVER];
    for devices in 3..=5 {
        assert!((least(&[&times[..devices]]) * 58.0 / 1e9 - 1.0).abs() < 0.01, "{devices}");
    }
    assert_eq!((least(&[&[NEVER, NEVER]]), least(&[])), (0.0, 0.0));
    assert!((divided_time([10.0, 10.0, NEVER]) - 5.0).abs() < 1e-9);
    assert_eq!(divided_time([NEVER]), 0.0);
}

/// A block that a device takes alone is no shorter for all others; of five devices no grid is tried.
#[test]
fn the_work_of_many_devices_is_bounded_closely() {
    let each = |device: usize| {
        let mut times = vec![9e6; 5];
        times[device] = 1e6 * (device + 1) as f64;
        Blocks { count: 1.0, times }
    };
    let all: Vec<Blocks> = (0..5).map(each).collect();
    let Division { time, prices } = least_time(&all);
    // Without the fifth device its block alone would take the others longer.
    let assigned: f64 = 5e6;
    assert!(time <= assigned, "{time}");
    let other = least_time(&[all.clone(), all].concat());
    assert!((other.time / time - 2.0).abs() < 0.02, "{} {time}", other.time);
    assert!((prices.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{prices:?}");
}

/// The least mean time of mixes of two ways on two devices: one of them alone, or shares at which both devices are equally busy.
fn mixed(ways: &[[f64; 2]]) -> f64 {
    let alone = ways.iter().map(|[a, b]| a.max(*b));
    let pairs = ways.iter().flat_map(|one| ways.iter().map(move |other| (one, other)));
    let equal = pairs.filter_map(|(one, other)| {
        let (first, second) = (one[0] - one[1], other[1] - other[0]);
        let share = second / (first + second);
        (0.0..=1.0).contains(&share).then(|| share * one[0] + (1.0 - share) * other[0])
    });
    alone.chain(equal).fold(f64::INFINITY, f64::min)
}

#[test]
fn ways_are_mixed_so_that_devices_are_equally_busy() {
    assert_eq!(least_mix::<[f64; 2]>(&[]), Division::default());
    assert_eq!(least_mix(&[[3.0, 5.0]]).time, 5.0);
    let Division { time, prices } = least_mix(&[[6.0, 0.0], [0.0, 3.0], [3.0, 2.5]]);
    assert!((time / 2.0 - 1.0).abs() < 0.01, "{time}");
    // What costs more is in no best mix.
    assert!(priced(&[3.0, 2.5], &prices) > 1.2 * time, "{prices:?}");
}

proptest! {
    #[test]
    fn the_bound_of_a_mix_is_close_to_the_best_one_and_never_above(
        ways in proptest::collection::vec([0..1000u64, 1..1000u64], 1..12),
    ) {
        let ways: Vec<[f64; 2]> = ways.iter().map(|way| way.map(|time| time as f64)).collect();
        let (best, Division { time, prices }) = (mixed(&ways), least_mix(&ways));
        prop_assert!(time <= best * (1.0 + 1e-9) && time >= best * 0.99, "{time} {best}");
        prop_assert!((prices.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_bound_is_close_to_the_best_division_and_never_above(
        work in proptest::collection::vec([1..1000u64, 1..1000u64], 1..20),
        prices in [0.001..1.0_f64, 0.001..1.0_f64],
        spare in 0..4usize,
    ) {
        let work: Vec<[f64; 2]> = work.iter().map(|of| of.map(|time| time as f64)).collect();
        let best = divided(&work);
        let all = work.iter().map(|[a, b]| {
            let times = [&[*a, *b][..], &vec![f64::INFINITY; spare]].concat();
            Blocks { count: 1.0, times }
        });
        let all: Vec<Blocks> = all.collect();
        let bound = least_time(&all);
        prop_assert!(bound.time <= best * (1.0 + 1e-9), "{bound:?} {best}");
        prop_assert!(bound.time >= best * 0.99, "{bound:?} {best}");
        prop_assert!((bound.prices.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let sum = prices[0] + prices[1];
        let other = time_at(&all, &prices.map(|price| price / sum));
        prop_assert!(other <= best * (1.0 + 1e-9), "{other} {best}");
    }
}
