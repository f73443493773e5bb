//! Memory that the host and a device use in place.

use std::any::Any;
use std::fmt;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use cl3::{command_queue, memory};

use super::{Arg, Buffer, Handle, Kernel, Lane, Range, Session};
use crate::discovery::SharedKind;
use crate::error::OpenClError;
use lapwing_model::device::MappedMemory;

/// The standard's largest alignment: that of a vector of 16 longs. It is a multiple of a cache line.
const ALIGNMENT: usize = 128;

/// A buffer whose bytes the host reads and writes without a copy or a command.
///
/// The host may write bytes before the commands that use them are added, and read what commands have written after
/// [`Event::wait`](super::Event::wait). Between the two it must not touch bytes that the commands write.
pub(crate) struct SharedBuffer {
    /// Taken when this is dropped.
    buffer: Option<Buffer>,
    first: NonNull<f32>,
    values: usize,
    kind: SharedKind,
    session: Arc<Session>,
}

// SAFETY: the memory belongs to this object and may be accessed from any thread.
unsafe impl Send for SharedBuffer {}
// SAFETY: only `SharedSlot` gives access to the values, by its own borrows.
unsafe impl Sync for SharedBuffer {}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBuffer({} values, {:?})", self.values, self.kind)
    }
}

impl SharedBuffer {
    /// Allocates at least `values` values, whole alignments; `None` where the device has no memory.
    pub(crate) fn allocate(
        session: &Arc<Session>,
        kind: SharedKind,
        values: usize,
    ) -> Option<SharedBuffer> {
        let bytes =
            values.checked_mul(size_of::<f32>())?.max(1).checked_next_multiple_of(ALIGNMENT)?;
        if bytes as u64 > session.info.buffer_max {
            return None;
        }
        let (memory, first) = match kind {
            SharedKind::FineGrain => session.fine_grain(bytes)?,
            SharedKind::Mapped => session.mapped(bytes)?,
        };
        let buffer = Some(Buffer { memory, bytes, address: OnceLock::new() });
        let values = bytes / size_of::<f32>();
        Some(SharedBuffer { buffer, first, values, kind, session: Arc::clone(session) })
    }

    /// The buffer for commands.
    pub(crate) fn buffer(&self) -> &Buffer {
        match &self.buffer {
            Some(buffer) => buffer,
            None => unreachable!("it is taken on drop only"),
        }
    }

    /// Its first word, which a kernel may write at any time.
    pub(crate) fn word(&self) -> &AtomicU32 {
        // SAFETY: the memory has that word, aligned, while this object lives, and is accessed as an atomic here only.
        unsafe { AtomicU32::from_ptr(self.first.as_ptr().cast()) }
    }

    /// Whether commands of a session may use it.
    pub(crate) fn is_of(&self, session: &Session) -> bool {
        self.session.is_beside(session)
    }
}

impl Drop for SharedBuffer {
    /// No command that was added uses it any more, because a run holds its memory until it has ended. After a loss
    /// that is unknown, and the memory is not freed.
    fn drop(&mut self) {
        let buffer = self.buffer.take();
        if self.session.is_lost() {
            std::mem::forget(buffer);
            return;
        }
        let pointer = self.first.as_ptr().cast();
        match self.kind {
            SharedKind::FineGrain => {
                drop(buffer);
                // SAFETY: it was allocated in this context, no command uses it, and nothing refers to it now.
                _ = unsafe { memory::svm_free(self.session.context.object, pointer) };
            }
            SharedKind::Mapped => {
                let Some(buffer) = buffer else { return };
                let (queue, object) = (self.session.queue(Lane::Transfer), buffer.memory.object);
                // SAFETY: the pointer is that of the one mapping.
                let unmapped = unsafe {
                    command_queue::enqueue_unmap_mem_object(queue, object, pointer, 0, null())
                };
                _ = unmapped
                    .map(|event| Handle { object: event, release: cl3::event::release_event });
                _ = command_queue::finish(queue);
            }
        }
    }
}

impl Session {
    /// A buffer over fine-grained shared virtual memory, and its address.
    fn fine_grain(&self, bytes: usize) -> Option<(Handle, NonNull<f32>)> {
        let context = self.context.object;
        let flags = memory::CL_MEM_READ_WRITE | memory::CL_MEM_SVM_FINE_GRAIN_BUFFER;
        // SAFETY: the flags are valid, and the device has such memory.
        let pointer = unsafe { memory::svm_alloc(context, flags, bytes, ALIGNMENT as u32) }.ok()?;
        let first = NonNull::new(pointer.cast::<f32>())?;
        let flags = memory::CL_MEM_READ_WRITE | memory::CL_MEM_USE_HOST_PTR;
        // SAFETY: `pointer` has `bytes` bytes, which outlive the buffer.
        let buffer = unsafe { memory::create_buffer(context, flags, bytes, pointer) };
        let Ok(object) = buffer else {
            // SAFETY: nothing uses it.
            _ = unsafe { memory::svm_free(context, pointer) };
            return None;
        };
        Some((Handle { object, release: memory::release_mem_object }, first))
    }

    /// A buffer in memory that the driver lets the host map, and its address while it is mapped.
    fn mapped(&self, bytes: usize) -> Option<(Handle, NonNull<f32>)> {
        let flags = memory::CL_MEM_READ_WRITE | memory::CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: no host memory is passed.
        let object =
            unsafe { memory::create_buffer(self.context.object, flags, bytes, null_mut()) }.ok()?;
        let handle = Handle { object, release: memory::release_mem_object };
        let (queue, flags) =
            (self.queue(Lane::Transfer), memory::CL_MAP_READ | memory::CL_MAP_WRITE);
        let mut pointer = null_mut();
        // SAFETY: the buffer has `bytes` bytes.
        let event = unsafe {
            command_queue::enqueue_map_buffer(
                queue,
                object,
                1,
                flags,
                0,
                bytes,
                &mut pointer,
                0,
                null(),
            )
        };
        drop(Handle { object: event.ok()?, release: cl3::event::release_event });
        let first = NonNull::new(pointer.cast::<f32>())?;
        first.is_aligned().then_some((handle, first))
    }
}

/// The values of a shared buffer, of which there is one owner on the host.
#[derive(Debug)]
pub(crate) struct SharedSlot(Arc<SharedBuffer>);

impl SharedSlot {
    pub(crate) fn new(buffer: SharedBuffer) -> SharedSlot {
        SharedSlot(Arc::new(buffer))
    }

    /// The buffer.
    pub(crate) fn shared(&self) -> &Arc<SharedBuffer> {
        &self.0
    }
}

impl MappedMemory for SharedSlot {
    fn values(&self) -> &[f32] {
        // SAFETY: the memory has that many values, aligned, and any bits are a value. This object alone gives the
        // host access to it. A run that writes to all of it owns it until it has ended; of KV pages, a run writes
        // rows that no stage reads before the run has ended.
        unsafe { std::slice::from_raw_parts(self.0.first.as_ptr(), self.0.values) }
    }

    fn values_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.first.as_ptr(), self.0.values) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Copies shared buffers by a kernel.
#[derive(Debug)]
pub(crate) struct Copier(Kernel);

impl Copier {
    /// Compiles the kernel.
    pub(crate) fn new(session: &Session) -> Result<Copier, OpenClError> {
        let source = "kernel void copy_values(global const float *from, global float *to)\n\
                      { size_t at = get_global_id(0); to[at] = from[at]; }";
        let program = session.program_of_source(source, "probe of shared memory", "")?;
        Ok(Copier(session.kernel(&program, "copy_values")?))
    }

    /// Copies all values, and waits.
    ///
    /// # Panics
    /// If the sizes differ.
    pub(crate) fn copy(
        &mut self,
        session: &Session,
        from: &SharedBuffer,
        to: &SharedBuffer,
    ) -> Result<(), OpenClError> {
        self.add(session, from, to)?;
        let end = session.marker()?;
        session.flush()?;
        end.wait().map_err(|code| session.error("clWaitForEvents", code))
    }

    /// Adds the copying of all values to the compute queue.
    ///
    /// # Panics
    /// If the sizes differ.
    pub(crate) fn add(
        &mut self,
        session: &Session,
        from: &SharedBuffer,
        to: &SharedBuffer,
    ) -> Result<(), OpenClError> {
        assert_eq!(from.values, to.values, "buffers of different sizes");
        // Their sizes are multiples of an alignment, which has this many values.
        let local = (ALIGNMENT / size_of::<f32>()).min(self.0.group_max.max(1));
        let local = 1 << local.ilog2();
        let range = Range { groups: [from.values / local, 1, 1], local: [local, 1, 1] };
        let args = [Arg::Buffer(from.buffer()), Arg::Buffer(to.buffer())];
        // SAFETY: the kernel's parameters; each of `values` items reads and writes one value.
        unsafe { session.launch(&mut self.0, &args, range) }
    }
}

/// Writes a number to the first word of a shared buffer.
#[derive(Debug)]
pub(crate) struct Marker(Kernel);

impl Marker {
    /// Compiles the kernel.
    pub(crate) fn new(session: &Session) -> Result<Marker, OpenClError> {
        let source = "kernel void mark(global volatile int *word, int number) { *word = number; }";
        let program = session.program_of_source(source, "flag of a run", "")?;
        Ok(Marker(session.kernel(&program, "mark")?))
    }

    /// Adds the writing of a number to the compute queue.
    pub(crate) fn add(
        &mut self,
        session: &Session,
        word: &SharedBuffer,
        number: u32,
    ) -> Result<(), OpenClError> {
        let args = [Arg::Buffer(word.buffer()), Arg::Int(number.cast_signed())];
        let one = Range { groups: [1; 3], local: [1; 3] };
        // SAFETY: the kernel's parameters; it writes 4 bytes.
        unsafe { session.launch(&mut self.0, &args, one) }
    }
}
