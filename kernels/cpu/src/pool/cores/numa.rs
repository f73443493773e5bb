//! NUMA nodes: groups of cores with memory of their own.

use super::{CoreSet, CoresError};
use std::path::Path;

/// Folder in which Linux describes the nodes.
const NODES: &str = "/sys/devices/system/node";

impl CoreSet {
    /// The NUMA nodes of the machine that have cores, with their numbers, ascending; empty where the
    /// system does not say. A system without the concept has one node.
    pub fn nodes() -> Vec<(usize, CoreSet)> {
        nodes(NODES.as_ref())
    }

    /// The cores of a NUMA node. Linux places memory on the node of the thread that first writes to it:
    /// an engine whose threads are pinned to one node has its weights, keys and values there too.
    ///
    /// # Errors
    /// [`CoresError::Node`], which names the nodes of the machine.
    pub fn of_node(node: usize) -> Result<CoreSet, CoresError> {
        of_node(NODES.as_ref(), node)
    }
}

fn nodes(folder: &Path) -> Vec<(usize, CoreSet)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let node = |entry: std::fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        // A node that has only memory has an empty list.
        let cores = std::fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some((number, cores.trim().parse().ok()?))
    };
    let mut nodes: Vec<(usize, CoreSet)> = entries.filter_map(node).collect();
    nodes.sort_by_key(|(number, _)| *number);
    nodes
}

fn of_node(folder: &Path, node: usize) -> Result<CoreSet, CoresError> {
    let mut nodes = nodes(folder);
    match nodes.iter().position(|(number, _)| *number == node) {
        Some(at) => Ok(nodes.swap_remove(at).1),
        None => {
            let known: Vec<String> = nodes.iter().map(|(number, _)| number.to_string()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(CoresError::Node { node, known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_in_order_and_those_without_cores_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            ("node10", Some("8-15\n")),
            ("node0", Some("0-3,16-19\n")),
            ("node2", Some("\n")),
            ("node3", None),
            ("nodes", Some("1\n")),
            ("has_cpu", Some("0\n")),
        ];
        for (name, list) in files {
            let node = folder.path().join(name);
            std::fs::create_dir(&node).expect("a folder");
            if let Some(list) = list {
                std::fs::write(node.join("cpulist"), list).expect("a file");
            }
        }
        let set = |text: &str| text.parse::<CoreSet>().expect(text);
        assert_eq!(nodes(folder.path()), [(0, set("0-3,16-19")), (10, set("8-15"))]);
        assert_eq!(of_node(folder.path(), 10).expect("a node"), set("8-15"));
        for absent in [1, 2, 3] {
            let error = of_node(folder.path(), absent).expect_err("no such node").to_string();
            assert!(error.contains(&format!("node {absent}; it has 0, 10")), "{error}");
        }
        let nowhere = of_node(&folder.path().join("absent"), 0).expect_err("no nodes").to_string();
        assert!(nowhere.ends_with("it has none"), "{nowhere}");
    }

    #[test]
    fn a_node_stands_for_its_cores_in_a_set() {
        for (node, cores) in CoreSet::nodes() {
            assert_eq!(format!("node{node}").parse::<CoreSet>().expect("a set"), cores);
        }
        for wrong in ["node", "node-1", "nodex", "0,node"] {
            assert!(matches!(wrong.parse::<CoreSet>(), Err(CoresError::Syntax { .. })), "{wrong}");
        }
        assert!(matches!("node4095".parse::<CoreSet>(), Err(CoresError::Node { .. })));
    }
}
