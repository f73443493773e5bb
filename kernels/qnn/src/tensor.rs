//! Tensors, and ops with their parameters.

use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::rc::Rc;

use super::abi::{
    ByBlock, Element, Quantization, RawParameter, RawScalar, RawTensor, RawValue, Role,
    ScaleOffset, TensorVersion,
};

/// Scales of output channels, and factors of them for blocks of each channel. The library reads them where the matrix is
/// added, and again at the same address where an op reads it.
#[derive(Debug)]
pub(super) struct Blocks {
    raw: ByBlock,
    // The vectors that `raw` points to.
    _channels: Vec<ScaleOffset>,
    _factors: Vec<u8>,
}

impl Blocks {
    /// `factors` has as many for each channel, in the order of channels. `axis` is that of the channels.
    pub(super) fn new(axis: i32, channels: Vec<ScaleOffset>, factors: Vec<u8>) -> Blocks {
        let raw = ByBlock::new(axis, &channels, &factors);
        Blocks { raw, _channels: channels, _factors: factors }
    }

    /// The quantisation as the library sees it. It points to `self`.
    pub(super) fn quantization(&self) -> Quantization {
        Quantization::by_block(&self.raw)
    }
}

/// A tensor of a graph.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) id: u32,
    pub(super) name: CString,
    pub(super) role: Role,
    pub(super) element: Element,
    pub(super) dims: Vec<u32>,
    /// Of a matrix in blocks.
    pub(super) blocks: Option<Rc<Blocks>>,
}

impl Tensor {
    /// The last dimension.
    pub(super) fn width(&self) -> usize {
        self.dims.last().map_or(0, |width| *width as usize)
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.dims.iter().map(|dim| *dim as usize).product()
    }

    /// The tensor as the library sees it, with data of that many bytes. It points to `self`.
    pub(super) fn raw(&self, data: *mut c_void, bytes: u32) -> RawTensor {
        RawTensor {
            version: TensorVersion(1),
            id: self.id,
            name: self.name.as_ptr(),
            role: self.role,
            format: 0,
            element: self.element,
            quantization: self
                .blocks
                .as_ref()
                .map_or(Quantization::NONE, |blocks| blocks.quantization()),
            rank: self.dims.len() as u32,
            dims: self.dims.as_ptr(),
            memory: 0,
            data,
            bytes,
            rest: [0; 3],
        }
    }

    /// As [`raw`](Tensor::raw), without data.
    pub(super) fn without_data(&self) -> RawTensor {
        self.raw(ptr::null_mut(), 0)
    }
}

/// An op without its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op<'a> {
    /// Its name in the library.
    pub(super) kind: &'static CStr,
    pub(super) parameters: &'a [Parameter<'a>],
}

impl Op<'static> {
    /// An op without parameters.
    pub(super) const fn plain(kind: &'static CStr) -> Op<'static> {
        Op { kind, parameters: &[] }
    }
}

/// A parameter of an op.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parameter<'a> {
    /// A number.
    F32(&'static CStr, f32),
    /// Numbers of some dimensions.
    U32s(&'static CStr, &'a [usize], &'a [u32]),
}

impl Parameter<'_> {
    /// The parameter as the library sees it. It points to `tensor`, its constant if it has one.
    pub(super) fn raw(&self, tensor: Option<&Tensor>) -> RawParameter {
        let (name, number) = match self {
            Parameter::F32(name, number) => (name, number.to_bits()),
            Parameter::U32s(name, ..) => (name, 0),
        };
        let scalar = RawScalar { element: Element::F32, bits: u64::from(number) };
        let (kind, value) = match tensor {
            None => (0, RawValue { scalar }),
            Some(tensor) => (1, RawValue { tensor: tensor.without_data() }),
        };
        RawParameter { kind, name: name.as_ptr(), value }
    }
}
