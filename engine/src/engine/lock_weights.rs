//! Settings of an engine that concern its packed weights: where they are cached, where they are while they are in use, and whether they
//! stay in memory.

use std::path::PathBuf;

use lapwing_kernels::cpu::PackedMemory;

#[cfg(doc)]
use super::Engine;
use super::EngineBuilder;

impl EngineBuilder {
    /// Caches packed CPU weights in a folder, one file for each model. The next start uses the file
    /// instead of packing, which is faster. By default nothing is cached. A file that is damaged or outdated is replaced, and [`Engine::packed_weights`] reports
    /// it.
    ///
    /// A weight file is identified by its size, modification times and inode number, and by checksums
    /// over its metadata and over blocks of its data. The cached file is verified completely: each time that it is read, and once if it is
    /// mapped ([`packed_memory`](EngineBuilder::packed_memory)). Only trusted users may have write access to the folder, because checksums do not detect
    /// tampering.
    pub fn packed_cache(mut self, folder: impl Into<PathBuf>) -> EngineBuilder {
        self.settings.packed_cache = Some(folder.into());
        self
    }

    /// Maximum total size in bytes of the folder of [`packed_cache`](EngineBuilder::packed_cache), by
    /// default 16 GiB, or as much as a model needs whose weights are larger than memory. The least recently used files are removed first.
    pub fn packed_cache_max(mut self, bytes: u64) -> EngineBuilder {
        self.settings.packed_cache_max = Some(bytes);
        self
    }

    /// Where the weights of the [`packed_cache`](EngineBuilder::packed_cache) are while the engine uses them. By default
    /// their file is mapped: processes share them, and a start reads no more of a file than its header, unless it was not
    /// checked before. Where the system cannot hold back a program that is about to change a mapped file, they are read into memory
    /// of the process; [`Engine::packed_weights`] says why, and if this setting asks for a mapped file, also a note there.
    ///
    /// Weights that are larger than the memory that is free, in this machine or in the control group of the process, are only used from a
    /// mapped file: hot parts stay in memory, and others are read from the disk when they are used. [`Engine::notes`] says so. The
    /// engine cannot be built if that is not possible, or if this setting says otherwise.
    pub fn packed_memory(mut self, memory: PackedMemory) -> EngineBuilder {
        self.settings.packed_memory = Some(memory);
        self
    }

    /// Locks the packed weights in memory, so that the system neither swaps them out nor drops pages of a mapped file (`mlock`). The engine
    /// cannot be built if the system refuses, for example because of its limit on locked memory
    /// (`ulimit -l`). Weights in a device's own memory are not affected; [`Engine::notes`] says so if there
    /// are no others.
    pub fn lock_weights(mut self) -> EngineBuilder {
        self.settings.lock_weights = true;
        self
    }
}
