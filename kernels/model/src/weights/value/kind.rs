//! Types of metadata values.

/// Type of a metadata value, numbered as in the GGUF specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ValueKind {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Signed, 8 bits.
    I8 = 1,
    /// Unsigned, 16 bits.
    U16 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Unsigned, 32 bits.
    U32 = 4,
    /// Signed, 32 bits.
    I32 = 5,
    /// IEEE 754 binary32.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// Length and bytes.
    String = 8,
    /// Type, count and elements.
    Array = 9,
    /// Unsigned, 64 bits.
    U64 = 10,
    /// Signed, 64 bits.
    I64 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
}

impl ValueKind {
    const ALL: [ValueKind; 13] = [
        ValueKind::U8,
        ValueKind::I8,
        ValueKind::U16,
        ValueKind::I16,
        ValueKind::U32,
        ValueKind::I32,
        ValueKind::F32,
        ValueKind::Bool,
        ValueKind::String,
        ValueKind::Array,
        ValueKind::U64,
        ValueKind::I64,
        ValueKind::F64,
    ];

    /// The type with that number in a GGUF file.
    pub(in crate::weights) fn from_gguf(id: u32) -> Option<ValueKind> {
        ValueKind::ALL.get(id as usize).copied()
    }

    /// Name of the type.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::U8 => "u8",
            ValueKind::I8 => "i8",
            ValueKind::U16 => "u16",
            ValueKind::I16 => "i16",
            ValueKind::U32 => "u32",
            ValueKind::I32 => "i32",
            ValueKind::F32 => "f32",
            ValueKind::Bool => "bool",
            ValueKind::String => "string",
            ValueKind::Array => "array",
            ValueKind::U64 => "u64",
            ValueKind::I64 => "i64",
            ValueKind::F64 => "f64",
        }
    }

    /// Whether it is an integer of any width.
    pub fn is_integer(self) -> bool {
        use ValueKind::{I8, I16, I32, I64, U8, U16, U32, U64};
        matches!(self, U8 | I8 | U16 | I16 | U32 | I32 | U64 | I64)
    }

    /// Whether it is a floating-point number of either width.
    pub fn is_float(self) -> bool {
        matches!(self, ValueKind::F32 | ValueKind::F64)
    }

    /// Whether it is a boolean.
    pub fn is_bool(self) -> bool {
        self == ValueKind::Bool
    }

    /// Minimum encoded size of an element in bytes, and whether every element has that size.
    pub(in crate::weights) fn element_bytes(self) -> (u64, bool) {
        match self {
            ValueKind::U8 | ValueKind::I8 | ValueKind::Bool => (1, true),
            ValueKind::U16 | ValueKind::I16 => (2, true),
            ValueKind::U32 | ValueKind::I32 | ValueKind::F32 => (4, true),
            ValueKind::U64 | ValueKind::I64 | ValueKind::F64 => (8, true),
            ValueKind::String => (8, false),
            ValueKind::Array => (12, false),
        }
    }
}
