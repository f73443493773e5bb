#!/bin/sh
# Makes the files of legacy/ and their references with three versions of llama.cpp of May 2023.
#
# usage: legacy.sh WORK_FOLDER
#
# Needs a C and C++ compiler for x86-64 with AVX2, and Python 3.11 or later with pip. llama.cpp comes from
# the source archives of the Python package llama-cpp-python: 0.1.48 reads GGML, GGMF and GGJT v1, 0.1.50
# reads GGJT v2, and 0.1.53 reads GGJT v3.
set -eu
[ $# -eq 1 ] || { sed -n '2,8p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

flags="-O1 -w -mavx2 -mfma -mf16c"
for pair in v1:0.1.48 v2:0.1.50 v3:0.1.53; do
    program=legacy-${pair%%:*} release=${pair#*:}
    sources=llama_cpp_python-$release/vendor/llama.cpp
    [ -x "$program" ] && continue
    [ -f "llama_cpp_python-$release.tar.gz" ] \
        || pip download --quiet --no-deps --no-binary llama-cpp-python "llama-cpp-python==$release"
    tar xzf "llama_cpp_python-$release.tar.gz"
    # A model of one layer gets the buffers of the model with 7 billion parameters.
    sed -i 's/case 32: model.type/case 1: case 32: model.type/' "$sources/llama.cpp"
    # shellcheck disable=SC2086
    cc $flags -c "$sources/ggml.c" -o ggml.o
    # shellcheck disable=SC2086
    c++ -std=c++11 $flags -c "$sources/llama.cpp" -o llama.o
    # shellcheck disable=SC2086
    cc $flags -I"$sources" -c "$here/legacy.c" -o legacy.o
    c++ legacy.o llama.o ggml.o -o "$program" -lpthread
done
python3 "$here/legacy.py" "$here/legacy" .
