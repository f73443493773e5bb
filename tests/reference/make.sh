#!/bin/sh
# Makes every reference output again, in place.
#
# usage: make.sh WORK_FOLDER SMOLLM2.gguf GEMMA3.gguf     (after build.sh WORK_FOLDER)
set -eu
[ $# -eq 3 ] || { sed -n '2,4p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(cd "$1" && pwd)
smollm2=$(realpath "$2")
gemma3=$(realpath "$3")
cd "$here"
export PYTHONDONTWRITEBYTECODE=1
# The results stay the same, and a busy machine does not slow the run down tenfold.
export OMP_WAIT_POLICY=PASSIVE
reference=$work/reference
python=$work/venv/bin/python
mkdir -p greedy tokenizer/pieces tiny

"$python" strings.py > tokenizer/strings.json
"$reference" tokenize "$smollm2" tokenizer/strings.json > tokenizer/smollm2.json
"$reference" tokenize "$gemma3" tokenizer/strings.json > tokenizer/gemma3.json
"$reference" pieces "$smollm2" > tokenizer/pieces/smollm2.json
"$reference" pieces "$gemma3" > tokenizer/pieces/gemma3.json
for name in aquila baichuan command-r deepseek-coder deepseek-llm falcon gemma-4 gpt-2 gpt-neox llama-bpe \
    llama-spm mpt nomic-bert-moe phi-3 qwen2 qwen35 refact starcoder; do
    "$reference" pieces "$work/llama.cpp/models/ggml-vocab-$name.gguf" > "tokenizer/pieces/$name.json"
    "$reference" tokenize "$work/llama.cpp/models/ggml-vocab-$name.gguf" tokenizer/strings.json > "tokenizer/$name.json"
done
"$python" word_rules.py "$work" > tokenizer/word_rules.json

"$python" greedy.py "$work" "$smollm2" prompts/smollm2.json no_flash one_by_one precise > greedy/smollm2.json
"$python" greedy.py "$work" "$gemma3" prompts/gemma3.json no_flash one_by_one no_repack > greedy/gemma3.json

"$python" perplexity.py "$work" "$smollm2" "$gemma3" > perplexity.json
rm -f tiny/*.gguf tiny/*.json
"$python" tiny_models.py tiny "$reference" "$work/llama.cpp/build/bin/llama-quantize"
"$python" families.py tiny "$work"
"$python" kv_bf16.py "$reference"
"$python" tiny_variants.py > tiny/variants.exact
"$python" -m pip install --quiet jinja2==3.1.6
"$python" jinja.py > jinja.json
