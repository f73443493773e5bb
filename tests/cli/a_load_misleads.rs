//! `load` serves what it is asked to, counts it right, and says where it ran.

use std::fs;

use crate::a_json_form_changes::assert_documented;
use crate::support::{ended, json, lapwing, model};

#[test]
fn a_burst_on_the_live_engine_finishes_and_shares_its_prefix() {
    let llama = model("llama.gguf");
    let burst = [
        "load",
        "-m",
        &llama,
        "-t",
        "1",
        "--clients",
        "3",
        "--requests",
        "2",
        "-p",
        "60",
        "-n",
        "4",
        "--shared-prefix",
        "32",
        "--json",
    ];
    for (more, hits) in [(&[][..], 32.0 * 5.0 / 360.0), (&["--no-prefix-cache"], 0.0)] {
        let load = json(&[&burst[..], more].concat());
        assert_eq!(load["virtual"], false, "{load}");
        let report = &load["reports"][0];
        assert_eq!((&report["requests"], &report["finished"]), (&6.into(), &6.into()), "{report}");
        assert_eq!(report["clients"].as_array().expect("clients").len(), 3, "{report}");
        // All but the first find the prefix, which is a whole KV page.
        assert!((report["hit_rate"].as_f64().expect("a share") - hits).abs() < 0.01, "{report}");
    }
}

#[test]
fn a_trace_is_served_under_each_policy_and_written_by_window() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, csv) = (folder.path().join("trace.jsonl"), folder.path().join("service.csv"));
    let costs =
        format!("{}/lab/src/load/traces/a10g-llama-2-7b-cost.json", env!("CARGO_MANIFEST_DIR"));
    let lines: String = (0..20)
        .map(|at| {
            let client = ["a", "b"][at % 2];
            format!("{{\"at\":{at},\"client\":\"{client}\",\"prompt_tokens\":100,\"output_tokens\":10}}\n")
        })
        .collect();
    fs::write(&trace, lines).expect("a file");
    let (trace, path) = (trace.to_str().expect("UTF-8"), csv.to_str().expect("UTF-8"));
    let args =
        ["load", trace, "--server", &costs, "--policies", "fcfs+fcfs", "--csv", path, "--json"];
    let load = json(&args);
    assert_eq!((&load["virtual"], &load["reports"][1]), (&true.into(), &load["reports"][0]));
    let report = &load["reports"][0];
    assert_eq!((&report["finished"], &report["aborted"]), (&20.into(), &0.into()), "{report}");
    for client in report["clients"].as_array().expect("clients") {
        assert_eq!(client["service"], 10.0 * (100.0 + 2.0 * 10.0), "{client}");
    }
    let written = fs::read_to_string(&csv).expect("a file");
    assert_eq!(written.lines().count(), 1 + 2 * 2 * 19, "policies × clients × windows");
    assert!(written.starts_with("policy,client,window_s,service\nfcfs,a,"), "{written}");
}

#[test]
fn the_times_of_each_request_give_the_numbers_of_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, times) = (folder.path().join("trace.csv"), folder.path().join("times.csv"));
    let costs =
        format!("{}/lab/src/load/traces/a10g-llama-2-7b-cost.json", env!("CARGO_MANIFEST_DIR"));
    let lines: String = (0..30).map(|at| format!("{},100,10,c{}\n", at / 4, at % 3)).collect();
    fs::write(&trace, format!("at,prompt_tokens,output_tokens,client\n{lines}")).expect("a file");
    let (trace, path) = (trace.to_str().expect("UTF-8"), times.to_str().expect("UTF-8"));
    let args = [
        "load",
        trace,
        "--server",
        &costs,
        "--policies",
        "fcfs:rpm.c1=5",
        "--requests-out",
        path,
        "--json",
    ];
    let report = json(&args)["reports"][0].clone();
    let written = fs::read_to_string(&times).expect("a file");
    let rows: Vec<Vec<&str>> = written.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..3], ["policy", "request", "client"]);
    let (rows, number) = (&rows[1..], |cell: &str| cell.parse::<f64>().expect("a number"));
    let count = |outcome: &str| rows.iter().filter(|row| row[10] == outcome).count();
    assert_eq!((count("finished"), count("refused")), (25, 5), "{written}");
    assert_eq!((&report["finished"], &report["refused"]), (&25.into(), &5.into()), "{report}");
    let last = rows.iter().filter(|row| !row[9].is_empty()).map(|row| number(row[9]));
    let speed = 25.0 * 110.0 / last.fold(0.0, f64::max);
    let found = report["tokens_per_second"].as_f64().expect("a speed");
    assert!((found - speed).abs() < 0.01, "{found} for {speed}");
    let of_client = rows.iter().filter(|row| row[2] == "c0" && row[10] == "finished");
    let waits: Vec<f64> = of_client.map(|row| number(row[8]) - number(row[3])).collect();
    let mean = 1e3 * waits.iter().sum::<f64>() / waits.len() as f64;
    let found = report["clients"][0]["ttft"]["mean"].as_f64().expect("a time");
    assert!((found - mean).abs() < 0.01, "{found} for {mean}");
}

#[test]
fn options_of_a_modelled_server_change_what_they_say() {
    let costs =
        format!("{}/lab/src/load/traces/a10g-llama-2-7b-cost.json", env!("CARGO_MANIFEST_DIR"));
    let burst = [
        "load",
        "--server",
        &costs,
        "--clients",
        "2",
        "--requests",
        "20",
        "-p",
        "100",
        "-n",
        "100",
        "--kv-tokens",
        "2500",
        "--json",
    ];
    let number = |more: &[&str], field: &str| {
        let load = json(&[&burst[..], more].concat());
        assert_eq!(load["reports"][0]["finished"], 40, "{more:?} {load}");
        load["reports"][0][field].as_f64().expect("a number")
    };
    assert!(number(&[], "preemptions") > 0.0);
    assert_eq!(number(&["--reserve", "peak"], "preemptions"), 0.0);
    let base = number(&["--reserve", "peak"], "tokens_per_second");
    for slower in [
        &["--host", "20ms"][..],
        &["--max-running-requests", "2"],
        &["--prefill-alone", "--admit-every", "90"],
        &["--max-prefill-tokens", "100", "--admit-every", "20"],
    ] {
        let found = number(&[&["--reserve", "peak"][..], slower].concat(), "tokens_per_second");
        assert!(found < 0.95 * base, "{slower:?}: {found} beside {base}");
    }
}

#[test]
fn published_traces_are_served_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let costs =
        format!("{}/lab/src/load/traces/a10g-llama-2-7b-cost.json", env!("CARGO_MANIFEST_DIR"));
    let served = |text: &str, more: &[&str]| {
        let trace = folder.path().join("trace");
        fs::write(&trace, text).expect("a file");
        let trace = trace.to_str().expect("UTF-8");
        let args = ["load", trace, "--server", &costs, "--policies", "fcfs", "--json"];
        let ended = ended(lapwing(&[&args[..], more].concat()));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        (ended.json()["reports"][0].clone(), ended.stderr)
    };
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,512,8\n\
                 2023-11-16 18:15:50.99,300,0\n2023-11-16 18:15:59.10,800,4\n";
    let (report, notes) = served(azure, &[]);
    assert_eq!(report["finished"], 2, "{report}");
    assert!(notes.contains("1 of 3 recorded requests (Azure's form)"), "{notes}");
    assert_eq!(served(azure, &["--first", "1"]).0["finished"], 1);
    let mooncake = |at: u64, ids: &str| {
        format!(
            "{{\"timestamp\":{at},\"input_length\":1500,\"output_length\":3,\"hash_ids\":[{ids}]}}\n"
        )
    };
    let (report, _) = served(&(mooncake(0, "0,1,2") + &mooncake(9000, "0,1,3")), &[]);
    // 1024 of 3000 tokens, in whole pages.
    let hits = report["hit_rate"].as_f64().expect("a rate");
    assert!((0.33..0.35).contains(&hits), "{report}");
}

#[test]
fn several_workers_serve_a_trace_under_each_routing_policy() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, csv) = (folder.path().join("trace.jsonl"), folder.path().join("workers.csv"));
    let costs =
        format!("{}/lab/src/load/traces/a10g-llama-2-7b-cost.json", env!("CARGO_MANIFEST_DIR"));
    let line = |at: usize| {
        format!(
            "{{\"at\":{at},\"prompt_tokens\":100,\"output_tokens\":10,\"prefix\":[[\"p{}\",80]]}}\n",
            at % 3
        )
    };
    fs::write(&trace, (0..20).map(line).collect::<String>()).expect("a file");
    let (trace, path) = (trace.to_str().expect("UTF-8"), csv.to_str().expect("UTF-8"));
    let served = ["load", trace, "--server", &costs, "--workers", "2"];
    let load = json(&[&served[..], &["--route", "all", "--csv", path, "--json"]].concat());
    let reports = load["reports"].as_array().expect("reports");
    assert_eq!(reports.len(), 7, "{load}");
    assert_documented("load with workers", &load, &["route_numbers"]);
    for report in reports {
        let workers = report["workers"].as_array().expect("workers");
        let requests: u64 = workers.iter().filter_map(|it| it["requests"].as_u64()).sum();
        assert_eq!((requests, &report["finished"]), (20, &20.into()), "{report}");
        assert_eq!(report["decision_us"]["count"], 0, "{report}");
    }
    let hits = |name: &str| {
        let report = reports.iter().find(|report| report["route"] == name).expect(name);
        report["hit_rate"].as_f64().expect("a rate")
    };
    assert!(hits("cache-aware") > hits("round-robin"), "{load}");
    let written = fs::read_to_string(&csv).expect("a file");
    assert_eq!(written.lines().count(), 1 + 7 * 2, "policies × workers");
    assert!(written.starts_with("route,policy,worker,speed,"), "{written}");
    let text =
        ended(lapwing(&[&served[..], &["--worker-speed", "1,0.5", "--decision-times"]].concat()));
    assert_eq!(text.code, Some(0), "{text:?}");
    for part in
        ["20 requests, 2 workers in virtual time", "round-robin", "imbalance", "decisions of"]
    {
        assert!(text.stdout.contains(part), "{part:?} is not in {text:?}");
    }
    // A worker alone is the server.
    let alone = json(&[&served[..4], &["--json"]].concat());
    let one = json(&[&served[..4], &["--workers", "1", "--json"]].concat());
    for (field, value) in alone["reports"][0].as_object().expect("fields") {
        assert_eq!(&one["reports"][0][field], value, "{field}");
    }
}

#[test]
fn what_cannot_be_served_is_named_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = folder.path().join("bad.jsonl");
    fs::write(&bad, "{\"at\":0}\n").expect("a file");
    let bad = bad.to_str().expect("UTF-8");
    let rows: [(&[&str], i32, &[&str]); 11] = [
        (&["--experiment", "vtc"], 2, &["no experiment 'vtc'", "vtc-overload"]),
        (&["--experiment", "dlpm", "--policies", "best"], 2, &["--policies", "'best'", "fcfs"]),
        (&["--experiment", "dlpm", "trace.jsonl"], 2, &["--experiment"]),
        (&["--shared-prefix", "300"], 2, &["300", "256", "--prompt-tokens"]),
        (&["--rate", "1e9"], 2, &["1000000 requests"]),
        (&["--experiment", "dlpm", "--workers", "2", "--route", "best"], 2, &["--route", "'best'"]),
        (&["--experiment", "dlpm", "--workers", "2", "--worker-speed", "1"], 2, &["1 speed", "2"]),
        (&["--experiment", "dlpm", "--workers", "1", "--worker-speed", "0"], 2, &["speed", "0"]),
        (&["--workers", "2"], 2, &["--workers", "--experiment or --server"]),
        (&[bad], 1, &["line 1", "prompt_tokens"]),
        (&["nowhere.jsonl"], 1, &["nowhere.jsonl"]),
    ];
    for (args, code, says) in rows {
        let ended = ended(lapwing(&[&["load"], args].concat()));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{args:?} {ended:?}");
        for part in says {
            assert!(ended.stderr.contains(part), "{part:?} is not in {ended:?}");
        }
    }
}
