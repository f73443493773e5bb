//! The memories that a model takes.

use lapwing_kernels::cpu::{PackedMemory, packed_bytes};
use lapwing_kernels::device::MemoryDomain;
use lapwing_plan::planner::PlannerParts;

use super::{Device, Subject};
use crate::engine::memory;
use crate::engine::slots::slot_bytes;
use crate::error::Error;
use crate::fit::MemoryNeed;

impl Subject<'_> {
    /// The memory of the host, and those that devices have of their own; and the largest context that fits into all of them,
    /// if the free memory is known.
    ///
    /// # Errors
    /// When the strategy has no route.
    pub(super) fn memory(
        &self,
        devices: &[Device],
        parts: &PlannerParts,
    ) -> Result<(Vec<MemoryNeed>, Option<usize>), Error> {
        let Subject { chosen, graph, trained_context, .. } = self;
        let layout = &chosen.layout;
        let needs = memory::needs(parts, chosen)?;
        let is_packed = devices.iter().any(|device| device.spec.has_threads());
        // What a library or a processor without memory of its own holds is in the host's, too.
        let in_host = devices.iter().zip(&needs).filter(|(device, _)| {
            !device.spec.has_threads() && device.info.memory == MemoryDomain::Host
        });
        let packed = if is_packed { packed_bytes(graph) } else { 0 };
        let pages = layout.pages_for(chosen.context) as u64;
        let of_layer = self.layer.as_ref().map_or((0, 0), |(layer, device)| {
            let packing = devices[*device].info.packing;
            (layer.weight_bytes(packing), layer.kv_bytes(Some(chosen.context)))
        });
        let mut all = vec![MemoryNeed {
            device: None,
            weights: in_host
                .map(|(_, (weights, _))| *weights)
                .fold(packed + of_layer.0, u64::saturating_add),
            kv: (layout.page_bytes() as u64).saturating_mul(pages)
                + of_layer.1
                + (layout.state_bytes() as u64).saturating_mul(u64::from(chosen.states)),
            buffers: slot_bytes(&[&**graph], chosen),
            free: self.free,
            mappable: if self.can_map() { packed } else { 0 },
        }];
        for (device, (weights, kv)) in devices.iter().zip(needs) {
            let Some(capacity) = device.capacity else { continue };
            all.push(MemoryNeed {
                device: Some(device.spec.name.clone()),
                weights,
                kv,
                buffers: 0,
                free: Some(memory::room(capacity)),
                mappable: 0,
            });
        }
        let page_rows = layout.page_rows as u64;
        let tokens = |need: &MemoryNeed| need.tokens(need.kv.div_ceil(pages.max(1)), page_rows);
        let tokens: Option<Vec<u64>> = all.iter().map(tokens).collect();
        let largest = tokens.map(|tokens| {
            let least = tokens.into_iter().min().unwrap_or(u64::MAX);
            usize::try_from(least).unwrap_or(usize::MAX).min(*trained_context)
        });
        Ok((all, largest))
    }

    /// Whether an engine would map packed weights, as far as its settings and the system decide.
    fn can_map(&self) -> bool {
        let (cache, memory) = (&self.settings.packed_cache, self.settings.packed_memory);
        cfg!(target_os = "linux") && cache.is_some() && memory != Some(PackedMemory::Read)
    }
}
