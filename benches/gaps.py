#!/usr/bin/env python3
"""Streams beside long prompts: how long a stream waits for its next token, and what that costs the prompts.

usage: gaps.py MODEL.gguf [OPTION...] NAME=COMMAND...

COMMAND starts a server with an OpenAI interface; {model} and {port} in it are replaced. One server runs at a time. Streams
begin; when each has had some tokens, long prompts arrive. A gap is the time between two pieces of a stream at the client, from
the arrival of the prompts until each has its first token. CPU time is that of the server's process: of the prompts alone, and
beside the streams, less what the streams' tokens cost alone. `kept` is the former divided by the latter. `near` is the share of
chunks whose predicted time is within a tenth of the real one, where a server counts them. Of background work, `kept` compares its
tokens with those that it would have in the time that the foreground requests leave. Examples:

  gaps.py M.gguf 'lapwing=target/release/lapwing serve -m {model} -t 2 --ctx 8192 --listen 127.0.0.1:{port} --log off'
  gaps.py M.gguf --gaps none,60,100,150,250,500 …     # token_gap_ms of the streams
  gaps.py M.gguf --streams 8 --prompts 2 …
  gaps.py M.gguf --background 8 …      # prompts in the foreground, beside background work, in place of streams
"""

import argparse
import http.client
import json
import os
import random
import statistics
import sys
import threading
import time

from servers import Server, percentile, text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--gaps", default="none", help="targets of the streams in ms, or none (default: none)")
    parser.add_argument("--streams", type=int, default=1, help="streams (default: 1)")
    parser.add_argument("--prompts", type=int, default=1, help="prompts that arrive beside them (default: 1)")
    parser.add_argument("--words", type=int, default=4400, help="words of such a prompt (default: 4400, about 6000 tokens)")
    parser.add_argument("--background", type=int, default=0, help="background requests in place of streams")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


class Answer(threading.Thread):
    """An answer that is streamed in a thread of its own: times of its pieces."""

    def __init__(self, server, prompt, tokens, **fields):
        super().__init__(daemon=True)
        self.server, self.times, self.error, self.stopped = server, [], None, threading.Event()
        self.body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                     "cache_prompt": False, **fields}
        self.begin = time.perf_counter()
        self.start()

    def run(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=600)
            connection.request("POST", "/v1/completions", json.dumps(self.body), {"content-type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise ValueError(f"{response.status} {response.read()[:300]}")
            for line in response:
                if line.startswith(b"data: {") and any(c.get("text") for c in json.loads(line[6:]).get("choices", [])):
                    self.times.append(time.perf_counter())
                if self.stopped.is_set():
                    connection.sock.close()
                    return
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self.stopped.is_set():
                self.error = error

    def wait_for(self, pieces):
        """Waits until it has so many pieces; the time of the last of them."""
        while len(self.times) < pieces:
            if self.error or not self.is_alive() and len(self.times) < pieces:
                sys.exit(f"{self.server.name}: {self.error or 'an answer is too short'}")
            time.sleep(0.002)
        return self.times[pieces - 1]


def cpu(server):
    """CPU time of a server's process so far, in seconds."""
    with open(f"/proc/{server.process.pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def predictions(server):
    """Chunks whose predicted time is within a tenth of the real one, and all, as Lapwing's metrics have them."""
    found = {"0.1": 0.0, "+Inf": 0.0}
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    except OSError:
        return found
    for line in lines:
        for bound in found:
            if line.startswith("lapwing_chunk_time_errors{") and f'le="{bound}"' in line:
                found[bound] = float(line.rsplit(" ", 1)[1])
    return found


def prompts_alone(server, chance, options):
    """CPU time and time until prompts without streams have their first tokens."""
    before, begin = cpu(server), time.perf_counter()
    answers = [Answer(server, text(chance, options.words), 1) for _ in range(options.prompts)]
    last = max(answer.wait_for(1) for answer in answers)
    [answer.join() for answer in answers]
    return cpu(server) - before, last - begin


def streams_alone(server, chance, options, target):
    """Streams, each with some tokens, the CPU time of a token and the median gap."""
    fields = {} if target is None else {"token_gap_ms": target}
    streams = [Answer(server, text(chance, 30), 100_000, **fields) for _ in range(options.streams)]
    [stream.wait_for(20) for stream in streams]
    before, counts = cpu(server), [len(stream.times) for stream in streams]
    time.sleep(1.5)
    tokens = sum(len(stream.times) - count for stream, count in zip(streams, counts))
    gaps = [b - a for stream in streams for a, b in zip(stream.times[5:], stream.times[6:])]
    return streams, (cpu(server) - before) / max(tokens, 1), statistics.median(gaps)


def round_of(server, chance, options, target):
    """Figures of one round."""
    alone_cpu, alone = prompts_alone(server, chance, options)
    streams, token_cpu, solo = streams_alone(server, chance, options, target)
    chunks = predictions(server)
    before, begin = cpu(server), time.perf_counter()
    counts = [len(stream.times) for stream in streams]
    answers = [Answer(server, text(chance, options.words), 1) for _ in range(options.prompts)]
    last = max(answer.wait_for(1) for answer in answers)
    time.sleep(0.05)
    beside_cpu = cpu(server) - before
    chunks = {bound: count - chunks[bound] for bound, count in predictions(server).items()}
    # A gap counts if it overlaps the time from the prompts' arrival to the last of their tokens.
    gaps, tokens = [], 0
    for stream, count in zip(streams, counts):
        times = [at for at in stream.times]
        gaps += [b - a for a, b in zip(times, times[1:]) if b >= begin and a <= last]
        tokens += sum(begin <= at <= last for at in times)
        stream.stopped.set()
    [stream.join(30) for stream in streams]
    return {"solo_ms": solo * 1e3, "worst_ms": max(gaps) * 1e3, "p95_ms": percentile(gaps, 95),
            "median_ms": statistics.median(gaps) * 1e3, "tokens": tokens, "prompts_s": last - begin,
            "alone_s": alone, "cpu_alone_s": alone_cpu, "cpu_beside_s": beside_cpu,
            "kept": alone_cpu / max(beside_cpu - tokens * token_cpu, 1e-9),
            "near": chunks["0.1"] / chunks["+Inf"] if chunks["+Inf"] else None,
            "late": None if target is None else sum(gap * 1e3 > target for gap in gaps), "gaps": len(gaps)}


def foreground(server, chance, options):
    """A foreground request's time to the first token alone and beside background work, and what that keeps."""
    words = options.words // 4
    _, alone = prompts_alone(server, chance, argparse.Namespace(words=words, prompts=1))
    kind = {"class": "background"}
    work = [Answer(server, text(chance, words), 100_000, **kind) for _ in range(options.background)]
    [answer.wait_for(5) for answer in work]
    done = lambda: sum(len(answer.times) for answer in work)
    before, begin = done(), time.perf_counter()
    time.sleep(3)
    pace = (done() - before) / (time.perf_counter() - begin)
    # Foreground requests, one after another; background work is to use what they leave of the machine.
    before, begin, besides = done(), time.perf_counter(), []
    for _ in range(3):
        asked = Answer(server, text(chance, words), 1)
        besides.append(asked.wait_for(1) - asked.begin)
        time.sleep(2 * alone)
    left = time.perf_counter() - begin - len(besides) * alone
    kept = (done() - before) / max(pace * left, 1e-9)
    [answer.stopped.set() for answer in work]
    [answer.join(30) for answer in work]
    beside = statistics.median(besides)
    return {"ttft_alone_ms": alone * 1e3, "ttft_beside_ms": beside * 1e3, "ratio": beside / alone,
            "kept": kept}


def measured(options, name):
    """The figures of a server, medians of the rounds; of gaps the worst."""
    server = Server(name, options.model)
    rows = []
    try:
        server.wait()
        chance = random.Random(7)
        targets = [None if target == "none" else float(target) for target in options.gaps.split(",")]
        for target in targets:
            figures = [foreground(server, chance, options) if options.background
                       else round_of(server, chance, options, target) for _ in range(options.rounds + 1)][1:]
            known = {key: [f[key] for f in figures if f[key] is not None] for key in figures[0]}
            merged = {key: statistics.median(values) if values else None for key, values in known.items()}
            for key in ("worst_ms",):
                if key in merged:
                    merged[key] = max(f[key] for f in figures)
            for key in ("late", "gaps"):
                if merged.get(key) is not None:
                    merged[key] = sum(f[key] for f in figures)
            rows.append({"server": server.name, "target_ms": target, **merged})
    finally:
        server.stop()
    return rows


def main():
    options = arguments()
    rows = [row for name in options.servers for row in measured(options, name)]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    keys = list(rows[0])
    print("| " + " | ".join(keys) + " |")
    print("|" + "---|" * len(keys))
    shown = lambda value: f"{value:.2f}" if isinstance(value, float) else "–" if value is None else str(value)
    for row in rows:
        print("| " + " | ".join(shown(row[key]) for key in keys) + " |")


if __name__ == "__main__":
    main()
