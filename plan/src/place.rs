//! Placement of ops: found from predicted times, or said by hand.
//!
//! # Paths of ops
//! | path | ops |
//! |---|---|
//! | `embed` | embedding |
//! | `layers.L.attn.norm` | norm before the attention |
//! | `layers.L.attn.q`, `.k`, `.v` | projections |
//! | `layers.L.attn.q_norm`, `.k_norm` | norms of heads |
//! | `layers.L.attn.rope_q`, `.rope_k` | rotary embedding |
//! | `layers.L.attn.attend` | KV cache and attention |
//! | `layers.L.attn.output`, `.post_norm` | projection and norm after the attention |
//! | `layers.L.attn.select`, `.select_residual` | rows whose logits are wanted, in the last layer |
//! | `layers.L.attn.residual` | sum with the layer's input |
//! | `layers.L.ffn.norm`, `.gate`, `.up`, `.gated`, `.down`, `.post_norm`, `.residual` | feed-forward |
//! | `output_norm` | norm after the last layer |
//! | `output`, `output.cap` | logits and their soft cap |
//!
//! L counts layers from 0. A pattern is a path, or the beginning of one up to a dot; in it `*`
//! stands for any one segment. `layers.*.ffn=npu` places all feed-forward ops on the NPU.

mod auto_place;
mod path;
mod placed;

pub use auto_place::AutoPlace;
pub use path::path;
pub use placed::Placed;

use lapwing_kernels::device::DeviceInfo;
use lapwing_kernels::graph::Graph;

use super::{DeviceId, PlanError};

/// Ops that a user has placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    places: Vec<Place>,
}

/// A pattern and its device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    pattern: String,
    device: String,
}

impl Places {
    /// Reads placements that read `PATTERN=DEVICE`, such as `layers.*.ffn=npu`. Where several match
    /// an op, the last one counts.
    ///
    /// # Errors
    /// [`PlanError::Placement`] when one does not read so.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Places, PlanError> {
        let mut places = Vec::new();
        for text in texts {
            let text = text.as_ref();
            let fail = |problem| Err(PlanError::Placement { text: text.to_owned(), problem });
            let Some((pattern, device)) = text.split_once('=') else {
                return fail("there is no '='");
            };
            let (pattern, device) = (pattern.trim(), device.trim());
            if pattern.is_empty() || pattern.split('.').any(str::is_empty) {
                return fail("a segment of the pattern is empty");
            }
            if device.is_empty() {
                return fail("there is no device after '='");
            }
            places.push(Place { pattern: pattern.to_owned(), device: device.to_owned() });
        }
        Ok(Places { places })
    }

    /// Whether nothing is placed.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// For each node the device that it is placed on, if any.
    ///
    /// # Errors
    /// [`PlanError::NoMatch`] for a pattern that matches no op, [`PlanError::UnknownDevice`] for
    /// the name of a device that is not there, [`PlanError::PlacedOps`] for ops that their
    /// device cannot run; it names them.
    pub fn resolve(
        &self,
        graph: &Graph,
        devices: &[DeviceInfo],
    ) -> Result<Vec<Option<DeviceId>>, PlanError> {
        let paths: Vec<String> = graph.nodes().iter().map(path).collect();
        let mut found = vec![None; paths.len()];
        for Place { pattern, device } in &self.places {
            let Some(id) = devices.iter().position(|d| d.name == *device) else {
                let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
                let (pattern, device) = (pattern.clone(), device.clone());
                return Err(PlanError::UnknownDevice { pattern, device, known: names.join(", ") });
            };
            let mut any = false;
            for (path, found) in paths.iter().zip(&mut found) {
                if path::matches(pattern, path) {
                    *found = Some(DeviceId(id));
                    any = true;
                }
            }
            if !any {
                let example = path::example(&paths);
                return Err(PlanError::NoMatch { pattern: pattern.clone(), example });
            }
        }
        check_kernels(graph, devices, (&paths, &found))?;
        Ok(found)
    }
}

/// Most paths that an error names.
const NAMED_MAX: usize = 8;

/// Every placed op has a kernel on its device.
fn check_kernels(
    graph: &Graph,
    devices: &[DeviceInfo],
    (paths, found): (&[String], &[Option<DeviceId>]),
) -> Result<(), PlanError> {
    for (number, info) in devices.iter().enumerate() {
        let lost: Vec<usize> = (0..paths.len())
            .filter(|&n| found[n] == Some(DeviceId(number)) && !info.runs(&graph.nodes()[n].op))
            .collect();
        if lost.is_empty() {
            continue;
        }
        let named: Vec<&str> = lost.iter().take(NAMED_MAX).map(|&n| paths[n].as_str()).collect();
        let more = match lost.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let ops = format!("{}{more}", named.join(", "));
        return Err(PlanError::PlacedOps { ops, device: info.name.clone() });
    }
    Ok(())
}
