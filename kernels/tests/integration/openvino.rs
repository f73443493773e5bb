//! Whether OpenVINO can be tested.

/// Ends the test where OpenVINO is not installed, and says so; that is an error where LAPWING_TEST is set.
macro_rules! needs_openvino {
    () => {
        if let Err(error) = lapwing_kernels::npu::openvino_devices() {
            assert!(std::env::var_os("LAPWING_TEST").is_none(), "{error}");
            // Written past the test harness, which hides what a passing test prints.
            let line = format!("SKIPPED a test of OpenVINO: {error}\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            return;
        }
    };
}
pub(crate) use needs_openvino;
