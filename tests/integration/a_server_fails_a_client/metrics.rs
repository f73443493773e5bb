//! Metrics: the format that a scraper reads, and the dashboard that queries them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{Running, local, start, with_llama};

const OPEN_METRICS: &str =
    "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "content-type: text/plain; version=0.0.4; charset=utf-8";

async fn with_an_answer() -> Running {
    let running = start(with_llama(local())).await;
    let body = json!({ "prompt": "Once upon", "max_tokens": 4 });
    assert_eq!(running.client.post("/v1/completions", &body).await.status, 200);
    running.idle().await;
    running
}

/// Samples by their names and labels, without values.
fn samples(body: &str) -> BTreeSet<&str> {
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').expect("a value").0).collect()
}

#[tokio::test]
async fn a_scraper_gets_the_format_that_it_reads() {
    let running = with_an_answer().await;
    let open = running.client.get("/metrics").await;
    assert!(open.headers.contains(OPEN_METRICS), "{open:?}");
    assert!(open.body.ends_with("# EOF\n"), "{open:?}");
    assert!(open.body.contains("# TYPE vllm:prompt_tokens counter\n"), "{open:?}");
    let wanted = running.client.with("accept: text/plain;version=0.0.4;q=0.5, */*;q=0.1");
    let classic = wanted.get("/metrics").await;
    assert!(classic.headers.contains(PROMETHEUS), "{classic:?}");
    assert!(!classic.body.contains("# EOF"), "{classic:?}");
    assert!(classic.body.contains("# TYPE vllm:prompt_tokens_total counter\n"), "{classic:?}");
    // The scrapes themselves are counted, and labels have no order.
    let others = |body: &str| {
        let all = samples(body).into_iter().filter(|sample| !sample.contains("/metrics"));
        let named = all.map(|sample| {
            let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
            let labels = labels.trim_end_matches('}').split(',');
            // The classic format writes a bound of 1.0 as 1.
            let mut labels: Vec<&str> =
                labels.map(|label| label.strip_suffix(".0\"").unwrap_or(label)).collect();
            labels.iter_mut().for_each(|label| *label = label.trim_end_matches('"'));
            labels.sort_unstable();
            format!("{name} {}", labels.join(","))
        });
        named.collect::<BTreeSet<_>>()
    };
    let (open, classic) = (others(&open.body), others(&classic.body));
    assert_eq!(open.symmetric_difference(&classic).collect::<Vec<_>>(), Vec::<&String>::new());
    running.stop().await;
}

/// Labels of each exported metric.
fn exported(body: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut metrics: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for sample in samples(body) {
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.split("\",").filter_map(|label| Some(label.split_once("=\"")?.0));
        metrics.entry(name).or_default().extend(labels);
    }
    metrics
}

/// The metrics that a query names, each with the labels that it selects by.
fn queried(query: &str) -> Vec<(&str, Vec<&str>)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(at) =
        ["vllm:", "lapwing_", "llamacpp:"].iter().filter_map(|p| rest.find(p)).min()
    {
        rest = &rest[at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let selector = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let labels = selector.map_or("", |(labels, _)| labels).split(',');
        let labels = labels.filter_map(|label| Some(label.split(['=', '!']).next()?.trim()));
        found.push((name, labels.filter(|label| !label.is_empty()).collect()));
    }
    found
}

/// The labels that a query groups by, but the bounds of histograms.
fn grouped(query: &str) -> impl Iterator<Item = &str> {
    let lists = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(|list| list.split(',')).map(str::trim).filter(|label| *label != "le")
}

#[tokio::test]
async fn every_query_of_the_dashboard_names_what_is_exported() {
    let running = with_an_answer().await;
    let dashboard = running.client.get("/grafana.json").await.json();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            queries.push(target["expr"].as_str().expect("a query").to_owned());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if variable["type"] == "query" {
            queries.push(variable["query"]["query"].as_str().expect("a query").to_owned());
        }
    }
    assert!(queries.len() > 20, "{queries:?}");
    for accept in ["text/plain", "application/openmetrics-text"] {
        let body = running.client.with(&format!("accept: {accept}")).get("/metrics").await.body;
        let exported = exported(&body);
        for query in &queries {
            let metrics = queried(query);
            assert!(!metrics.is_empty(), "{query} names no metric");
            for (name, labels) in metrics {
                let known = exported.get(name).unwrap_or_else(|| panic!("{query}: no {name}"));
                for label in labels.into_iter().chain(grouped(query)) {
                    assert!(known.contains(label), "{query}: {name} has no {label}, but {known:?}");
                }
            }
        }
    }
    running.stop().await;
}

/// What llm-d's endpoint picker reads of an engine of the type `vllm`: each metric, and the labels that have the values. It chooses
/// servers by the first three, and divides prompts into blocks by the last one.
const PICKED: [(&str, &[&str]); 4] = [
    ("vllm:num_requests_waiting", &[]),
    ("vllm:num_requests_running", &[]),
    ("vllm:kv_cache_usage_perc", &[]),
    ("vllm:cache_config_info", &["block_size", "num_gpu_blocks"]),
];

#[tokio::test]
async fn an_endpoint_picker_finds_the_metrics_that_it_reads() {
    let running = with_an_answer().await;
    for accept in ["text/plain", "application/openmetrics-text"] {
        let body = running.client.with(&format!("accept: {accept}")).get("/metrics").await.body;
        for (name, labels) in PICKED {
            let mut lines = body.lines().filter(|line| line.starts_with(&format!("{name}{{")));
            let line = lines.next().unwrap_or_else(|| panic!("no {name}: {body}"));
            assert_eq!(lines.next(), None, "one of the only model");
            assert!(body.contains(&format!("# TYPE {name} gauge\n")), "{name} is a gauge");
            let value = |label: &str| {
                let (_, rest) = line.split_once(&format!("{label}=\"")).expect("a label");
                rest.split('"').next().and_then(|value| value.parse::<usize>().ok())
            };
            let numbers: Vec<_> = labels.iter().map(|label| value(label)).collect();
            // The model has a context of 256 tokens, and the cache is twice as large.
            let expected: &[_] = if labels.is_empty() { &[] } else { &[Some(16), Some(32)] };
            assert_eq!(numbers, expected, "{line}");
            let value: f64 =
                line.rsplit_once(' ').and_then(|(_, text)| text.parse().ok()).expect("a number");
            assert_eq!(value, if labels.is_empty() { 0.0 } else { 1.0 }, "{line}");
        }
        assert!(body.contains("enable_prefix_caching=\"True\""), "{body}");
    }
    running.stop().await;
}

#[test]
fn the_names_of_a_query_are_found() {
    let query = "histogram_quantile(0.5, sum by (le) (rate(vllm:a_bucket{model_name=~\"$m\", x!=\"\"}[5m]))) / \
                 sum by (client) (lapwing_b)";
    assert_eq!(queried(query), [("vllm:a_bucket", vec!["model_name", "x"]), ("lapwing_b", vec![])]);
    assert_eq!(grouped(query).collect::<Vec<_>>(), ["client"]);
}
