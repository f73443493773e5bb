#!/bin/sh
# Builds llama.cpp, reference.c, shapes.c and predictor.cpp.
#
# usage: build.sh WORK_FOLDER
#
# Needs a C and C++ compiler and Python 3.11 or later with venv; on Debian:
#   apt-get install build-essential python3-venv
# Leaves in WORK_FOLDER: reference, shapes and predictor (our programs), test-archs (llama.cpp's test of
# architectures), llama.cpp/ (sources, and build/bin/ with llama-bench, llama-perplexity and
# llama-quantize) and venv/ (numpy and gguf). What is there already is kept, so a second run is quick.
set -eu
[ $# -eq 1 ] || { sed -n '2,10p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)

[ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet numpy==2.3.5 gguf==0.19.0 cmake==3.31.6 ninja==1.11.1.4
PATH=$work/venv/bin:$PATH

sh "$here/fetch.sh" "$work"
llama=$work/llama.cpp
if [ ! -f "$llama/build/build.ninja" ]; then
    cmake -S "$llama" -B "$llama/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=ON \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=ON -DLLAMA_BUILD_UI=OFF -DLLAMA_BUILD_MTMD=OFF \
        -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF
fi
ninja -C "$llama/build" llama llama-common llama-bench llama-batched-bench llama-perplexity llama-quantize

bin=$llama/build/bin
for program in reference shapes; do
    cc -std=c11 -O2 -Wall -Wextra -Werror -I"$llama/include" -I"$llama/ggml/include" "$here/$program.c" \
        -o "$work/$program" -L"$bin" -lllama -lggml -lggml-base -lm "-Wl,-rpath,$bin" "-Wl,-rpath-link,$bin"
    echo "built $work/$program"
done
c++ -std=c++17 -O1 -I"$llama/include" -I"$llama/ggml/include" -I"$llama/common" -I"$llama/src" -I"$llama/vendor" \
    "$here/predictor.cpp" -o "$work/predictor" -L"$bin" -lllama-common -lllama -lggml -lggml-base -lggml-cpu \
    "$llama/build/common/libllama-common-base.a" "-Wl,-rpath,$bin" "-Wl,-rpath-link,$bin"
echo "built $work/predictor"
c++ -std=c++17 -O1 -I"$llama/include" -I"$llama/ggml/include" -I"$llama/common" -I"$llama/src" -I"$llama/vendor" \
    "$llama/tests/test-llama-archs.cpp" -o "$work/test-archs" -L"$bin" -lllama-common -lllama -lggml -lggml-base -lggml-cpu \
    "$llama/build/common/libllama-common-base.a" "-Wl,-rpath,$bin" "-Wl,-rpath-link,$bin"
echo "built $work/test-archs"
