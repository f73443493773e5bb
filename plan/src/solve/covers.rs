//! Ways to fill static graphs with rows.

use lapwing_kernels::device::DeviceInfo;
use lapwing_kernels::part::{OperandOrder, Part};

use crate::device::needs_graphs;
use crate::strategy::sizes::for_rows;

/// Ways to fill graphs of the given sizes (ascending) with rows, from few graphs with much padding
/// to many with little. Each is a number of full graphs, largest first, and one padded graph for the
/// rest. Empty without sizes.
pub fn covers(rows: usize, sizes: &[usize]) -> Vec<Vec<usize>> {
    let sizes = for_rows(rows, sizes);
    let Some(largest) = sizes.last().copied().filter(|size| *size > 0) else {
        return Vec::new();
    };
    let mut covers = Vec::new();
    let mut full = vec![largest; rows / largest];
    let mut rest = rows % largest;
    loop {
        if rest == 0 {
            covers.push(full);
            return covers;
        }
        if let Some(size) = sizes.iter().find(|size| **size >= rest) {
            covers.push(full.iter().copied().chain([*size]).collect());
            if *size == rest {
                return covers;
            }
        }
        let Some(size) = sizes.iter().rev().find(|size| **size > 0 && **size <= rest) else {
            return covers;
        };
        full.push(*size);
        rest -= size;
    }
}

/// The part in each way that the device can run it: each filling of its static graphs, in each
/// operand order. A device without static graphs runs it in one way.
pub(super) fn filled(device: &DeviceInfo, part: &Part, rows: usize) -> Vec<Part> {
    if !needs_graphs(device) {
        return vec![part.clone()];
    }
    let mut parts = Vec::new();
    for graphs in covers(rows, &device.sizes) {
        for order in [OperandOrder::Straight, OperandOrder::Swapped] {
            parts.push(Part { graphs: graphs.clone(), order, ..part.clone() });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 6] = [32, 64, 128, 256, 512, 1024];

    #[test]
    fn rows_between_standard_sizes_fill_one_or_several_graphs() {
        assert_eq!(covers(600, &SIZES), [vec![1024], vec![512, 128], vec![512, 64, 32]]);
        assert_eq!(covers(300, &SIZES), [vec![512], vec![256, 64], vec![256, 32, 32]]);
        assert_eq!(covers(256, &SIZES), [vec![256]]);
        assert_eq!(covers(1, &SIZES), [vec![32]]);
        assert_eq!(covers(2100, &SIZES)[0], [1024, 1024, 64]);
        assert!(covers(5, &[]).is_empty());
    }

    #[test]
    fn every_row_is_in_a_graph_and_no_graph_is_empty() {
        for sizes in [&SIZES[..], &[100], &[32, 96]] {
            for rows in 1..1500 {
                for cover in covers(rows, sizes) {
                    let sum: usize = cover.iter().sum();
                    let last = cover.last().copied().unwrap_or(0);
                    assert!(sum >= rows && sum - last < rows, "{rows} {cover:?}");
                }
            }
        }
    }
}
