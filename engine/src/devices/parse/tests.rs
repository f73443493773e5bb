use std::time::Duration;

use super::super::{Backend, OpenClMemory, OpenClSettings, OwnMemory, Pace, Rates};
use super::*;

fn parsed(text: &str) -> DeviceSpec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn written_devices_parse_to_equal_devices() {
    for text in [
        "cpu",
        "gpu",
        "npu",
        "cpu=cores:threads=3",
        "cpu=throttled",
        "gpu=throttled:gflops=40,gbps=8,submit=15us,idle-submit=75us,sync=20us",
        "x=throttled:kind=npu,sizes=32/96,budget=1000",
        "npu-2=systolic:gflops=2.5,budget=256MiB,sizes=32-1024,array=16,floor=0.25,prepare=0",
        "npu-3=systolic:sizes=32/96/160,array=8,gflops=0.001",
        "npu-4=systolic:sizes=1/4/8/64,array=8",
        "npu-5=systolic:sizes=1-1024",
        "y=systolic:prepare-gweight=1500ns,submit=1.5ms",
        "gpu=throttled:memory=80MiB,link=0.012,link-latency=10us",
        "gpu=throttled:link=16",
        "npu=systolic:activations=int8",
        "npu=systolic:outliers=none,clip=0.9999",
        "npu=systolic:prune=0.85,activations=int8",
    ] {
        let spec = parsed(text);
        assert_eq!(parsed(&spec.to_string()), spec, "{text} became {spec}");
    }
}

#[test]
fn each_key_sets_its_own_value() {
    let gpu = parsed("gpu=throttled:gflops=40,gbps=8,submit=15us,idle-submit=75us,sync=0.4ms");
    let us = Duration::from_micros;
    let rates = Rates {
        gflops: 40.0,
        gbps: 8.0,
        submit_queued: us(15),
        submit_idle: us(75),
        sync: us(400),
    };
    assert_eq!((gpu.kind, gpu.backend), (DeviceKind::Gpu, Backend::Cpu));
    assert_eq!(gpu.pace, Pace::Throttled(rates));
    let npu = parsed("npu=systolic:budget=2MiB,sizes=33-200,threads=2");
    assert_eq!((npu.graphs.budget, npu.threads), (2 << 20, Some(2)));
    assert_eq!(npu.graphs.sizes, [64, 128]);
    assert_eq!(parsed("fast=throttled:kind=cpu").kind, DeviceKind::Cpu);
    assert_eq!(parsed("fast=throttled").kind, DeviceKind::Gpu);
    assert_eq!(parsed("npu=throttled").kind, DeviceKind::Npu);
}

#[test]
fn a_gpu_of_a_laptop_has_memory_of_its_own() {
    let laptop = DeviceSpec::list("laptop").expect("devices");
    let [cpu, gpu] = &laptop[..] else { panic!("{laptop:?}") };
    assert_eq!((cpu.kind, gpu.kind), (DeviceKind::Cpu, DeviceKind::Gpu));
    assert_eq!((cpu.memory, gpu.memory), (None, Some(OwnMemory::default())));
    let small = parsed("gpu=throttled:memory=2MiB").memory.expect("a memory");
    assert_eq!((small.bytes, small.link), (2 << 20, OwnMemory::default().link));
    for mut spec in [DeviceSpec::throttled("cpu", DeviceKind::Cpu), DeviceSpec::systolic("npu")] {
        spec.memory = Some(small);
        let error = spec.check().expect_err("no GPU").to_string();
        assert!(error.contains("only an emulated GPU"), "{error}");
    }
}

#[test]
fn errors_say_what_is_accepted() {
    for (text, says) in [
        ("", "letters, digits"),
        ("g pu=throttled", "letters, digits"),
        ("tpu", "unknown device 'tpu' (presets: cpu, gpu, npu, phone, laptop)"),
        (
            "gpu=fast",
            "expected opencl for a GPU of this machine, openvino for an Intel NPU, qnn for a Qualcomm NPU, cores for no throttling",
        ),
        (
            "gpu=throttled:tflops=1",
            "gflops, gbps, submit, idle-submit, sync, memory, link, link-latency, kind",
        ),
        ("gpu=throttled:memory=0", "64MiB"),
        ("gpu=throttled:link=0", "positive number"),
        ("cpu=throttled:memory=1GiB", "unknown key 'memory'"),
        ("npu=throttled:link=1", "unknown key 'link'"),
        ("npu=systolic:memory=1GiB", "unknown key 'memory'"),
        ("gpu=throttled:sizes=32", "unknown key 'sizes' (form throttled has "),
        ("cpu=cores:gflops=1", "unknown key 'gflops' (form cores has threads, kind)"),
        ("gpu=throttled:gflops=0", "positive number"),
        ("gpu=throttled:gflops=inf", "positive number"),
        ("gpu=throttled:gflops", "gflops is ''"),
        ("gpu=throttled:sync=20", "15us"),
        ("gpu=throttled:sync=-1us", "15us"),
        ("gpu=throttled:sync=2h", "15us"),
        ("gpu=throttled:sync=1us,sync=2us", "'sync' is given twice"),
        ("npu=systolic:sizes=0", "1-1024"),
        ("npu=systolic:sizes=33-60", "1-1024"),
        ("npu=systolic:sizes=33/70", "multiples of 32 rows"),
        ("npu=systolic:sizes=24/64", "powers of two below 32"),
        ("npu=systolic:sizes=32/131072", "up to 65536"),
        ("npu=systolic:array=24", "1, 2, 4, 8, 16 or 32 cells"),
        ("npu=systolic:array=64", "1, 2, 4, 8, 16 or 32 cells"),
        ("npu=systolic:array=0", "1, 2, 4, 8, 16 or 32 cells"),
        ("gpu=throttled:gflops=1e-4", "at least 0.001"),
        ("gpu=throttled:gbps=0.0009", "at least 0.001"),
        ("gpu=throttled:gbps=nan", "at least 0.001"),
        ("npu=systolic:budget=0", "64MiB"),
        ("npu=systolic:floor=2", "at most 1"),
        ("npu=systolic:kind=gpu", "npu for the form systolic"),
        ("npu=systolic:activations=fp8", "must be int8"),
        ("npu=systolic:clip=0", "above 0, at most 1"),
        ("npu=systolic:prune=1.5", "0 to 1"),
        ("npu=systolic:outliers=gpu", "or none, which limits them"),
        ("npu=openvino:activations=int8", "unknown key 'activations'"),
        ("npu=openvino:threads=0", "at least 1"),
        ("npu=openvino:array=8", "(form openvino has threads, device, sizes, budget, kind)"),
        (
            "npu=qnn:threads=2",
            "(form qnn has library, soc, arch, activations, weights, sizes, budget, kind)",
        ),
        ("npu=qnn:weights=q4_0", "f16, int8, int4, or int4:16"),
        ("npu=qnn:weights=int4:48", "int4:64 or int4:128 in blocks"),
        ("npu=qnn:activations=int8", "f16, or u16 or u8"),
        ("npu=qnn:soc=0", "system on chip"),
        ("npu=qnn:kind=gpu", "npu for the form qnn"),
        ("gpu=cores", "cpu for the form cores"),
        ("x=throttled:kind=tpu", "cpu, gpu or npu"),
    ] {
        let error = text.parse::<DeviceSpec>().expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let twice = DeviceSpec::list("phone+gpu").expect_err("two GPUs of one name");
    assert!(twice.to_string().contains("'gpu' is given twice"));
}

/// A program can combine kind, back end and pace at will; each combination that cannot run is
/// refused, with the reason.
#[test]
fn combinations_without_a_text_form_are_refused() {
    let native_array = DeviceSpec { pace: Pace::Native, ..DeviceSpec::systolic("npu") };
    let gpu_array = DeviceSpec { kind: DeviceKind::Gpu, ..DeviceSpec::systolic("x") };
    let native_gpu = DeviceSpec { kind: DeviceKind::Gpu, ..DeviceSpec::cpu() };
    let native_npu = DeviceSpec { kind: DeviceKind::Npu, ..DeviceSpec::cpu() };
    let opencl_npu = DeviceSpec { kind: DeviceKind::Npu, ..DeviceSpec::opencl("x", "") };
    let slow = DeviceSpec::throttled("gpu", DeviceKind::Gpu).pace;
    let slow_opencl = DeviceSpec { pace: slow, ..DeviceSpec::opencl("x", "") };
    let own = DeviceSpec { kind: DeviceKind::Own("dsp"), ..DeviceSpec::systolic("x") };
    let own_kind = DeviceKind::Own("dsp");
    let own_gpu = DeviceSpec { kind: own_kind, ..DeviceSpec::throttled("x", DeviceKind::Gpu) };
    for (spec, says) in [
        (own, "device 'x' of kind dsp: a systolic array must be an NPU"),
        (own_gpu, "device 'x' of kind dsp: devices of a kind of your own are for simulations"),
        (native_array, "device 'npu' of kind npu: a systolic array must be throttled"),
        (gpu_array, "device 'x' of kind gpu: a systolic array must be an NPU"),
        (native_gpu, "only a CPU can be native"),
        (native_npu, "only a CPU can be native"),
        (opencl_npu, "device 'x' of kind npu: an OpenCL device has the role of a GPU"),
        (slow_opencl, "device 'x' of kind gpu: an OpenCL device runs at its own pace"),
    ] {
        let error = spec.check().expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
    for spec in DeviceSpec::list("phone+a=cores+b=throttled:kind=npu").expect("devices") {
        assert_eq!(spec.check(), Ok(()), "{spec}");
    }
}

#[test]
fn an_opencl_device_is_selected_by_number_or_name() {
    for (text, which, again) in [
        ("gpu=opencl", "", "gpu=opencl"),
        ("gpu=opencl:", "", "gpu=opencl"),
        ("gpu=opencl:1", "1", "gpu=opencl:1"),
        ("gpu=opencl: Mali G78", "Mali G78", "gpu=opencl:Mali G78"),
        ("gpu=opencl:NVIDIA, rev=2", "NVIDIA, rev=2", "gpu=opencl:NVIDIA, rev=2"),
    ] {
        let spec: DeviceSpec = text.parse().expect(text);
        assert_eq!(spec, DeviceSpec::opencl("gpu", which), "{text}");
        assert_eq!(spec.to_string(), again);
        assert_eq!(spec.check(), Ok(()));
    }
}

#[test]
fn keys_of_an_opencl_device_stand_beside_what_selects_it() {
    let settings = |which: &str, memory, no_persistent| {
        let which = which.to_owned();
        Backend::OpenCl(OpenClSettings { which, memory, no_persistent })
    };
    let (shared, copied) = (Some(OpenClMemory::Shared), Some(OpenClMemory::Copied));
    for (text, backend, again) in [
        ("gpu=opencl:memory=copied", settings("", copied, false), "gpu=opencl:memory=copied"),
        ("gpu=opencl:1, memory=shared", settings("1", shared, false), "gpu=opencl:1,memory=shared"),
        ("gpu=opencl:persistent=on", settings("", None, false), "gpu=opencl"),
        (
            "gpu=opencl:persistent=off,A, B=2,memory=copied",
            settings("A, B=2", copied, true),
            "gpu=opencl:A, B=2,memory=copied,persistent=off",
        ),
    ] {
        let spec = parsed(text);
        assert_eq!(spec.backend, backend, "{text}");
        assert_eq!(spec.to_string(), again);
        assert_eq!(parsed(again), spec);
    }
    for (text, says) in [
        ("gpu=opencl:memory=mapped", "memory is 'mapped'"),
        ("gpu=opencl:memory=", "shared, or copied"),
        ("gpu=opencl:1,persistent=no", "on, or off"),
        ("gpu=opencl:memory=copied,memory=copied", "'memory' is given twice"),
        ("gpu=throttled:memory=copied", "memory is 'copied', but must be a number of bytes"),
        ("npu=qnn:persistent=off", "unknown key 'persistent'"),
    ] {
        let error = text.parse::<DeviceSpec>().expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}
