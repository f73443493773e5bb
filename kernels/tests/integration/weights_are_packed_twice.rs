//! Devices of a process share the packed weights of an open file, and the file stays readable.

use std::sync::Arc;

use lapwing_kernels::cpu::lock_packed;
use lapwing_kernels::device::BlockingDevice;
use lapwing_kernels::weights::WeightFile;

use crate::npu::{Task, Tiny};

#[test]
fn a_second_device_shares_the_packed_weights() {
    let tiny = Tiny::open("gemma3.gguf");
    let first = tiny.cpu();
    let second = tiny.cpu();
    assert!(Arc::ptr_eq(first.weights(), second.weights()));
    assert!(first.weights().packed_bytes() > 0);
    let weak = Arc::downgrade(first.weights());
    drop((first, second));
    assert!(weak.upgrade().is_none(), "unused weights are kept");
    assert!(tiny.cpu().weights().packed_bytes() > 0);
}

#[test]
fn a_packed_tensor_still_reads_the_same_bytes() {
    let tiny = Tiny::open("gemma3.gguf");
    let bytes = |file: &WeightFile| -> Vec<Vec<u8>> {
        let names = file.tensors().map(|tensor| tensor.name.clone());
        names.map(|name| file.tensor(&name).expect("a tensor").read().expect("bytes")).collect()
    };
    let before = bytes(&tiny.file);
    let device = tiny.cpu();
    assert!(bytes(&tiny.file) == before);
    drop(device);
}

#[test]
fn weights_packed_by_another_device_give_the_same_results() {
    let tiny = Tiny::open("gemma3.gguf");
    let task = Task::new(tiny.gated(), 5, &[]);
    let mut alone = tiny.cpu();
    let want = tiny.run(&mut alone as &mut dyn BlockingDevice, &task, &mut ()).expect("a result");
    let _npu = tiny.systolic();
    let mut second = tiny.cpu();
    drop(alone);
    let got = tiny.run(&mut second, &task, &mut ()).expect("a result");
    tiny.assert_same(&task, &got, &want, "a second device");
}

/// Bytes that this process has locked in memory.
#[cfg(target_os = "linux")]
fn locked() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("locked memory");
    line.trim_end_matches("kB").trim().parse::<usize>().expect("a number") * 1024
}

/// Where the limit is too low, the error states it.
#[cfg(target_os = "linux")]
#[test]
fn locked_weights_are_resident_until_the_device_ends() {
    let tiny = Tiny::open("gemma3.gguf");
    assert_eq!(lock_packed(&tiny.file).expect("nothing to lock"), 0);
    let device = tiny.cpu();
    let before = locked();
    match lock_packed(&tiny.file) {
        Ok(bytes) => {
            assert!(bytes >= device.weights().packed_bytes());
            assert!(locked() >= before + bytes, "{bytes} of {}", locked());
        }
        Err(error) => assert!(error.to_string().contains("ulimit -l"), "{error}"),
    }
    drop(device);
    assert_eq!(locked(), before);
}
