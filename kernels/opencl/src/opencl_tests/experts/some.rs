//! Some experts of a layer.

use super::super::{Bench, bits, noise};
use super::{DISTRIBUTIONS, FORMS, Layer, formats, routes};

/// Some experts write the bits of all into their slots, and nothing into others.
pub(super) fn check_some_experts(mut bench: Bench) {
    for (i, dtype) in formats().into_iter().enumerate() {
        for (at, (used, open)) in DISTRIBUTIONS.into_iter().enumerate() {
            let mut layer = Layer::new(&bench, [dtype; 3], used, FORMS[(i + at) % FORMS.len()]);
            layer.weighs_input = at % 3 == 1;
            layer.is_affine = at % 2 == 0;
            for rows in [1, 2, 23] {
                let (x, route) = (noise(10, rows * layer.width), routes(rows, used, open));
                let all = layer.run(&mut bench, &x, &route, true);
                let numbers = route.chunks(2 * used).flat_map(|row| &row[..used]);
                let numbers: Vec<usize> = numbers.map(|number| *number as usize).collect();
                for own in [[0, 1], [2, 2], [3, 2], [0, 4]] {
                    let found = layer.run_own(&mut bench, [&x, &route], rows != 2, own);
                    let slots = found.chunks(layer.down.rows).zip(all.chunks(layer.down.rows));
                    for ((found, all), expert) in slots.zip(&numbers) {
                        let what = format!("{dtype}, {rows} rows, {expert} of {own:?}");
                        match (own[0]..own[0] + own[1]).contains(expert) {
                            true => assert!(bits(found) == bits(all), "{what}"),
                            false => assert!(found.iter().all(|x| x.is_nan()), "{what}"),
                        }
                    }
                }
            }
        }
    }
}
