//! Paths of models and references, and helpers.

use std::io::Write;
use std::path::{Path, PathBuf};

use lapwing::models::ModelCache;
use lapwing::{Engine, EngineBuilder, Request, TokenStream};
use serde_json::Value;

use crate::cases;

pub(crate) const SMOLLM2: &str = "smollm2-135m-instruct";
pub(crate) const GEMMA3: &str = "gemma3-270m";

/// Ends the test if one of the models is not in the cache, and says so.
macro_rules! needs {
    ($($model:expr),+) => {
        if $(!$crate::support::is_fetched($model))||+ {
            return;
        }
    };
}
pub(crate) use needs;

/// Ends the test if a driver or library is not installed, which the named function of this module finds out and says.
#[cfg(any(feature = "opencl", feature = "openvino", feature = "qnn"))]
macro_rules! needs_driver {
    ($is_there:ident) => {
        if !$crate::support::$is_there() {
            return;
        }
    };
}
#[cfg(any(feature = "opencl", feature = "openvino", feature = "qnn"))]
pub(crate) use needs_driver;

/// Whether there is an OpenCL device. If not, the same holds as for a missing model.
#[cfg(feature = "opencl")]
pub(crate) fn has_opencl() -> bool {
    is_installed(lapwing_kernels::opencl::devices(), "apt install pocl-opencl-icd")
}

/// Whether OpenVINO is installed. If not, the same holds as for a missing model.
#[cfg(feature = "openvino")]
pub(crate) fn has_openvino() -> bool {
    is_installed(lapwing_kernels::npu::openvino_devices(), "sh tests/openvino/install.sh FOLDER")
}

/// Whether QNN is installed. If not, a line on stderr says so. It is an error only where `LAPWING_TEST_QNN`
/// states that Qualcomm's terms are accepted, since it is not installed otherwise.
#[cfg(feature = "qnn")]
pub(crate) fn has_qnn() -> bool {
    let Err(error) = lapwing_kernels::npu::qnn_device() else { return true };
    let wanted = std::env::var_os("LAPWING_TEST_QNN").is_some();
    assert!(!wanted, "{error}");
    skipped(&error.to_string(), "LAPWING_TEST_QNN=1 sh tests/qnn/install.sh FOLDER");
    false
}

/// Whether a library was found. `install` is the command that installs it.
#[cfg(any(feature = "opencl", feature = "openvino"))]
fn is_installed<T, E: std::fmt::Display>(found: Result<T, E>, install: &str) -> bool {
    found.map_or_else(|error| missing(&error.to_string(), install), |_| true)
}

/// Whether a test can use this model. If it is not in the cache, a line on stderr says that the test is
/// skipped; where LAPWING_TEST is set, it is an error instead.
pub(crate) fn is_fetched(name: &str) -> bool {
    let fetched = ModelCache::open(None).expect("a cache folder").path_of(name).is_some();
    fetched || missing(&format!("model {name}"), &format!("lapwing pull {name}"))
}

/// Reports that something is missing which the running test needs. Returns `false`.
fn missing(what: &str, fetch: &str) -> bool {
    assert!(!cases::needed(), "{what} is missing; install it with: {fetch}");
    skipped(&format!("{what} is missing"), fetch);
    false
}

/// Says that the running test is skipped.
fn skipped(why: &str, fetch: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test").to_owned();
    // Written past the test harness, which hides what a passing test prints.
    let line = format!("SKIPPED {test}: {why}; install it with: {fetch}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr");
}

/// A fetched model.
pub(crate) fn model(name: &str) -> PathBuf {
    ModelCache::open(None).expect("a cache folder").path_of(name).unwrap_or_else(|| {
        panic!(
            "model {name} is not in the cache; the test lacks needs!, or run: lapwing pull {name}"
        )
    })
}

/// The vocabulary files of llama.cpp's source archive with these names; none, with a line on stderr, if the
/// archive is not there.
pub(crate) fn vocabularies(names: &[&'static str]) -> Vec<(&'static str, PathBuf)> {
    let folder = llama_cpp().join("models");
    if !folder.exists() {
        missing("the folder of llama.cpp's vocabularies", "sh tests/all.sh");
        return Vec::new();
    }
    let path = |name: &str| {
        let path = folder.join(format!("ggml-vocab-{name}.gguf"));
        assert!(path.exists(), "{} is missing; remove {}", path.display(), folder.display());
        path
    };
    names.iter().map(|name| (*name, path(name))).collect()
}

/// The folder of llama.cpp's sources, if they are fetched.
fn llama_cpp() -> PathBuf {
    let folder = std::env::var_os("LAPWING_TEST_WORK").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/llama.cpp-sources"),
        PathBuf::from,
    );
    folder.join("llama.cpp")
}

/// The chat templates of llama.cpp's source archive by their names; none, with a line on stderr, if it is not there.
#[cfg(feature = "structured")]
pub(crate) fn templates() -> Vec<(String, PathBuf)> {
    let folder = llama_cpp().join("models/templates");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        missing("the folder of llama.cpp's chat templates", "sh tests/all.sh");
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("a file").path());
    let named = paths.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".jinja")?.to_owned();
        Some((name, path))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    assert!(named.len() > 60, "{} has {} templates", folder.display(), named.len());
    named
}

/// A JSON file of `tests/reference`.
pub(crate) fn reference(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().expect("a list of ids");
    list.iter().map(|v| v.as_u64().expect("an id") as u32).collect()
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// An engine on two threads.
pub(crate) fn builder(name: &str) -> EngineBuilder {
    Engine::builder().model(model(name)).threads(2)
}

/// All ids of a stream, including the end token.
pub(crate) async fn collect_ids(mut stream: TokenStream) -> Vec<u32> {
    let mut ids = Vec::new();
    while let Some(token) = stream.next().await {
        ids.push(token.expect("a token").id);
    }
    ids
}

/// A greedy request that never ends by itself.
pub(crate) fn greedy(text: &str, tokens: usize) -> Request {
    Request::text(text).greedy().ignore_eos().max_tokens(tokens)
}
