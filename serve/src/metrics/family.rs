//! Families of metrics: one for each set of labels.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// Names and values of labels.
pub(super) type Labels = Vec<(&'static str, String)>;
pub(super) type Number = Gauge<f64, AtomicU64>;
pub(super) type Counts = Family<Labels, Counter>;
pub(super) type Numbers = Family<Labels, Number>;
pub(super) type Times = Family<Labels, Histogram, fn() -> Histogram>;

/// Registers `metric` under several names.
pub(super) fn add<M: Metric + Clone>(
    registry: &mut Registry,
    names: &[&str],
    help: &str,
    metric: &M,
) {
    for name in names {
        registry.register(*name, help, metric.clone());
    }
}

/// The labels of a model.
pub(super) fn model(name: &str) -> Labels {
    vec![("model_name", name.to_owned())]
}
