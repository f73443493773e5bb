//! Data of QNN's C interface, version 2, as far as it is used: 64-bit layouts, checked when this is compiled.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

/// Result of a call; 0 for success.
pub(super) type Code = u64;

/// An object of the library.
pub(super) type Handle = *mut c_void;

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Role {
    /// Written by the program before a run.
    Input = 0,
    /// Read by the program after a run, and by ops of the graph.
    Output = 1,
    /// Inside the graph.
    Inner = 3,
    /// Constant.
    Constant = 4,
}

/// Type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Element {
    U32 = 0x0132,
    F16 = 0x0216,
    F32 = 0x0232,
    /// Signed 8-bit integers with a quantisation; of 4 bits, too, which are one to a byte.
    Fixed8 = 0x0308,
    /// Unsigned 8-bit integers with a quantisation.
    UFixed8 = 0x0408,
    /// Unsigned 16-bit integers with a quantisation.
    UFixed16 = 0x0416,
}

impl Element {
    pub(super) fn bytes(self) -> usize {
        match self {
            Element::U32 | Element::F32 => 4,
            Element::F16 | Element::UFixed16 => 2,
            Element::Fixed8 | Element::UFixed8 => 1,
        }
    }
}

/// Stands for a value that is not given.
const UNDEFINED: u32 = 0x7fff_ffff;

/// Scale and offset of a channel: `(integer + offset) · scale`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ScaleOffset {
    pub(super) scale: f32,
    pub(super) offset: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ByAxis {
    axis: i32,
    count: u32,
    channels: *const ScaleOffset,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ByAxisInBits {
    bits: u32,
    axis: i32,
    count: u32,
    scales: *const f32,
    offsets: *const i32,
}

/// A scale for each index of an axis, and factors of it for blocks along the other axis of a matrix.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ByBlock {
    axis: i32,
    channels: *const ScaleOffset,
    /// Blocks of each channel.
    blocks: u32,
    factor_bits: u32,
    /// 0: a byte for each factor.
    factor_storage: u32,
    factors: *const u8,
}

impl ByBlock {
    /// Factors of 4 bits, as many for each channel and in their order. It points to both slices.
    pub(super) fn new(axis: i32, channels: &[ScaleOffset], factors: &[u8]) -> ByBlock {
        let blocks = (factors.len() / channels.len().max(1)) as u32;
        let (channels, factors) = (channels.as_ptr(), factors.as_ptr());
        ByBlock { axis, channels, blocks, factor_bits: 4, factor_storage: 0, factors }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
union Encoding {
    none: [u64; 4],
    whole: ScaleOffset,
    by_block: *const ByBlock,
    by_axis: ByAxis,
    by_axis_in_bits: ByAxisInBits,
}

/// Quantisation of a tensor.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Quantization {
    defined: u32,
    kind: u32,
    encoding: Encoding,
}

impl Quantization {
    /// None.
    pub(super) const NONE: Quantization =
        Quantization { defined: UNDEFINED, kind: UNDEFINED, encoding: Encoding { none: [0; 4] } };

    /// One scale for all values.
    pub(super) fn whole(scale: f32, offset: i32) -> Quantization {
        let encoding = Encoding { whole: ScaleOffset { scale, offset } };
        Quantization { defined: 1, kind: 0, encoding }
    }

    /// Scales and factors of blocks. It points to `by_block`.
    pub(super) fn by_block(by_block: &ByBlock) -> Quantization {
        Quantization { defined: 1, kind: 5, encoding: Encoding { by_block } }
    }

    /// A scale for each index of an axis, for integers of 8 bits. It points to `channels`.
    pub(super) fn by_axis(axis: i32, channels: &[ScaleOffset]) -> Quantization {
        let by_axis = ByAxis { axis, count: channels.len() as u32, channels: channels.as_ptr() };
        Quantization { defined: 1, kind: 1, encoding: Encoding { by_axis } }
    }

    /// A scale for each index of an axis, for integers of fewer bits. It points to both slices, which are
    /// equally long.
    pub(super) fn by_axis_in_bits(
        axis: i32,
        bits: u32,
        scales: &[f32],
        offsets: &[i32],
    ) -> Quantization {
        let count = scales.len().min(offsets.len()) as u32;
        let (scales, offsets) = (scales.as_ptr(), offsets.as_ptr());
        let by_axis_in_bits = ByAxisInBits { bits, axis, count, scales, offsets };
        Quantization { defined: 1, kind: 3, encoding: Encoding { by_axis_in_bits } }
    }
}

/// The version of a tensor's structure; the rest begins at a multiple of 8 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct TensorVersion(pub(super) u32);

/// A tensor. It points to its name, dimensions and data.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawTensor {
    pub(super) version: TensorVersion,
    pub(super) id: u32,
    pub(super) name: *const c_char,
    pub(super) role: Role,
    /// 0: dense, the last dimension fastest.
    pub(super) format: u32,
    pub(super) element: Element,
    pub(super) quantization: Quantization,
    pub(super) rank: u32,
    pub(super) dims: *const u32,
    /// 0: a pointer and a length in bytes follow.
    pub(super) memory: u32,
    pub(super) data: *mut c_void,
    pub(super) bytes: u32,
    /// Of the second version of this structure.
    pub(super) rest: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawScalar {
    pub(super) element: Element,
    /// The bits of the value, in the low end.
    pub(super) bits: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union RawValue {
    pub(super) scalar: RawScalar,
    pub(super) tensor: RawTensor,
}

/// A parameter of an op. It points to its name.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawParameter {
    /// 0 for a scalar, 1 for a tensor.
    pub(super) kind: u32,
    pub(super) name: *const c_char,
    pub(super) value: RawValue,
}

/// An op with its operands, to which it points.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawOp {
    pub(super) version: u32,
    pub(super) name: *const c_char,
    pub(super) package: *const c_char,
    pub(super) kind: *const c_char,
    pub(super) parameter_count: u32,
    pub(super) parameters: *const RawParameter,
    pub(super) input_count: u32,
    pub(super) inputs: *const RawTensor,
    pub(super) output_count: u32,
    pub(super) outputs: *const RawTensor,
}

/// A setting: 0 and a pointer to one of the back end's own.
#[repr(C)]
pub(super) struct RawConfig {
    pub(super) option: u32,
    pub(super) custom: *const DeviceOption,
}

/// A setting of the device.
#[repr(C)]
pub(super) struct DeviceOption {
    option: u32,
    /// The longest value is shorter than this.
    value: [u32; 10],
}

impl DeviceOption {
    /// The number of the system on chip.
    pub(super) fn soc(soc: u32) -> DeviceOption {
        DeviceOption { option: 0, value: [0, soc, 0, 0, 0, 0, 0, 0, 0, 0] }
    }

    /// The least version of the processor's architecture; of its first processor.
    pub(super) fn arch(arch: u32) -> DeviceOption {
        DeviceOption { option: 1, value: [0, 0, arch, 0, 0, 0, 0, 0, 0, 0] }
    }
}

const _: () = {
    assert!(size_of::<Quantization>() == 40 && offset_of!(Quantization, encoding) == 8);
    assert!(offset_of!(ByAxisInBits, scales) == 16 && size_of::<ByAxisInBits>() == 32);
    assert!(size_of::<ByBlock>() == 40 && offset_of!(ByBlock, factors) == 32);
    assert!(size_of::<RawTensor>() == 144 && offset_of!(RawTensor, quantization) == 40);
    assert!(offset_of!(RawTensor, dims) == 88 && offset_of!(RawTensor, data) == 104);
    assert!(size_of::<RawParameter>() == 160 && offset_of!(RawParameter, value) == 16);
    assert!(size_of::<RawOp>() == 80 && offset_of!(RawOp, outputs) == 72);
    assert!(size_of::<RawConfig>() == 16 && size_of::<DeviceOption>() == 44);
};
