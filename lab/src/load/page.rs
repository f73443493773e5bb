//! The reports of several policies as one HTML page.

use lapwing_traces::text::counted;

use super::report::{ClientReport, LoadReport};
use crate::simulate::plot::{BarGroup, Bars, Cell, Lines, Page, Section, Series};

/// Most clients whose service is drawn.
const CLIENTS_MAX: usize = 8;

/// Reports of one workload under several policies beside each other: latencies, differences between clients, and
/// the service of each client over time. The page needs no network. `place` says where the workload ran.
pub fn page(workload: &str, place: &str, reports: &[LoadReport]) -> String {
    let mut sections = vec![policies(reports), latencies(reports)];
    sections.extend(hits(reports));
    sections.extend(differences(reports));
    sections.extend(reports.iter().filter_map(services));
    let requests = reports.first().map_or(0, |report| report.requests);
    Page {
        title: format!("Load: {workload}"),
        lead: format!(
            "{}, {place}, under each of these queue policies.",
            counted(requests, "request")
        ),
        sections,
        footer: format!(
            "Lapwing {}. docs/load.md defines service, differences and windows.",
            env!("CARGO_PKG_VERSION")
        ),
    }
    .html()
}

fn number(value: f64, digits: usize) -> Cell {
    format!("{value:.digits$}").into()
}

fn ms(value: Option<f64>) -> Cell {
    value.map_or("–".into(), |value| number(value, 1))
}

fn policies(reports: &[LoadReport]) -> Section {
    let row = |report: &LoadReport| {
        let latencies = &report.latencies;
        vec![
            report.policy.clone().into(),
            report.finished.to_string().into(),
            report.aborted.to_string().into(),
            number(report.tokens_per_second, 1),
            ms(latencies.ttft_ms.p50),
            ms(latencies.ttft_ms.p95),
            ms(latencies.itl_ms.p95),
            format!("{:.1} %", 100.0 * report.hit_rate).into(),
            number(report.jain_index, 3),
            number(report.jain_at_first_end, 3),
            number(report.service_difference.max, 1),
            number(report.service_difference.avg, 1),
            number(report.accumulated_difference.max, 0),
            report.preemptions.to_string().into(),
        ]
    };
    let heads = [
        "Policy",
        "#Done",
        "#Failed",
        "#Tokens/s",
        "#TTFT p50, ms",
        "#p95",
        "#ITL p95, ms",
        "#Hits",
        "#Jain index",
        "#at first end",
        "#Difference, max",
        "#avg",
        "#Accumulated",
        "#Preemptions",
    ];
    Section {
        title: "Policies".to_owned(),
        heads: heads.map(str::to_owned).to_vec(),
        rows: reports.iter().map(row).collect(),
        ..Section::default()
    }
}

fn bars<const N: usize>(
    title: &str,
    y: &str,
    names: [&str; N],
    reports: &[LoadReport],
    values: impl Fn(&LoadReport) -> [Option<f64>; N],
) -> String {
    let group = |report: &LoadReport| BarGroup {
        name: report.policy.clone(),
        values: values(report).to_vec(),
        published: Vec::new(),
    };
    Bars {
        title: title.to_owned(),
        x: "policy".to_owned(),
        y: y.to_owned(),
        names: names.map(str::to_owned).to_vec(),
        groups: reports.iter().map(group).collect(),
    }
    .svg()
}

fn latencies(reports: &[LoadReport]) -> Section {
    let names = ["p50", "p95", "p99"];
    let ttft = bars("Time to first token", "time to first token, ms", names, reports, |report| {
        let found = &report.latencies.ttft_ms;
        [found.p50, found.p95, found.p99]
    });
    let itl = bars("Inter-token latency", "inter-token latency, ms", names, reports, |report| {
        let found = &report.latencies.itl_ms;
        [found.p50, found.p95, found.p99]
    });
    let response = bars("Response time", "response time, ms", names, reports, |report| {
        let found = &report.latencies.response_ms;
        [found.p50, found.p95, found.p99]
    });
    Section {
        title: "Latencies".to_owned(),
        plots: vec![ttft, itl, response],
        ..Section::default()
    }
}

fn hits(reports: &[LoadReport]) -> Option<Section> {
    let plot = bars("Prefix cache", "% of prompt tokens", ["hits"], reports, |report| {
        [Some(100.0 * report.hit_rate)]
    });
    reports.iter().any(|report| report.hit_rate > 0.0).then(|| Section {
        title: "Prompt tokens that the prefix cache had".to_owned(),
        plots: vec![plot],
        ..Section::default()
    })
}

fn line(name: &str, report: &LoadReport, values: &[f64]) -> Series {
    Series::new(name, report.window_s.iter().copied().zip(values.iter().copied()).collect())
}

fn differences(reports: &[LoadReport]) -> Option<Section> {
    let series = |report: &LoadReport| line(&report.policy, report, &report.difference_in_window);
    let lines = Lines {
        title: "Difference of service between clients".to_owned(),
        x: "time, s".to_owned(),
        y: "service per second".to_owned(),
        caption: String::new(),
        series: reports.iter().map(series).collect(),
    };
    reports.iter().any(|report| report.clients.len() > 1).then(|| Section {
        title: "Differences between clients".to_owned(),
        text: "In a window around each time: the sum over clients of how much less service per second they got than the \
               client that got most, but no more than the difference of what they asked for and got."
            .to_owned(),
        plots: vec![lines.svg()],
        ..Section::default()
    })
}

fn services(report: &LoadReport) -> Option<Section> {
    let mut clients: Vec<&ClientReport> = report.clients.iter().collect();
    clients.sort_by(|one, other| other.service.total_cmp(&one.service));
    let left = clients.len().saturating_sub(CLIENTS_MAX);
    clients.truncate(CLIENTS_MAX);
    let lines = Lines {
        title: format!("Service of each client under {}", report.policy),
        x: "time, s".to_owned(),
        y: "service per second in a window".to_owned(),
        caption: String::new(),
        series: clients.iter().map(|c| line(&c.client, report, &c.service_in_window)).collect(),
    };
    let text = match left {
        0 => String::new(),
        _ => {
            format!("The {CLIENTS_MAX} clients with the most service; {left} others are not drawn.")
        }
    };
    (report.clients.len() > 1).then(|| Section {
        title: format!("Service of clients: {}", report.policy),
        text,
        plots: vec![lines.svg()],
        ..Section::default()
    })
}
