//! `inspect --fit` says whether a model runs here, of files and of a hub on loopback, without fetching it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::a_json_form_changes::assert_documented;
use crate::support::{Ended, ended, json as json_of, lapwing, model};

/// Files of the hub's one repository, by name.
type Files = BTreeMap<&'static str, Vec<u8>>;

fn tiny(name: &str) -> Vec<u8> {
    std::fs::read(model(name)).expect("a model")
}

/// Answers one request; whether another one is to follow.
fn answer(stream: TcpStream, files: &Files) -> bool {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let (method, path) = request.split_once(' ').unwrap_or_default();
    let path = path.split(' ').next().unwrap_or_default();
    let file = path.rsplit('/').next().and_then(|name| files.get_key_value(name));
    let range = headers.iter().find_map(|line| {
        let range = line.to_ascii_lowercase().strip_prefix("range: bytes=")?.to_owned();
        let (start, end) = range.split_once('-')?;
        Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()?))
    });
    let (status, more, body) = match (file, range) {
        _ if path.starts_with("/api/models/o/r/") => {
            let sibling =
                |(name, bytes): (_, &Vec<u8>)| json!({ "rfilename": name, "size": bytes.len() });
            let all: Vec<Value> = files.iter().map(sibling).collect();
            ("200 OK", String::new(), json!({ "siblings": all }).to_string().into_bytes())
        }
        (Some((_, bytes)), Some((start, end))) => {
            let end = bytes.len().min(end + 1);
            ("206 Partial Content", String::new(), bytes[start.min(end)..end].to_vec())
        }
        (Some((name, bytes)), None) => {
            assert_eq!(method, "HEAD", "the whole of {name} is fetched");
            let more = "X-Repo-Commit: c0ffee\r\nX-Linked-ETag: \"1\"\r\n";
            ("200 OK", format!("{more}X-Linked-Size: {}\r\n", bytes.len()), Vec::new())
        }
        (None, _) => ("404 Not Found", String::new(), Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{more}ETag: \"1\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    // A client that has left got what it wanted.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read(&mut [0; 1]);
    path != "/end"
}

/// Runs the program with that hub in the place of the real one.
fn with_hub(files: &Files, args: &[&str]) -> Ended {
    let hub = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = hub.local_addr().expect("an address");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in hub.incoming() {
                if !answer(stream.expect("a connection"), files) {
                    break;
                }
            }
        });
        let mut command = lapwing(args);
        command.env("HF_ENDPOINT", format!("http://{address}"));
        let ended = ended(command);
        let mut end = TcpStream::connect(address).expect("the hub");
        end.write_all(b"GET /end HTTP/1.1\r\n\r\n").expect("the hub reads");
        drop(end);
        ended
    })
}

#[test]
fn a_file_of_a_hub_is_judged_beside_the_others_without_fetching_any() {
    let files: Files = [
        ("tiny-Q8_0.gguf", tiny("format-q8_0.gguf")),
        ("tiny-Q4_K_M.gguf", tiny("llama.gguf")),
        ("README.md", b"# tiny".to_vec()),
    ]
    .into();
    let fit = ["inspect", "--fit", "hf:o/r", "--device", "cpu", "-t", "1"];
    let printed = with_hub(&files, &[&fit[..], &["--json"]].concat()).json();
    assert_documented("inspect --fit", &printed, &[]);
    assert_eq!(printed["model"], "hf:o/r/tiny-Q4_K_M.gguf");
    assert_eq!(printed["bytes"], files["tiny-Q4_K_M.gguf"].len());
    let on_cpu = &printed["devices"][0];
    assert_eq!((&on_cpu["devices"], &on_cpu["fits"]), (&json!("cpu"), &json!(true)), "{printed}");
    let memory = &on_cpu["memory"][0];
    let of = |field: &str| memory[field].as_u64().expect(field);
    assert_eq!(of("needed"), of("weights") + of("kv") + of("buffers"));
    assert!(on_cpu["tokens_per_second"].as_f64() > Some(0.0), "{on_cpu}");
    let others = printed["repository"].as_array().expect("files");
    let read: Vec<(&Value, &Value)> =
        others.iter().map(|one| (&one["file"], &one["read"])).collect();
    let (q4, q8) = (json!("tiny-Q4_K_M.gguf"), json!("tiny-Q8_0.gguf"));
    let (yes, no) = (json!(true), json!(false));
    let is_smaller = files["tiny-Q8_0.gguf"].len() < files["tiny-Q4_K_M.gguf"].len();
    let sorted = if is_smaller { [(&q8, &no), (&q4, &yes)] } else { [(&q4, &yes), (&q8, &no)] };
    assert_eq!(read, sorted);

    let shown = with_hub(&files, &fit);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let mut lines = shown.stdout.lines();
    let verdict = lines.next().expect("a verdict");
    assert!(verdict.starts_with("This model runs here: Q4_K_M needs "), "{verdict}");
    for part in ["KV cache", "largest context", "file of the repository", "≈ ", "measured now on"]
    {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
}

#[test]
fn a_file_is_judged_for_each_of_the_devices_that_are_asked_for() {
    let llama = model("llama.gguf");
    let args = ["inspect", "--fit", &llama, "--json", "-c", "64", "--device"];
    let phone = json_of(&[&args[..], &["phone"]].concat());
    let on_phone = &phone["devices"][0];
    assert_eq!((&on_phone["devices"], &on_phone["context"]), (&json!("phone"), &json!(64)));
    assert_eq!(phone["repository"], json!([]));
    // The same devices plan the same for the same file.
    let plan = json_of(&["plan", "-m", &llama, "-p", "63", "--device", "phone", "--json"]);
    let near = |a: &Value, b: &Value| {
        let (a, b) = (a.as_f64().expect("a number"), b.as_f64().expect("a number"));
        (a / b - 1.0).abs() < 1e-3
    };
    assert!(near(&on_phone["first_token_ms"], &plan["predicted_ms"]), "{on_phone} {plan}");
}

#[test]
fn what_cannot_run_is_named_and_what_is_not_there_is_an_error() {
    let mut unknown = tiny("llama.gguf");
    let at = unknown.windows(5).position(|bytes| bytes == b"llama").expect("an architecture");
    unknown[at..at + 5].copy_from_slice(b"zebra");
    let mut damaged = tiny("llama.gguf");
    damaged.truncate(damaged.len() / 2);
    let files: Files = [
        ("zebra-Q8_0.gguf", unknown),
        ("damaged-F16.gguf", damaged),
        ("page-F32.gguf", b"<!doctype html>  <html></html>".to_vec()),
    ]
    .into();
    let of = |name: &str| with_hub(&files, &["inspect", "--fit", name]);
    let shown = of("hf:o/r:Q8_0");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("This model does not run here: "), "{shown:?}");
    assert!(shown.stdout.contains("'zebra' is not supported"), "{shown:?}");
    let json = with_hub(&files, &["inspect", "--fit", "hf:o/r:Q8_0", "--json"]).json();
    assert_eq!((&json["supported"], &json["devices"]), (&json!(false), &json!([])));
    for (name, parts) in [
        ("hf:o/r/damaged-F16.gguf", &["hf:o/r/damaged-F16.gguf on the hub", "tensor"][..]),
        ("hf:o/r/page-F32.gguf", &["a web page"]),
        ("hf:o/r:Q2_K", &["no file of hf:o/r:Q2_K", "zebra-Q8_0.gguf"]),
        ("hf:o/none", &["hf:o/none was not found on the hub"]),
        ("hf:o/r/none.gguf", &["hf:o/r/none.gguf was not found on the hub"]),
    ] {
        let ended = of(name);
        assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{name}: {ended:?}");
        assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{name}: {ended:?}");
    }
    let down = ended(lapwing(&["inspect", "--fit", "hf:o/r"]));
    assert!(down.code == Some(1) && down.stderr.contains("no answer from http://127.0.0.1:9"));
    let wheels = ended(lapwing(&["inspect", "--fit", "smollm2"]));
    assert!(wheels.code == Some(1) && wheels.stderr.contains("lapwing pull"), "{wheels:?}");
}

#[test]
fn options_without_a_meaning_for_it_are_refused() {
    let llama = model("llama.gguf");
    for (args, part) in [
        (&["inspect", &llama, "-c", "64"][..], "--fit"),
        (&["inspect", &llama, "--fit", "--full"], "cannot be used with"),
        (&["inspect", &llama, "--fit", "-c", "99999999"], "context"),
        (&["inspect", &llama, "--fit", "--device", "cpu", "--draft", &llama], "draft"),
    ] {
        let ended = ended(lapwing(args));
        assert!(ended.code > Some(0) && ended.stderr.contains(part), "{args:?}: {ended:?}");
    }
}
