#!/usr/bin/env python3
"""Servers beside each other, under the same load: tokens per second, time to first token, time between tokens, memory.

usage: servers.py MODEL.gguf [OPTION...] NAME=COMMAND...

COMMAND starts a server with an OpenAI interface; {model} and {port} in it are replaced. All servers run at the same time,
and one at a time is asked: the order changes from round to round, so that slow changes of the machine cancel out. Figures
are medians of the rounds; a percentile of a round is one over all of its streams or tokens. Examples:

  servers.py M.gguf 'lapwing=target/release/lapwing serve -m {model} -t 2 --listen 127.0.0.1:{port} --log off' \\
      'llama.cpp=llama-server -m {model} -t 2 -np 8 -c 8192 --port {port}'
  servers.py M.gguf --shared 400 …      # every prompt begins with the same 400 words, which are new in each round
  servers.py M.gguf --prompts FILE …    # a prompt per line, as a JSON string; streams take them in turn
"""

import argparse
import http.client
import json
import random
import shlex
import socket
import statistics
import subprocess
import sys
import threading
import time

WORDS = (
    "river stone window garden letter morning bridge paper market silver winter candle forest engine harbour music "
    "island kitchen ladder mirror needle orange pocket quarter ribbon shadow table umbrella valley wheel yellow anchor "
    "basket corner dinner evening feather glass hammer insect jacket kettle lemon metal north ocean pencil queen road"
).split()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--streams", default="1,8", help="numbers of streams at the same time (default: 1,8)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per number of streams (default: 5)")
    parser.add_argument("--words", type=int, default=48, help="words of each prompt of its own (default: 48)")
    parser.add_argument("--shared", type=int, default=0, help="words that all prompts of a round begin with")
    parser.add_argument("--prompts", help="a file with a prompt per line, as JSON strings")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of each answer (default: 64)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


class Server:
    """A server that runs, and its port."""

    def __init__(self, text, model):
        self.name, command = text.split("=", 1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [part.format(model=model, port=self.port) for part in shlex.split(command)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self):
        """Waits until the model is loaded: a token is answered."""
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} has ended with {self.process.returncode}")
            try:
                self.ask("Hello", 1, True)
                return
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)
        sys.exit(f"{self.name} does not answer")

    def ask(self, prompt, tokens, reuse):
        """Streams an answer: times of its pieces since the request was sent, and the usage."""
        body = {
            "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True,
            "stream_options": {"include_usage": True}, "cache_prompt": reuse,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        begin = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"{self.name}: {response.status} {response.read()[:200]}")
        times, usage = [], None
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            if chunk.get("choices") and chunk["choices"][0].get("text"):
                times.append(time.perf_counter() - begin)
        if not times or usage is None:
            raise ValueError(f"{self.name}: no text or no usage")
        return times, usage

    def memory(self):
        """Largest resident memory so far, in MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def burst(server, prompts, tokens, reuse):
    """Asks all at the same time: figures of the round."""
    answers, failures = [], []

    def one(prompt):
        try:
            answers.append(server.ask(prompt, tokens, reuse))
        except (OSError, http.client.HTTPException, ValueError) as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(prompt,)) for prompt in prompts]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = time.perf_counter() - begin
    if failures:
        sys.exit(f"failed: {failures[0]}")
    firsts = [times[0] for times, _ in answers]
    between = [later - earlier for times, _ in answers for earlier, later in zip(times, times[1:])]
    # The pace of a stream counts from its first token, so that a piece of several tokens counts as several.
    paces = [(times[-1] - times[0]) / max(1, usage["completion_tokens"] - 1) for times, usage in answers]
    return {
        "tokens_per_s": sum(usage["completion_tokens"] for _, usage in answers) / whole,
        "ttft_p50_ms": percentile(firsts, 50), "ttft_p95_ms": percentile(firsts, 95),
        "itl_p50_ms": percentile(between, 50), "itl_p95_ms": percentile(between, 95),
        "tpot_ms": statistics.median(paces) * 1e3,
        "prompt_tokens": statistics.median(usage["prompt_tokens"] for _, usage in answers),
    }


def percentile(values, at):
    values = sorted(values) or [0.0]
    return values[min(len(values) - 1, int(len(values) * at / 100))] * 1e3


def text(chance, words):
    return " ".join(chance.choice(WORDS) for _ in range(words))


def rounds(options, servers, streams):
    """All rounds with a number of streams: per server and kind of round, the figures of each round."""
    given = [json.loads(line) for line in open(options.prompts, encoding="utf-8")] if options.prompts else None
    found = {}
    for number in range(options.rounds + 1):
        chance = random.Random(f"{streams} {number}")
        common = text(chance, options.shared) + "\n" if options.shared else ""
        prompts = [given[(number * streams + at) % len(given)] if given else common + text(chance, options.words)
                   for at in range(streams)]
        turn = number % len(servers)
        for server in servers[turn:] + servers[:turn]:
            kinds = [("cold", True), ("warm", True), ("no cache", False)] if options.shared else [("", False)]
            for kind, reuse in kinds:
                figures = burst(server, prompts, options.tokens, reuse)
                if number > 0:  # The first round warms up.
                    found.setdefault((server.name, kind), []).append(figures)
    return [
        {"server": name, "kind": kind, "streams": streams,
         **{key: statistics.median(figures[key] for figures in all_figures) for key in all_figures[0]}}
        for (name, kind), all_figures in found.items()
    ]


def main():
    options = arguments()
    servers = [Server(text, options.model) for text in options.servers]
    try:
        for server in servers:
            server.wait()
        rows = [row for streams in options.streams.split(",") for row in rounds(options, servers, int(streams))]
        for row in rows:
            row["memory_mib"] = next(server.memory() for server in servers if server.name == row["server"])
    finally:
        for server in servers:
            server.stop()
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print("| server | streams | prompt tokens | tokens/s | TTFT p50 / p95 ms | ITL p50 / p95 ms | ms per token | memory MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['server']}{', ' + row['kind'] if row['kind'] else ''} | {row['streams']} | {row['prompt_tokens']:.0f} "
              f"| {row['tokens_per_s']:.0f} | {row['ttft_p50_ms']:.0f} / {row['ttft_p95_ms']:.0f} "
              f"| {row['itl_p50_ms']:.1f} / {row['itl_p95_ms']:.1f} | {row['tpot_ms']:.2f} | {row['memory_mib']:.0f} |")


if __name__ == "__main__":
    main()
