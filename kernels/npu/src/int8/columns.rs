//! Columns of a product's matrix in f32: the weights of channels with outliers.

use std::collections::HashMap;
use std::sync::Arc;

use lapwing_cpu::PackedMatrix;
use lapwing_model::sync::{Mutex, lock};

/// Columns besides the hot ones that are kept.
const OTHERS_MAX: usize = 256;

/// The columns of a matrix `[n, k]` that have been needed, each `[n]`.
#[derive(Debug, Default)]
pub(super) struct Columns(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Of channels with outliers in the measured text: never dropped.
    hot: HashMap<u32, Arc<[f32]>>,
    others: HashMap<u32, Arc<[f32]>>,
}

impl Columns {
    /// Keeps the columns of these channels from now on.
    pub(super) fn keep_hot(&self, matrix: &PackedMatrix, channels: &[u32]) {
        let mut kept = lock(&self.0);
        let missing: Vec<u32> =
            channels.iter().copied().filter(|channel| !kept.hot.contains_key(channel)).collect();
        kept.hot.extend(missing.iter().copied().zip(read(matrix, &missing)));
    }

    /// The columns of some channels, and how many of them had to be read from the matrix.
    pub(super) fn get(&self, matrix: &PackedMatrix, channels: &[u32]) -> (Vec<Arc<[f32]>>, usize) {
        let mut kept = lock(&self.0);
        let find = |kept: &Kept, channel: &u32| {
            kept.hot.get(channel).or_else(|| kept.others.get(channel)).cloned()
        };
        let mut found: Vec<Option<Arc<[f32]>>> =
            channels.iter().map(|channel| find(&kept, channel)).collect();
        let missing: Vec<u32> = channels
            .iter()
            .zip(&found)
            .filter_map(|(channel, found)| found.is_none().then_some(*channel))
            .collect();
        if kept.others.len() + missing.len() > OTHERS_MAX {
            kept.others.clear();
        }
        let mut new = read(matrix, &missing).into_iter();
        for (channel, found) in channels.iter().zip(&mut found) {
            if found.is_none() {
                *found = new.next();
                let column = found.clone();
                if kept.others.len() < OTHERS_MAX {
                    kept.others.extend(column.map(|column| (*channel, column)));
                }
            }
        }
        (found.into_iter().flatten().collect(), missing.len())
    }

    /// Bytes of all columns that are kept.
    pub(super) fn bytes(&self) -> u64 {
        let kept = lock(&self.0);
        let columns = kept.hot.values().chain(kept.others.values());
        columns.map(|column| size_of_val(&**column) as u64).sum()
    }
}

/// Reads columns from the packed matrix, all in one pass over its rows.
fn read(matrix: &PackedMatrix, channels: &[u32]) -> Vec<Arc<[f32]>> {
    if channels.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![Vec::with_capacity(matrix.rows()); channels.len()];
    let mut row = vec![0.0; matrix.cols()];
    for index in 0..matrix.rows() {
        matrix.row(index, &mut row);
        for (column, channel) in columns.iter_mut().zip(channels) {
            column.push(row[*channel as usize]);
        }
    }
    columns.into_iter().map(Arc::from).collect()
}
