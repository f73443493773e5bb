"""Prints perplexity.json: both models over text16k.txt, by our count and by llama-perplexity, and over
text148k.txt by the latter alone.

usage: python3 perplexity.py WORK_FOLDER SMOLLM2.gguf GEMMA3.gguf     (after greedy.py, whose F32 copies it uses)
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

TEXT = "text16k.txt"
LONG_TEXT = "text148k.txt"
WINDOW = 512
SETTINGS = {
    "default": [],
    "no_flash": ["--no-flash"],
    "no_repack": ["--no-repack"],
    "precise": ["--no-flash", "--kv-f32", "--no-repack"],
}


def llama_perplexity(bin_folder: Path, model: str, text: str) -> dict:
    """What llama.cpp's own program prints: the final value and the running one per window."""
    command = [str(bin_folder / "llama-perplexity"), "-m", model, "-f", text, "-c", str(WINDOW), "-t", "2", "-fa", "on"]
    environment = os.environ | {"LD_LIBRARY_PATH": str(bin_folder)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    printed = done.stdout + done.stderr
    return {
        "perplexity": float(re.search(r"PPL = ([0-9.]+)", printed)[1]),
        "running": [float(value) for value in re.findall(r"\[\d+\]([0-9.]+),", printed)],
    }


def main() -> None:
    """Runs every setting for both models."""
    work = Path(sys.argv[1])
    results = {"text": TEXT, "window": WINDOW, "long_text": LONG_TEXT, "models": {}}
    for name, model in [("smollm2", sys.argv[2]), ("gemma3", sys.argv[3])]:
        runs = {}
        whole = str(work / f"{Path(model).stem}-f32.gguf")
        settings = {setting: (model, options) for setting, options in SETTINGS.items()}
        settings["f32_weights"] = (whole, ["--no-flash", "--kv-f32"])
        for setting, (file, options) in settings.items():
            command = [str(work / "reference"), *options, "perplexity", file, TEXT, str(WINDOW)]
            runs[setting] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        programs = work / "llama.cpp" / "build" / "bin"
        own = llama_perplexity(programs, model, TEXT)
        if abs(own["perplexity"] / runs["default"]["perplexity"] - 1) > 1e-4:
            sys.exit(f"{name}: llama-perplexity says {own['perplexity']}, we count {runs['default']['perplexity']}")
        long = llama_perplexity(programs, model, LONG_TEXT)
        results["models"][name] = {**runs, "llama_perplexity": own, "llama_perplexity_long": long}
    print(json.dumps(results, indent=1))


main()
