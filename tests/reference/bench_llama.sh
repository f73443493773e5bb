#!/bin/sh
# Measures llama.cpp's speed and prints llama-bench's JSON, one array per model.
#
# usage: bench_llama.sh WORK_FOLDER MODEL.gguf...     (after build.sh WORK_FOLDER)
#
# 512 prompt tokens and 128 generated ones, 2 threads, 5 repetitions, flash attention on; the
# numbers to read are avg_ts and samples_ts, in tokens per second. Nothing else may run meanwhile:
# llama.cpp's threads spin at their barriers, and one busy core costs it up to ten times.
set -eu
[ $# -ge 2 ] || { sed -n '2,9p' "$0"; exit 2; }
bin=$1/llama.cpp/build/bin
shift
for model in "$@"; do
    LD_LIBRARY_PATH=$bin "$bin/llama-bench" -m "$model" -p 512 -n 128 -t 2 -r 5 -fa 1 -o json
done
