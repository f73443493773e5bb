//! The properties of a kind of op.

/// What is known of a kind of op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpInfo {
    /// Short name, as shown in reports and timelines.
    pub name: &'static str,
    /// How its values depend on each other.
    pub kind: OpKind,
    /// Which values of its inputs it reads.
    pub reads: Reads,
    /// Whether it reads a row of a table for each row.
    pub reads_table: bool,
    /// Whether static graphs can hold it.
    pub is_static: bool,
    /// Whether only the CPU computes it.
    pub is_for_cpus: bool,
    /// Its place in a set of kinds.
    pub(crate) number: u32,
}

/// How the values of an op depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A product with a matrix: an output channel depends on whole rows of the input.
    Product,
    /// A value depends on those at its place in the inputs.
    Elementwise,
    /// A row depends on that row of the input.
    Rowwise,
    /// A row depends on its position, its token or other rows, or the op only selects rows or columns, or joins them.
    Dynamic,
}

/// Which values of its inputs an op reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// All.
    Inputs,
    /// Those at the places of its output.
    Places,
}

impl OpInfo {
    /// An op with that name and number of which the rest is yet to be said.
    pub(super) const fn new(name: &'static str, number: u32, kind: OpKind) -> OpInfo {
        OpInfo {
            name,
            kind,
            reads: match kind {
                OpKind::Elementwise => Reads::Places,
                OpKind::Product | OpKind::Rowwise | OpKind::Dynamic => Reads::Inputs,
            },
            reads_table: false,
            is_static: false,
            is_for_cpus: false,
            number,
        }
    }

    pub(super) const fn in_static_graphs(self) -> OpInfo {
        OpInfo { is_static: true, ..self }
    }

    pub(super) const fn for_cpus(self) -> OpInfo {
        OpInfo { is_for_cpus: true, ..self }
    }
}
