//! A recording says how many rows each expert of each layer had.

use lapwing::traces::report::Report;
use lapwing::traces::text::{TextOptions, text};
use lapwing::traces::{Analysis, Scope, Timeline};

use crate::experts_change_a_token::{TOKENS, answers, builder, prompts};

#[tokio::test]
async fn each_row_counts_once_for_each_of_its_experts() {
    for name in ["qwen3moe", "grovemoe"] {
        check(name).await;
    }
}

async fn check(name: &str) {
    let engine = builder(name).chunk_rows(40).prefix_cache(false);
    let engine = engine.build().await.expect("an engine");
    engine.recorder().set_scope(Scope::All);
    let prompts = &prompts()[3..];
    answers(&engine, prompts).await;
    let timeline = Timeline::new(&engine.recorder().recording());
    let analysis = Analysis::new(&timeline);
    let report = Report::new(&timeline, &analysis);
    let of_model = engine.model().experts.as_ref().expect("experts");
    assert_eq!(report.experts.len(), engine.model().layers, "{:?}", report.experts);
    // All rows but those of the last tokens, which nothing follows; the last layer computes those that make tokens.
    let rows: usize = prompts.iter().map(|ids| ids.len() + TOKENS - 1).sum();
    let selected = prompts.len() * TOKENS;
    for (layer, counted) in report.experts.iter().enumerate() {
        assert_eq!((counted.model, counted.layer, counted.experts), (0, layer, of_model.count));
        let is_last = layer + 1 == report.experts.len();
        let rows = if is_last { selected } else { rows };
        assert_eq!(counted.rows, (rows * of_model.used) as u64, "layer {layer}");
        let even = 1.0 / of_model.count as f64;
        assert!(counted.busiest_share >= even && counted.least_share <= even, "{counted:?}");
        assert!((counted.tenths.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{counted:?}");
        assert!(counted.with_rows >= of_model.used && counted.half_in <= counted.with_rows);
    }
    let shown = text(&timeline, &analysis, &report, &TextOptions::default());
    assert!(shown.contains("\nExperts\n") && shown.contains("half of the rows in"), "{shown}");
}
