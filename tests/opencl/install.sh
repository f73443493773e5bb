#!/bin/sh
# Installs two OpenCL drivers that run on any x86-64 CPU: PoCL (a Debian package) and Intel's CPU runtime
# (Python wheels of about 270 MB); and Oclgrind (a Debian package), a simulator that checks accesses to memory.
#
# usage: install.sh FOLDER
#
# The wheels go into FOLDER/intel. A program uses PoCL by default, and Intel's runtime with
# OPENCL_DYLIB_PATH=FOLDER/intel/lib/libintelocl.so.
set -eu
[ $# -eq 1 ] || { sed -n '2,10p' "$0"; exit 2; }
here=$(dirname "$0")
mkdir -p "$1"
folder=$(cd "$1" && pwd)

if [ ! -e /etc/OpenCL/vendors/pocl.icd ] || ! ldconfig -p | grep -q 'libOpenCL\.so\.1'; then
    sh "$here/../apt.sh" pocl-opencl-icd ocl-icd-libopencl1
fi
if ! command -v oclgrind-kernel >/dev/null; then
    sh "$here/../apt.sh" oclgrind
fi
if [ ! -e "$folder/intel/lib/libintelocl.so" ]; then
    python3 -m venv "$folder/intel"
    # The compiler's libraries are needed, though the runtime's package does not name them.
    "$folder/intel/bin/pip" install --quiet --no-compile --disable-pip-version-check \
        intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0
    # Wheels have no links: libraries are there once under each of their names. The plug-in for linkers is not needed.
    rm -f "$folder/intel/lib/icx-lto.so"
    for library in "$folder"/intel/lib/*.so; do
        for name in "$library".*; do
            if cmp -s "$library" "$name"; then
                ln -f "$library" "$name"
            fi
        done
    done
fi
