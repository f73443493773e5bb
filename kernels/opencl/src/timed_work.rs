//! Work of known size, to be timed by a caller that has a clock.

use std::sync::Arc;

use super::discovery::OpenClInfo;
use super::error::OpenClError;
use super::ops::{Add, KernelSpec, Kernels, MatMul, Matrix, NORMAL, View};
use super::program::ProgramCache;
use super::session::{Buffer, Session};
use lapwing_model::formats::DType;

/// Bytes of weights beyond the caches of any device.
const BEYOND_CACHES: usize = 256 << 20;

/// Rows from which on a matmul is limited by arithmetic, not by reading weights.
const MANY_ROWS: usize = 16;

/// Work on a device that can be repeated: a matmul, or a probe of the device's limits.
#[derive(Debug)]
pub struct Trial {
    session: Arc<Session>,
    kernels: Kernels,
    work: Work,
    operations: u64,
    bytes: u64,
}

#[derive(Debug)]
enum Work {
    MatMul { x: Buffer, out: Buffer, rows: usize, weights: Vec<Matrix>, next: usize },
    Read { from: Buffer, to: Buffer },
    Nothing { values: Buffer },
    MultiplyAdd { to: Buffer },
}

/// A matrix product `[rows, inputs] × [inputs, outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulShape {
    /// Rows.
    pub rows: usize,
    /// Output channels.
    pub outputs: usize,
    /// Input channels; whole blocks of the format.
    pub inputs: usize,
}

fn open(device: &OpenClInfo) -> Result<(Arc<Session>, Kernels), OpenClError> {
    let session = Session::open(device)?;
    let kernels = Kernels::new(&session, &ProgramCache::default(), &KernelSpec::default())?;
    Ok((session, kernels))
}

impl Trial {
    /// A matmul with the kernels that are fastest on the device. Few rows meet another matrix each time,
    /// so that weights come from memory.
    ///
    /// # Errors
    /// If the device fails or lacks the memory.
    ///
    /// # Panics
    /// If the inputs are not whole blocks of the format.
    pub fn matmul(
        device: &OpenClInfo,
        dtype: DType,
        shape: MatMulShape,
    ) -> Result<Trial, OpenClError> {
        let MatMulShape { rows, outputs, inputs } = shape;
        let (session, mut kernels) = open(device)?;
        kernels.tune(dtype)?;
        let matrix = || Matrix::repeated(&session, dtype, [outputs, inputs], NORMAL, "weights");
        let mut weights = vec![matrix()?];
        let packed = weights[0].bytes();
        let copies = if rows < MANY_ROWS { BEYOND_CACHES.div_ceil(packed.max(1)) } else { 1 };
        while weights.len() < copies {
            weights.push(matrix()?);
        }
        let x: Vec<f32> = (0..rows * inputs).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect();
        let x = session.filled(bytemuck::cast_slice(&x), "activations")?;
        let out = session.buffer(rows * outputs * size_of::<f32>(), "activations")?;
        let work = Work::MatMul { x, out, rows, weights, next: 0 };
        let operations = 2 * (rows * outputs * inputs) as u64;
        Ok(Trial { session, kernels, work, operations, bytes: packed as u64 })
    }

    /// Reads memory: at least `bytes`, in order.
    ///
    /// # Errors
    /// If the device fails or lacks the memory.
    pub fn read(device: &OpenClInfo, bytes: usize) -> Result<Trial, OpenClError> {
        let (session, kernels) = open(device)?;
        let of_item = kernels.read_bytes();
        let bytes = bytes.next_multiple_of(of_item).max(of_item);
        let from = session.filled(&vec![1; bytes], "a probe")?;
        let to = session.buffer(bytes / of_item * size_of::<u32>(), "a probe")?;
        let work = Work::Read { from, to };
        Ok(Trial { session, kernels, work, operations: 0, bytes: bytes as u64 })
    }

    /// The smallest kernel: the time of a launch.
    ///
    /// # Errors
    /// If the device fails.
    pub fn launch(device: &OpenClInfo) -> Result<Trial, OpenClError> {
        let (session, kernels) = open(device)?;
        let values = session.filled(&[0; size_of::<f32>()], "a probe")?;
        let work = Work::Nothing { values };
        Ok(Trial { session, kernels, work, operations: 0, bytes: 0 })
    }

    /// Multiply-adds in registers: `items` work-items on vectors of 16 lanes.
    ///
    /// # Errors
    /// If the device fails.
    pub fn multiply_add(device: &OpenClInfo, items: usize) -> Result<Trial, OpenClError> {
        let (session, kernels) = open(device)?;
        let to = session.buffer(items * 16 * size_of::<f32>(), "a probe")?;
        let operations = (items * Kernels::MULTIPLY_ADDS * 2) as u64;
        let work = Work::MultiplyAdd { to };
        Ok(Trial { session, kernels, work, operations, bytes: 0 })
    }

    /// Does the work some times in a row, and waits for its end.
    ///
    /// # Errors
    /// If the device fails.
    pub fn run(&mut self, times: usize) -> Result<(), OpenClError> {
        for _ in 0..times {
            self.add()?;
        }
        self.session.finish()
    }

    /// Adds the work to the queue.
    fn add(&mut self) -> Result<(), OpenClError> {
        let kernels = &mut self.kernels;
        match &mut self.work {
            Work::MatMul { x, out, rows, weights, next } => {
                let weight = &weights[*next % weights.len()];
                *next += 1;
                let x = View { buffer: x, at: 0, stride: weight.cols() };
                let out = View { buffer: out, at: 0, stride: weight.rows() };
                kernels.matmul(&MatMul::plain(x, *rows, weight, out))?;
            }
            Work::Read { from, to } => kernels.read_all(from, to)?,
            Work::MultiplyAdd { to } => kernels.multiply_add(to)?,
            Work::Nothing { values } => {
                let x = View { buffer: values, at: 0, stride: 1 };
                kernels.add(&Add { a: x, b: x, rows: 1, width: 1, out: x })?;
            }
        }
        Ok(())
    }

    /// Floating-point operations of a run; a multiply-add is two.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Bytes of weights, or of memory, that a run reads.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
