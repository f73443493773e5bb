"""Compares Lapwing with llama.cpp on the random models that llama.cpp's own test writes, one of each architecture.

usage: python3 architectures.py LAPWING REFERENCE TEST_ARCHS [--seeds N] [--only REGEX] [--prompts N,...] [--serve OPTIONS]
       python3 architectures.py LAPWING REFERENCE --models FILE.gguf... [--prompts N,...] [--serve OPTIONS]

LAPWING is the program, REFERENCE and TEST_ARCHS are built by build.sh. Each model is compared as it is; without the factors of
its matrices, of which llama.cpp's graphs of most architectures leave out some; and retuned, so that every op matters: matrices
N(0, 1/sqrt(in)), those of queries and keys times 3, norms 1 + 0.2·N, biases 0.5·N. After each prompt (of 1, 17 and 70 ids) 16 greedy
ids must be llama.cpp's but where its two best logits are nearly equal, and the five best log-probabilities must be within the
tolerance. A model that Lapwing refuses must be refused by name. OPTIONS are more options of the server, such as
`--chunk 48 --draft lookup`. Prompts longer than a model's context are only for the files that are written anew. The second form compares
files as they are, with contexts that are long enough, such as those of the folder tiny.

Seven differ for reasons of the files: `pangu-embedded`, `refact`, `ernie4_5-moe` and `falcon-h1` have factors of frequencies or biases that
llama.cpp reads and does not use, `qwen2vl` has sections of rotary dimensions for a fourth position, which texts do not have, `cogvlm` has fewer
rotary dimensions than a head, of which llama.cpp rotates all, and `baichuan` has neither 32 layers, which rotate in llama.cpp, nor 40.
"""

import argparse
import json
import math
import random
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from copies import begun, finish

STEPS = 16
# Two logits of llama.cpp that are closer than this may come in any order.
CLOSE = 1e-3
# Largest difference of log-probabilities: llama.cpp's GELU comes from a table of f16 values.
TOLERANCE = 3e-3
PRECISE = ["--no-flash", "--kv-f32", "--no-repack", "--threads", "1"]


def wide(context: int) -> Callable[[str, Any], Any]:
    """Metadata with that context at least."""
    return lambda name, value: max(value, context) if name.endswith(".context_length") else value


def rewrite(source: Path, target: Path, is_retuned: bool, context: int) -> None:
    """Writes a model with the same shapes, without factors of weights, and with that context at least; retuned, its values make every op
    matter."""
    reader = gguf.GGUFReader(source)
    writer = begun(reader, target, wide(context))
    rng = np.random.default_rng(zlib.crc32(source.name.encode()))
    for tensor in reader.tensors:
        if re.search(r"\.(input_)?scale$|^cls\.", tensor.name):
            continue
        shape = tensor.data.shape
        noise = rng.standard_normal(shape)
        if not is_retuned:
            values = tensor.data
        elif tensor.name.endswith(".bias"):
            values = 0.5 * noise
        elif tensor.name.endswith("ssm_a"):
            values = -np.exp(0.5 * noise)
        elif "norm" in tensor.name or len(shape) == 1:
            values = 1 + 0.2 * noise
        else:
            values = noise / math.sqrt(shape[-1]) * gain(tensor.name)
        writer.add_tensor(tensor.name, values.astype(np.float32))
    finish(writer)


def gain(name: str) -> float:
    if name.startswith(("token_embd", "output.")):
        return 2.5
    return 3.0 if re.search(r"attn_[qk]\.|ffn_gate_inp", name) else 1.0


def logits(reference: str, model: Path, ids: list[int], rows: list[int]) -> np.ndarray:
    """llama.cpp's logits at those positions."""
    texts = [",".join(map(str, numbers)) for numbers in (ids, rows)]
    context = ["--context", str(max(256, len(ids)))]
    run = subprocess.run([reference, *PRECISE, *context, "logits", str(model), *texts], capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        raise RuntimeError(f"llama.cpp: {(run.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return np.array(json.loads(run.stdout)["rows"], dtype=np.float64)


class Server:
    """A running server of one model."""

    def __init__(self, program: str, model: Path, options: list[str]) -> None:
        shown = subprocess.run([program, "inspect", str(model)], capture_output=True, text=True, timeout=60)
        for line in [*shown.stdout.splitlines(), *shown.stderr.splitlines()]:
            if line.startswith(("cannot run: ", "error: ")):
                raise RuntimeError(line.split(": ", 1)[1].split("; supported are")[0])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        listen = f"127.0.0.1:{self.port}"
        command = [program, "serve", "-m", str(model), "--exact", "--kv", "f32", "-t", "2", "--log", "off", "--listen", listen, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            try:
                urllib.request.urlopen(f"http://{listen}/health", timeout=5).read()
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.02)
        self.process.kill()
        raise RuntimeError(self.process.stderr.read().strip().splitlines()[0])

    def complete(self, ids: list[int]) -> dict:
        body = {"prompt": ids, "max_tokens": STEPS, "temperature": 0, "logprobs": 5, "ignore_eos": True}
        body |= {"return_token_ids": True, "return_tokens_as_token_ids": True}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["choices"][0]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["error"]["message"]) from error

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.process.stderr.close()


def compare(server: Server, reference: str, model: Path, prompt: list[int]) -> str:
    """What differs after a prompt; empty if nothing does."""
    choice = server.complete(prompt)
    ids = choice["token_ids"]
    if len(ids) != STEPS:
        return f"{len(ids)} ids in place of {STEPS}"
    rows = logits(reference, model, prompt + ids[:-1], list(range(len(prompt) - 1, len(prompt) + STEPS - 1)))
    wrong = ""
    for step, (row, chosen, found) in enumerate(zip(rows, ids, choice["logprobs"]["top_logprobs"])):
        row -= row.max() + math.log(np.exp(row - row.max()).sum())
        if row.max() - row[chosen] > CLOSE:
            return f"id {step} after {len(prompt)} is {chosen}, by {row.max() - row[chosen]:.2g} less likely"
        error = max(abs(row[int(token.removeprefix("token_id:"))] - value) for token, value in found.items())
        if not error <= TOLERANCE:
            wrong = wrong or f"log-probability {step} after {len(prompt)} differs by {error:.2g}"
    return wrong


def result(options: argparse.Namespace, model: Path, vocabulary: int) -> str:
    try:
        server = Server(options.lapwing, model, shlex.split(options.serve))
    except RuntimeError as error:
        return f"refused: {error}"[:150]
    try:
        for length in options.prompts:
            dice = random.Random(f"{model.name} {length}")
            prompt = [dice.randrange(vocabulary) for _ in range(length)]
            if wrong := compare(server, options.reference, model, prompt):
                return f"WRONG: {wrong}"
        return "equal"
    except RuntimeError as error:
        return f"FAILED: {error}"[:150]
    finally:
        server.stop()


def widened(source: Path, target: Path, context: int) -> int:
    """Writes a model with that context at least; returns the size of its vocabulary."""
    reader = gguf.GGUFReader(source)
    writer = begun(reader, target, wide(context))
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    finish(writer)
    return next(int(tensor.shape[1]) for tensor in reader.tensors if tensor.name == "token_embd.weight")


def compare_files(options: argparse.Namespace) -> bool:
    """Whether one of the given files differs."""
    print("| model | result |\n|---|---|", flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for source in options.models:
            target = Path(folder) / source.name
            vocabulary = widened(source, target, max(options.prompts) + STEPS)
            found = result(options, target, vocabulary)
            failed |= found.startswith(("WRONG", "FAILED"))
            print(f"| {source.stem} | {found} |", flush=True)
            target.unlink()
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lapwing")
    parser.add_argument("reference")
    parser.add_argument("test_archs", nargs="?")
    parser.add_argument("--models", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--prompts", type=lambda text: [int(number) for number in text.split(",")], default=[1, 17, 70])
    parser.add_argument("--serve", default="")
    options = parser.parse_args()
    if options.models:
        sys.exit(compare_files(options))
    failed = False
    print("| model | " + " | ".join(f"seed {seed + 1} | without factors | retuned" for seed in range(options.seeds)) + " |")
    print("|---" * (1 + 3 * options.seeds) + "|", flush=True)
    results: dict[str, list[str]] = {}
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            command = [options.test_archs, "-o", f"{folder}/", "-s", str(seed + 1)]
            subprocess.run([*command, *(["-a", options.only] if options.only else [])], check=True, capture_output=True)
            for model in sorted(Path(folder).glob("*.gguf")):
                reader = gguf.GGUFReader(model)
                arch = str(reader.fields["general.architecture"].contents())
                vocabulary = int(reader.fields[f"{arch}.vocab_size"].contents())
                tuned = model.with_name(f"{model.stem}-tuned.gguf")
                found = [result(options, model, vocabulary)]
                for is_retuned in (False, True):
                    if found[0].startswith("refused"):
                        found.append("refused")
                        continue
                    rewrite(model, tuned, is_retuned, max(options.prompts) + STEPS)
                    found.append(result(options, tuned, vocabulary))
                    tuned.unlink()
                results.setdefault(model.stem, []).extend(found)
                failed |= any(text.startswith(("WRONG", "FAILED")) for text in found[1:])
                print(f"<!-- seed {seed} {model.stem}: {found} -->", file=sys.stderr, flush=True)
    for name, found in results.items():
        print(f"| {name} | " + " | ".join(found) + " |")
    counts = {kind: sum(all(text.startswith(kind) for text in found) for found in results.values())
              for kind in ("equal", "refused")}
    print(f"\n{len(results)} models: {counts['equal']} equal, {counts['refused']} refused")
    sys.exit(failed)


if __name__ == "__main__":
    main()
