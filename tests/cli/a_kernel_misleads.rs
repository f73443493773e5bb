//! `devices --kernels`: the kernels match the model and the instruction set, and shares of the bound
//! are computed from the printed peak rates.

use serde_json::Value;

use crate::support::{ended, json, lapwing, model};

fn kernels(args: &[&str]) -> Value {
    json(&[&["devices", "--kernels", "-t", "1", "--json"], args].concat())
}

fn list<'a>(report: &'a Value, field: &str) -> &'a [Value] {
    report[field].as_array().expect(field)
}

#[test]
fn every_op_of_the_model_is_reported() {
    let report = kernels(&["-m", &model("format-q4_k.gguf")]);
    let of = |op: &str| list(&report, "kernels").iter().find(|kernel| kernel["op"] == op);
    let product = |format: &str| {
        list(&report, "kernels").iter().find(|k| k["op"] == "matmul" && k["format"] == format)
    };
    for op in ["embed", "rms_norm", "rope", "attention", "gated", "add"] {
        assert!(of(op).is_some(), "{op}: {report}");
        let measured = list(&report, "measured").iter().filter(|sample| sample["op"] == op);
        assert!(measured.count() > 0, "{op} was not measured: {report}");
    }
    let quantised = product("Q4_K").expect("a product in the model's format");
    assert_eq!(quantised["arithmetic"], "int8");
    assert!(product("Q4_0").is_none(), "the model has no such weights: {report}");
    for sample in list(&report, "measured") {
        let number = |field: &str| sample[field].as_f64().expect(field);
        assert!(number("us") > 0.0 && number("gbps") > 0.0, "{sample}");
        let part = sample["of_bound"].as_f64();
        assert_eq!(part.is_some(), sample["bound_by"].is_string(), "{sample}");
        let Some(part) = part else { continue };
        let roof = &report["roofline"];
        let arithmetic = list(&report, "kernels")
            .iter()
            .find(|kernel| kernel["op"] == sample["op"] && kernel["format"] == sample["format"])
            .map_or("f32", |kernel| kernel["arithmetic"].as_str().expect("arithmetic"));
        let compute = number("gops") / roof[arithmetic]["gops"].as_f64().expect("a peak");
        let memory = number("gbps") / roof["read_gbps"].as_f64().expect("a limit");
        let bound = if compute > memory { arithmetic } else { "memory" };
        assert!((part / compute.max(memory) - 1.0).abs() < 1e-6, "{sample} of {roof}");
        assert_eq!(sample["bound_by"], bound, "{sample} of {roof}");
    }
}

#[test]
fn without_a_model_all_kernels_are_reported() {
    let report = kernels(&[]);
    assert!(report["measured"].is_null());
    let products = list(&report, "kernels").iter().filter(|kernel| kernel["op"] == "matmul");
    assert_eq!(products.count(), lapwing::DType::ALL.len(), "one for each format: {report}");
    assert!(
        report["why"]
            .as_str()
            .is_some_and(|why| why.contains(report["isa"].as_str().expect("isa")))
    );
    let roof = &report["roofline"];
    assert!(roof["f32"]["gops"].as_f64() > Some(0.1), "{report}");
    assert!(roof["read_gbps"].as_f64() > Some(0.1), "{report}");
    let text = ended(lapwing(&["devices", "--kernels", "-t", "1"]));
    assert_eq!(text.code, Some(0), "{text:?}");
    let blocks = &report["blocks"];
    let number = |path: &str| blocks.pointer(path).and_then(Value::as_u64).expect(path);
    assert!(number("/caches/first_bytes") <= number("/caches/second_bytes"), "{blocks}");
    let columns = number("/panel_columns");
    assert!(columns.is_multiple_of(32) && columns >= 256, "{blocks}");
    for path in ["/int8/rows", "/int8/features", "/f32/rows", "/f32/features"] {
        assert!(number(path) > 0, "{path}: {blocks}");
    }
    let panel = format!("panels of up to {columns} columns");
    for part in ["GOP/s", "GB/s", "matmul Q6_K", "-m FILE.gguf", &panel] {
        assert!(text.stdout.contains(part), "{part} is not in {text:?}");
    }
}

#[test]
fn each_instruction_set_has_its_own_peak_rates() {
    let report = kernels(&["--isa", "generic"]);
    assert_eq!((&report["isa"], &report["threads"]), (&"generic".into(), &1.into()));
    assert!(report["roofline"]["int8"].is_null(), "plain Rust has no int8 dot product: {report}");
    assert!(report["blocks"]["panel_columns"].is_null(), "plain Rust has no panels: {report}");
    let wrong: [&[&str]; 3] = [
        &["devices", "-t", "2"],
        &["devices", "-m", "x.gguf"],
        &["devices", "--kernels", "--isa", "mmx"],
    ];
    for args in wrong {
        let ended = ended(lapwing(args));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    }
}
