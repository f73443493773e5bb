//! Manual placements: parsed from text, and resolved to nodes and devices.

use lapwing_kernels::device::DeviceInfo;
use lapwing_kernels::graph::Graph;

use super::path::{example, matches, path};
use crate::device::DeviceId;
use crate::error::PlanError;

/// Manual placements, in the order given.
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
    /// Parses placements of the form `PATTERN=DEVICE`, such as `layers.*.ffn=npu`. If several match an
    /// op, the last one applies.
    ///
    /// # Errors
    /// [`PlanError::Placement`] if a text does not have this form.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Places, PlanError> {
        let mut places = Vec::new();
        for text in texts {
            let text = text.as_ref();
            let fail = |problem| Err(PlanError::Placement { text: text.to_owned(), problem });
            let Some((pattern, device)) = text.split_once('=') else {
                return fail("it has no '='");
            };
            let (pattern, device) = (pattern.trim(), device.trim());
            if pattern.is_empty() || pattern.split('.').any(str::is_empty) {
                return fail("a segment of the pattern is empty");
            }
            if device.is_empty() {
                return fail("no device follows '='");
            }
            places.push(Place { pattern: pattern.to_owned(), device: device.to_owned() });
        }
        Ok(Places { places })
    }

    /// Whether there is no placement.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The device on which each node is placed, if any.
    ///
    /// # Errors
    /// [`PlanError::NoMatch`] if a pattern matches no op, [`PlanError::UnknownDevice`] if a device
    /// does not exist, [`PlanError::PlacedOps`] with the paths of ops that their device cannot run.
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
                if matches(pattern, path) {
                    *found = Some(DeviceId(id));
                    any = true;
                }
            }
            if !any {
                let example = example(&paths);
                return Err(PlanError::NoMatch { pattern: pattern.clone(), example });
            }
        }
        check_kernels(graph, devices, &paths, &found)?;
        Ok(found)
    }
}

/// Maximum paths in an error message.
const NAMED_MAX: usize = 8;

/// Checks that each placed op has a kernel on its device.
fn check_kernels(
    graph: &Graph,
    devices: &[DeviceInfo],
    paths: &[String],
    found: &[Option<DeviceId>],
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
