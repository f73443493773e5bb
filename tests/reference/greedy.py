"""Prints one greedy/*.json: llama.cpp's greedy run of some prompts, and how steady it is.

usage: python3 greedy.py WORK_FOLDER MODEL.gguf PROMPTS.json SETTING... > greedy/NAME.json

The run under llama.cpp's default settings is the reference. Every prompt then carries, for each
other setting of llama.cpp itself, where its ids leave the reference and how far the logits of the
first position lie apart. A prompt is "steady" when no setting leaves it at a step whose two best
logits are more than CLOSE apart: only there may another correct engine be held to the ids.
Keys and values in bfloat16 are a setting apart: it is coarser than the default.
"""

import json
import subprocess
import sys
from pathlib import Path

STEPS = 64
CLOSE = 0.05
SETTINGS = {
    "no_flash": ["--no-flash"],
    "one_by_one": ["--batch", "1"],
    "no_repack": ["--no-repack"],
    "precise": ["--no-flash", "--kv-f32", "--no-repack"],
}


def generate(reference: Path, model: Path, prompts: str, options: list[str]) -> dict:
    """One run of all prompts with every logit of the first position."""
    command = [str(reference), *options, "generate", str(model), prompts, str(STEPS), "full"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compare(base: dict, other: dict) -> dict:
    """Where `other`'s ids leave `base`'s, and the distance of the first logits."""
    leaves = next((i for i in range(STEPS) if base["ids"][i] != other["ids"][i]), None)
    best, second = base["steps"][leaves][:2] if leaves is not None else (None, None)
    left, right = base["first"]["logits"], other["first"]["logits"]
    apart = [abs(a - b) for a, b in zip(left, right)]
    return {
        "leaves_at": leaves,
        "gap_there": None if leaves is None else round(best[1] - second[1], 5),
        "first_max": round(max(apart), 5),
        "first_mean": round(sum(apart) / len(apart), 5),
        "first_max_of_top_10": round(max(apart[token] for token, _ in base["first"]["top"][:10]), 5),
    }


def main() -> None:
    """Runs the settings named, and F32 weights, and prints the merged result."""
    work, model, prompts = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    reference = work / "reference"
    base = generate(reference, model, prompts, [])
    runs = {name: generate(reference, model, prompts, SETTINGS[name]) for name in sys.argv[4:]}
    whole = work / f"{model.stem}-f32.gguf"
    if not whole.exists():
        quantize = str(work / "llama.cpp" / "build" / "bin" / "llama-quantize")
        subprocess.run([quantize, "--allow-requantize", "--pure", str(model), str(whole), "F32", "2"],
                       check=True, capture_output=True)
    runs["f32_weights"] = generate(reference, whole, prompts, ["--no-flash", "--kv-f32"])
    coarse = generate(reference, model, prompts, ["--kv-bf16"])
    for index, prompt in enumerate(base["prompts"]):
        others = {name: compare(prompt, run["prompts"][index]) for name, run in runs.items()}
        gaps = [other["gap_there"] for other in others.values() if other["leaves_at"] is not None]
        prompt["steady"] = all(gap <= CLOSE for gap in gaps)
        prompt["others"] = others
        prompt["kv_bf16"] = compare(prompt, coarse["prompts"][index])
    for prompt in base["prompts"]:
        del prompt["first"]["logits"]
    lines = []
    for prompt in base["prompts"]:
        fields = [f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"
                  for key, value in prompt.items()]
        lines.append("{" + ",\n".join(fields) + "}")
    print(f'{{"vocab_size":{base["vocab_size"]},"close":{CLOSE},"prompts":[\n' + ",\n".join(lines) + "\n]}")


main()
