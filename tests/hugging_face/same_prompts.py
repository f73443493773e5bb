"""Compares prompts of conversations: those of `lapwing serve`, and those that `transformers` makes with the exported chat template.

usage: same_prompts.py LAPWING MODEL.gguf [TEMPLATE.jinja...]

MODEL is used with its own template, and tests/reference/tiny/llama.gguf with each TEMPLATE. Compared are texts and numbers of ids. Notes
are no failures: conversations on which a template fails in `transformers` only, and functions that Lapwing writes where a template
has no place for them (docs/templates.md).
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
import transformers

TINY = pathlib.Path(__file__).parent / "../reference/tiny/llama.gguf"
USER, ANSWER = {"role": "user", "content": "Why is the sky blue?"}, {"role": "assistant", "content": "Because of Rayleigh."}
SYSTEM = {"role": "system", "content": "Answer in German.\n"}
CONVERSATIONS = [
    [USER],
    [SYSTEM, USER],
    [USER, ANSWER, {"role": "user", "content": " Ünïcödé 日本語 \"quoted\" {{ x }} \n"}],
    [SYSTEM, USER, ANSWER, USER, ANSWER, USER],
]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather of a place", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "A town"}}, "required": ["place"]}}}]


def with_template(template: str, path: pathlib.Path) -> None:
    """Writes the small model with a template, padded with spaces so that its data stays aligned."""
    whole, key = TINY.read_bytes(), b"tokenizer.chat_template"
    source = template.encode()
    length = 8 + len(key) + 4 + 8 + len(source)
    source += b" " * (-length % 32)
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<I", 8) + struct.pack("<Q", len(source)) + source
    pairs = struct.unpack("<Q", whole[16:24])[0]
    path.write_bytes(whole[:16] + struct.pack("<Q", pairs + 1) + entry + whole[24:])


def answer(url: str, body: dict) -> dict:
    """What the server answers; an error is its object."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


def compare(url: str, model: str, tokenizer) -> tuple[int, list[str], list[str]]:
    """Number of equal prompts, a line for each difference, and notes."""
    equal, lines, notes = 0, [], []
    cases = [(messages, None) for messages in CONVERSATIONS]
    if "tools" in str(tokenizer.chat_template):
        cases.append(([USER], TOOLS))
    for messages, tools in cases:
        body = {"model": model, "messages": messages} | ({"tools": tools} if tools else {})
        prompt = answer(f"{url}/apply-template", body).get("prompt")
        try:
            wanted = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=True)
            ids = tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=False)
        except Exception as error:
            wanted, ids = None, str(error)
        # What the exported template adds is added by encoding here.
        begin = tokenizer.bos_token or ""
        same_text = prompt == wanted or (prompt is not None and wanted == begin + prompt)
        if not same_text:
            what = f"{len(messages)} messages, functions {bool(tools)}"
            if wanted is None:
                notes.append(f"{what}: transformers fails: {ids:.200}")
            elif tools:
                notes.append(f"{what}: other text")
            else:
                lines.append(f"{what}: {prompt!r:.600} for {wanted!r:.600}")
            continue
        if wanted is None:
            continue
        used = answer(f"{url}/v1/chat/completions", body | {"max_tokens": 1}).get("usage", {}).get("prompt_tokens")
        # The small model has a short context, in which not every prompt fits.
        if used in (None, len(ids)):
            equal += 1
        else:
            lines.append(f"{len(messages)} messages: {used} tokens for {len(ids)}")
    return equal, lines, notes


def main() -> None:
    """Starts a server with all models, and compares each."""
    lapwing, model, *templates = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        models = {"own": model}
        for path in map(pathlib.Path, templates):
            models[path.stem.replace(" ", "-")] = file = pathlib.Path(folder, f"{len(models)}.gguf")
            with_template(path.read_text(), file)
        options = [option for name, file in models.items() for option in ("-m", f"{name}={file}")]
        command = [lapwing, "serve", *options, "--json", "--log", "off", "-t", "1", "--listen", "127.0.0.1:0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        failed = compared = 0
        try:
            url = "http://" + json.loads(server.stdout.readline())["address"]
            for name, file in models.items():
                into = pathlib.Path(folder, f"exported-{name}")
                subprocess.run([lapwing, "export-hf", "-m", str(file), str(into)], check=True, capture_output=True)
                equal, lines, notes = compare(url, name, transformers.AutoTokenizer.from_pretrained(into))
                failed += bool(lines)
                compared += equal
                print(f"{name}: {equal} equal" + "".join(f"\n  {line}" for line in lines + notes))
        finally:
            server.terminate()
            server.wait()
    print(f"{compared} prompts are equal; {failed} of {len(models)} models differ")
    sys.exit(failed > 0 or compared == 0)


if __name__ == "__main__":
    main()
