//! Traces tell: clock, events, metrics. Knows no tensor.
