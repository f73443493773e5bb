//! Signals reach the program, whatever handlers the drivers of its devices install.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::cases;
use crate::support::{ended, lapwing, model};

/// Signals that neither Rust nor the program handles, but LLVM does, which is part of many drivers: SIGQUIT, SIGILL,
/// SIGTRAP, SIGABRT, SIGFPE, SIGUSR2, SIGXCPU and SIGSYS.
const OF_DRIVERS: [u32; 8] = [3, 4, 5, 6, 8, 12, 24, 31];

/// Whether there are drivers of OpenCL and OpenVINO, which `tests/all.sh` installs.
fn has_drivers() -> bool {
    let json = ended(lapwing(&["devices", "--json"])).json();
    let has = |kind: &str| json[kind].as_array().is_some_and(|devices| !devices.is_empty());
    let has = has("opencl") && has("openvino");
    assert!(has || !cases::needed(), "OpenCL or OpenVINO is missing: {json}");
    if !has {
        eprintln!("SKIPPED a test of signals beside drivers: OpenCL or OpenVINO is missing");
    }
    has
}

/// A process that does not outlive the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Server {
    /// A server on a CPU, an OpenCL device and OpenVINO, and its address.
    fn start() -> (Server, String) {
        let llama = model("llama.gguf");
        let devices = ["cpu", "gpu=opencl", "npu=openvino"].map(|device| ["--device", device]);
        let args = ["serve", "-m", &llama, "--json", "--listen", "127.0.0.1:0"];
        let mut command = lapwing(&[&args[..], devices.as_flattened()].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Server(command.spawn().expect("the program starts"));
        let mut line = String::new();
        let stdout = server.0.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        (server, line["address"].as_str().expect("an address").to_owned())
    }

    /// The signals that the process handles, by number.
    fn handled(&self) -> Vec<u32> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("it runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        let mask = u64::from_str_radix(mask.trim(), 16).expect("a number");
        (1..=64).filter(|signal| mask >> (signal - 1) & 1 != 0).collect()
    }
}

#[test]
fn a_stream_on_cpu_opencl_and_openvino_ends_whole_after_sigterm_and_sigint() {
    if !has_drivers() {
        return;
    }
    for signal in ["-TERM", "-INT"] {
        let (mut server, address) = Server::start();
        let body =
            r#"{"prompt":"ab","max_tokens":200,"ignore_eos":true,"stream":true,"temperature":0}"#;
        let mut stream = TcpStream::connect(&address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "POST /v1/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: \
             {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("a whole stream"));
        lines.by_ref().find(|line| line.starts_with("data: ")).expect("an event");
        let handled = server.handled();
        assert!(OF_DRIVERS.iter().all(|signal| !handled.contains(signal)), "{handled:?}");
        let kill = Command::new("kill").args([signal, &server.0.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        let rest: Vec<String> = lines.filter(|line| line.starts_with("data: ")).collect();
        assert_eq!(rest.last().map(String::as_str), Some("data: [DONE]"), "{signal}");
        assert!(rest.iter().any(|line| line.contains("\"finish_reason\":\"length\"")), "{rest:?}");
        assert_eq!(server.0.wait().expect("it ends").code(), Some(0), "{signal}");
    }
}
