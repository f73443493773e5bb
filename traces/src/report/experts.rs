//! Computes how evenly the rows of layers were divided between their experts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::timeline::Timeline;

/// A layer with experts: how often which of them was chosen, on all lanes that count it. A row counts once for each of its experts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpertReport {
    /// Number of the model; 0 is the one that makes the answers, 1 the one that makes drafts.
    pub model: usize,
    /// Layer.
    pub layer: usize,
    /// Experts of the layer.
    pub experts: usize,
    /// Those of them that had rows.
    pub with_rows: usize,
    /// Rows of all experts together.
    pub rows: u64,
    /// The expert that had most rows; of several the first.
    pub busiest: usize,
    /// Its share of all rows; 1 / `experts` if all are even.
    pub busiest_share: f64,
    /// The expert that had fewest rows; of several the first.
    pub least: usize,
    /// Its share of all rows.
    pub least_share: f64,
    /// How many experts, the busiest first, had half of all rows.
    pub half_in: usize,
    /// The share of all rows that each tenth of the experts had, the busiest first. Where tenths are no whole numbers, experts are
    /// divided between two of them.
    pub tenths: Vec<f64>,
}

/// Parts into which the experts of a layer are divided.
const PARTS: usize = 10;

/// Layers whose experts had rows, by model and layer.
pub(super) fn experts(timeline: &Timeline) -> Vec<ExpertReport> {
    let mut layers: BTreeMap<(u8, u16), Vec<u64>> = BTreeMap::new();
    for counted in &timeline.experts {
        let of = &counted.rows;
        let rows = layers.entry((of.model, of.layer)).or_default();
        rows.resize(rows.len().max(usize::from(of.experts)), 0);
        for (expert, more) in (of.first as usize..).zip(of.rows) {
            if let Some(rows) = rows.get_mut(expert) {
                *rows = rows.saturating_add(u64::from(more));
            }
        }
    }
    let layers = layers.into_iter().filter(|(_, rows)| rows.iter().any(|rows| *rows > 0));
    layers.map(|((model, layer), rows)| report(model.into(), layer.into(), &rows)).collect()
}

fn report(model: usize, layer: usize, rows: &[u64]) -> ExpertReport {
    let all: u64 = rows.iter().sum();
    let share = |rows: u64| rows as f64 / all.max(1) as f64;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|expert| Reverse(rows[*expert]));
    let (mut before, mut half_in) = (0, 0);
    for expert in &order {
        if 2 * before < all {
            half_in += 1;
        }
        before += rows[*expert];
    }
    let busiest = order.first().copied().unwrap_or(0);
    let least = (0..rows.len()).min_by_key(|expert| rows[*expert]).unwrap_or(0);
    ExpertReport {
        model,
        layer,
        experts: rows.len(),
        with_rows: rows.iter().filter(|rows| **rows > 0).count(),
        rows: all,
        busiest,
        busiest_share: share(rows.get(busiest).copied().unwrap_or(0)),
        least,
        least_share: share(rows.get(least).copied().unwrap_or(0)),
        half_in,
        tenths: tenths(&order.iter().map(|expert| share(rows[*expert])).collect::<Vec<f64>>()),
    }
}

/// The sums of each tenth of these shares.
fn tenths(shares: &[f64]) -> Vec<f64> {
    let part = |part: usize| {
        // In tenths of an expert.
        let (from, to) = (part * shares.len(), (part + 1) * shares.len());
        let own = |(at, share): (usize, &f64)| {
            let (start, end) = (PARTS * at, PARTS * (at + 1));
            let common = end.min(to).saturating_sub(start.max(from));
            share * common as f64 / PARTS as f64
        };
        shares.iter().enumerate().map(own).sum()
    };
    (0..PARTS).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_rows() {
        let layer = report(0, 3, &[10, 0, 60, 30]);
        assert_eq!((layer.layer, layer.experts, layer.with_rows, layer.rows), (3, 4, 3, 100));
        assert_eq!((layer.busiest, layer.least, layer.half_in), (2, 1, 1));
        assert_eq!((layer.busiest_share, layer.least_share), (0.6, 0.0));
        // Four experts in ten parts: the first two and a half parts are the busiest expert.
        let tenths: Vec<f64> = layer.tenths.iter().map(|x| (1e3 * x).round() / 1e3).collect();
        assert_eq!(tenths, [0.24, 0.24, 0.18, 0.12, 0.12, 0.04, 0.04, 0.02, 0.0, 0.0]);
    }

    #[test]
    fn even_rows_have_even_shares() {
        let layer = report(0, 0, &[7; 128]);
        assert_eq!((layer.busiest, layer.least, layer.half_in), (0, 0, 64));
        assert!(layer.tenths.iter().all(|share| (share - 0.1).abs() < 1e-12), "{layer:?}");
    }
}
