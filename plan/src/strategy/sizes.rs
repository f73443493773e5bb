//! Standard sizes: which prepared graphs run a number of rows.
//!
//! `sizes` are the row counts of a device's graphs, ascending and not empty. Graphs of fewer than 32
//! rows are for decode and verification: they run a few rows without padding them to 32, and more
//! rows than the largest of them do not use them.

use lapwing_kernels::part::Share;

/// The small sizes, below 32 rows, and the standard sizes from 32 on.
fn split(sizes: &[usize]) -> (&[usize], &[usize]) {
    sizes.split_at(sizes.iter().take_while(|size| **size < Share::ALIGN).count())
}

/// The graph sizes that `rows` rows may use: the small ones if one of them holds all rows, else the
/// standard ones.
pub fn for_rows(rows: usize, sizes: &[usize]) -> &[usize] {
    let (small, standard) = split(sizes);
    if standard.is_empty() || small.last().is_some_and(|largest| rows <= *largest) {
        return if small.is_empty() { standard } else { small };
    }
    standard
}

/// The sizes at which rows are divided between devices: the standard ones, or all if there are none.
fn for_division(sizes: &[usize]) -> &[usize] {
    match split(sizes) {
        (small, []) => small,
        (_, standard) => standard,
    }
}

/// One graph of the next standard size: 300 → 512. Rows beyond the largest size fill graphs of the
/// largest size, and the rest takes one more graph.
pub fn padded(rows: usize, sizes: &[usize]) -> Vec<usize> {
    let sizes = for_rows(rows, sizes);
    let Some(&largest) = sizes.last() else { return Vec::new() };
    let mut graphs = vec![largest; rows / largest];
    let rest = rows % largest;
    if rest > 0 {
        graphs.extend(sizes.iter().find(|size| **size >= rest));
    }
    graphs
}

/// Several graphs, largest first, with less padding than the smallest size: 600 → 512 + 64 + 32. Rows
/// of a decode step or a verification are in one small graph, which reads the weights once: 5 → 8.
pub fn multi(rows: usize, sizes: &[usize]) -> Vec<usize> {
    let sizes = for_rows(rows, sizes);
    let Some(&smallest) = sizes.first() else { return Vec::new() };
    if sizes.last().is_some_and(|largest| *largest < Share::ALIGN) {
        return padded(rows, sizes);
    }
    let mut rest = rows.next_multiple_of(smallest);
    let mut graphs = Vec::new();
    while rest > 0 {
        let size = largest_within(rest, sizes).unwrap_or(smallest);
        graphs.push(size);
        rest = rest.saturating_sub(size);
    }
    graphs
}

/// The largest standard size within the rows: 300 → 256, which leaves 44 rows. Rows below the smallest
/// standard size are not divided.
pub fn largest_within(rows: usize, sizes: &[usize]) -> Option<usize> {
    for_division(sizes).iter().rev().find(|size| **size <= rows).copied()
}

/// Standard sizes without padding that leave at most `edge_rows` rows: repeatedly the largest that
/// fits, and finally the smallest that leaves few enough rows: 600 → 512 + 32, which leaves 56 rows.
/// No size holds fewer rows than the smallest size.
pub fn multi_within(rows: usize, sizes: &[usize], edge_rows: usize) -> Vec<usize> {
    let sizes = for_division(sizes);
    let mut graphs = Vec::new();
    let mut rest = rows;
    while graphs.is_empty() || rest > edge_rows {
        let Some(largest) = largest_within(rest, sizes) else { break };
        let enough = |size: &&usize| **size <= rest && rest - **size <= edge_rows;
        let size = match sizes.iter().find(enough) {
            Some(size) if !graphs.is_empty() => *size,
            _ => largest,
        };
        graphs.push(size);
        rest -= size;
    }
    graphs
}

/// Graph sizes as text: `512 + 32`.
pub fn sum(graphs: &[usize]) -> String {
    let sizes: Vec<String> = graphs.iter().map(usize::to_string).collect();
    sizes.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STANDARD: [usize; 6] = [32, 64, 128, 256, 512, 1024];

    #[test]
    fn rows_are_filled_as_published() {
        assert_eq!(padded(300, &STANDARD), [512]);
        assert_eq!(padded(525, &STANDARD), [1024]);
        assert_eq!(padded(1, &STANDARD), [32]);
        assert_eq!(multi(600, &STANDARD), [512, 64, 32]);
        assert_eq!(multi(525, &STANDARD), [512, 32]);
        assert_eq!(multi(300, &STANDARD), [256, 64]);
        assert_eq!(largest_within(300, &STANDARD), Some(256));
        assert_eq!(largest_within(525, &STANDARD), Some(512));
        assert_eq!(largest_within(31, &STANDARD), None);
        assert_eq!(multi_within(600, &STANDARD, 64), [512, 32]);
        assert_eq!(multi_within(300, &STANDARD, 64), [256]);
        assert_eq!(multi_within(525, &STANDARD, 64), [512]);
        assert_eq!(multi_within(1000, &STANDARD, 64), [512, 256, 128, 64]);
        assert_eq!(multi_within(31, &STANDARD, 64), [0; 0]);
    }

    /// Sizes of the software NPU: rows that a small graph holds fill one graph without padding to 32,
    /// and longer chunks are filled and cut as with the standard sizes alone.
    #[test]
    fn small_graphs_serve_few_rows_only() {
        let sizes = [&[1, 2, 4, 8, 16][..], &STANDARD].concat();
        for (rows, graph) in [(1, 1), (2, 2), (3, 4), (5, 8), (8, 8), (9, 16), (17, 32)] {
            assert_eq!((multi(rows, &sizes), padded(rows, &sizes)), (vec![graph], vec![graph]));
        }
        for rows in [5, 17, 31, 33, 300, 525, 600] {
            assert_eq!(largest_within(rows, &sizes), largest_within(rows, &STANDARD), "{rows}");
            let cut = multi_within(rows, &sizes, 64);
            assert_eq!(cut, multi_within(rows, &STANDARD, 64), "{rows}");
        }
        for rows in [17, 300, 525, 600, 5000] {
            assert_eq!(multi(rows, &sizes), multi(rows, &STANDARD), "{rows}");
            assert_eq!(padded(rows, &sizes), padded(rows, &STANDARD), "{rows}");
        }
        assert_eq!(multi(40, &[1, 16]), [16, 16, 16], "there is no standard size");
    }

    #[test]
    fn a_graph_of_one_row_is_used_for_a_single_row_only() {
        let sizes = [&[1][..], &STANDARD].concat();
        assert_eq!((multi(1, &sizes), padded(1, &sizes)), (vec![1], vec![1]));
        assert_eq!(multi(525, &sizes), [512, 32]);
        assert_eq!(multi_within(5, &sizes, 0), [0; 0]);
        assert_eq!(largest_within(31, &sizes), None);
    }

    proptest! {
        #[test]
        fn graphs_hold_every_row_with_bounded_padding(
            rows in 0..5000usize,
            odd in proptest::bool::ANY,
            edge in 0..200usize,
        ) {
            let sizes: &[usize] = if odd { &[48, 100, 700] } else { &STANDARD };
            let total = |graphs: &[usize]| graphs.iter().sum::<usize>();
            let one = padded(rows, sizes);
            prop_assert!(total(&one) >= rows);
            prop_assert!(one.iter().all(|size| sizes.contains(size)));
            prop_assert!(rows > sizes[sizes.len() - 1] || one.len() <= 1);
            let several = multi(rows, sizes);
            prop_assert!(total(&several) >= rows && total(&several) < rows + 2 * sizes[0]);
            prop_assert!(several.iter().all(|size| sizes.contains(size)));
            let cut = multi_within(rows, sizes, edge);
            prop_assert!(total(&cut) <= rows);
            prop_assert!(rows - total(&cut) <= edge.max(sizes[0] - 1));
        }
    }
}
