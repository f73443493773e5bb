//! Everything that computes: tensors, quantisation, weight files, op graphs, model architectures, KV pages and a naive
//! reference as test oracle (the crate `lapwing-model`), and the devices, each a crate of its own. No crate of these uses a
//! clock, channels or logging.

pub use lapwing_cpu as cpu;
pub use lapwing_model::{
    completion, cost, device, formats, graph, kv, leave, mask, merge, model, op, ops, part, quant,
    reference, requant, sync, tensor, weights,
};
#[cfg(feature = "opencl")]
pub use lapwing_opencl as opencl;

/// Devices that only run prepared static graphs, such as NPUs.
pub mod npu {
    pub use lapwing_npu::*;
    #[cfg(feature = "openvino")]
    pub use lapwing_openvino::{
        OpenVino, OpenVinoError, OpenVinoInfo, OpenVinoSettings, openvino_device, openvino_devices,
        openvino_library,
    };
    #[cfg(feature = "qnn")]
    pub use lapwing_qnn::{Qnn, QnnError, QnnInfo, qnn_device, qnn_library};
}
