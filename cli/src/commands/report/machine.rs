//! The machine and its system, as a report describes them.

use lapwing_engine::EngineBuilder;
use lapwing_kernels::cpu::{Caches, CoreSet, Isa};
use serde::{Deserialize, Serialize};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::cli::failure::Failure;

/// The machine and its system.
#[derive(Serialize, Deserialize)]
pub(super) struct Machine {
    /// Name of the processor.
    pub(super) cpu: String,
    /// Hardware threads.
    pub(super) cores: usize,
    /// Instruction set that the kernels use.
    pub(super) isa: String,
    /// Instruction sets that they could use.
    pub(super) isa_available: Vec<String>,
    pub(super) caches: CacheSizes,
    pub(super) numa: Vec<Node>,
    /// Memory that the system has in total.
    pub(super) memory_bytes: u64,
    pub(super) os: String,
    pub(super) os_version: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) architecture: String,
}

/// Sizes of the caches.
#[derive(Serialize, Deserialize)]
pub(super) struct CacheSizes {
    /// Of the first level, for a hardware thread.
    pub(super) first_bytes: usize,
    /// Of the second level, for a hardware thread.
    pub(super) second_bytes: usize,
    /// Of the largest cache.
    pub(super) last_bytes: Option<usize>,
    /// Whether the system tells them; otherwise they are assumed.
    pub(super) known: bool,
}

/// A NUMA node.
#[derive(Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) node: usize,
    pub(super) cores: String,
}

impl Machine {
    /// This machine. The builder has the name of its processor.
    ///
    /// # Errors
    /// When the builder's model cannot be read.
    pub(super) fn here(builder: &EngineBuilder) -> Result<Machine, Failure> {
        let of_profile = builder.identity()?.machine;
        let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(memory);
        let Caches { l1, l2, largest, detected, .. } = Caches::of_machine();
        let nodes = CoreSet::nodes().into_iter();
        Ok(Machine {
            cpu: of_profile.cpu,
            cores: of_profile.cores,
            isa: of_profile.isa,
            isa_available: Isa::available().into_iter().map(|isa| isa.name().to_owned()).collect(),
            caches: CacheSizes {
                first_bytes: l1,
                second_bytes: l2,
                last_bytes: largest,
                known: detected,
            },
            numa: nodes.map(|(node, cores)| Node { node, cores: cores.to_string() }).collect(),
            memory_bytes: system.total_memory(),
            os: of_profile.os,
            os_version: System::long_os_version(),
            kernel: System::kernel_version(),
            architecture: std::env::consts::ARCH.to_owned(),
        })
    }
}
