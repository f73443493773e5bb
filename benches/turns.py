#!/usr/bin/env python3
"""Turns of a long conversation: time to the first token, and how many tokens are computed again.

usage: turns.py LAPWING MODEL.gguf [OPTION...] [NAME=COMMAND...]

LAPWING is the program. COMMAND starts llama.cpp's server; {model} and {port} in it are replaced. Prompts are random token ids, so a
model with random weights will do. Of each server, in turn:

  cold     a conversation of TOKENS tokens, which no cache knows
  turn     its answer, and NEW more tokens: the next turn
  branch   the same beginning and other NEW tokens
  edit     the last message of the turn replaced by NEW others
  agents   AGENTS requests at the same time, each with the conversation and NEW tokens of its own

A row has the median time to the first token over all rounds (of agents: the median and the last one), and the largest number of
prompt tokens that were computed. Of Lapwing, `busy` is how long its device computed for a turn, a branch or an edit, by the server's own
recording: what the new tokens cost in a sequence that is still there, and nothing has to be found or copied. Rounds of the servers alternate.
Fails (exit code 1) if a turn, a branch or an edit takes more than 1.05 times as long as its device is busy, or computes more than 64 tokens
besides the new ones. Run it on an idle machine.
"""

import argparse
import http.client
import json
import math
import random
import statistics
import sys
import threading
import time
import urllib.request

from servers import Server

LONGER, BESIDES = 1.05, 64
ANSWER = 16


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="LAPWING")
    parser.add_argument("model", metavar="MODEL.gguf")
    parser.add_argument("servers", nargs="*", metavar="NAME=COMMAND")
    parser.add_argument("--tokens", type=int, default=16000, help="tokens of the conversation (default: 16000)")
    parser.add_argument("--new", type=int, default=50, help="tokens of a message (default: 50)")
    parser.add_argument("--agents", type=int, default=32, help="requests at the same time (default: 32)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--vocabulary", type=int, default=32000, help="ids are below this (default: 32000)")
    parser.add_argument("--serve", default="", metavar="OPTIONS", help="more options of `lapwing serve`")
    return parser.parse_intermixed_args()


def wait(ask, server):
    """Waits until the model is loaded: ids are answered."""
    for _ in range(600):
        if server.process.poll() is not None:
            sys.exit(f"{server.name} has ended with {server.process.returncode}")
        try:
            ask(server, [100, 101, 102])
            return
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.2)
    sys.exit(f"{server.name} does not answer")


class Turn:
    """What a request took: seconds to its first token, prompt tokens that were computed, and its answer; later, how long a device computed."""

    def __init__(self, first, computed, answer):
        self.first, self.computed, self.answer, self.busy = first, computed, answer, None


def events(server, path, body):
    """The events of a stream, each with its time since the request was sent."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=1200)
    begin = time.perf_counter()
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise ValueError(f"{server.name}: {response.status} {response.read()[:300]}")
    for line in response:
        if line.startswith(b"data: {"):
            yield time.perf_counter() - begin, json.loads(line[6:])


def ask_lapwing(server, ids, tokens=ANSWER):
    body = {"prompt": ids, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True, "return_token_ids": True,
            "stream_options": {"include_usage": True}}
    first, answer, usage = None, [], None
    for at, event in events(server, "/v1/completions", body):
        usage = event.get("usage") or usage
        for choice in event.get("choices", []):
            new = choice.get("token_ids") or []
            first = at if first is None and new else first
            answer += new
    return Turn(first, usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"], answer)


def ask_llama(server, ids, tokens=ANSWER):
    body = {"prompt": ids, "n_predict": tokens, "temperature": 0, "ignore_eos": True, "stream": True, "return_tokens": True,
            "cache_prompt": True}
    first, answer, computed = None, [], None
    for at, event in events(server, "/completion", body):
        first = at if first is None and event.get("tokens") else first
        answer += event.get("tokens") or []
        computed = event.get("timings", {}).get("prompt_n", computed)
    return Turn(first, computed, answer)


def agents(ask, server, prompts):
    """All at the same time."""
    turns, failures = [None] * len(prompts), []

    def one(at):
        try:
            turns[at] = ask(server, prompts[at])
        except (OSError, http.client.HTTPException, ValueError) as error:
            failures.append(error)

    threads = [threading.Thread(target=one, args=(at,)) for at in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"failed: {failures[0]}")
    return turns


def timed(ask, server, ids):
    """A request for one token, and how long the devices of Lapwing computed meanwhile."""
    time.sleep(1.5)
    turn = ask(server, ids, 1)
    if ask is ask_lapwing:
        seconds = math.ceil(turn.first + 0.05)
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/debug/lanes?seconds={seconds}") as answer:
            lanes = json.load(answer)["lanes"]
        turn.busy = seconds * max(lane["busy"] for lane in lanes)
    return turn


def conversation(args, ask, server, chance):
    """The turns of one round, by their kinds."""
    def ids(count):
        return [chance.randrange(100, args.vocabulary) for _ in range(count)]

    system = ids(args.tokens)
    cold = ask(server, system)
    said = system + cold.answer
    turn = timed(ask, server, said + ids(args.new))
    branch = timed(ask, server, said + ids(args.new))
    later = said + ids(args.new)
    later += ask(server, later).answer
    ask(server, later + ids(args.new))
    edit = timed(ask, server, later + ids(args.new))
    many = agents(ask, server, [system + ids(args.new) for _ in range(args.agents)]) if args.agents else []
    return {"cold": [cold], "turn": [turn], "branch": [branch], "edit": [edit], "agents": many}


def states(server):
    """Metrics of Lapwing's caches: places in all and those that the prefix cache holds."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    names = ("lapwing_states", "lapwing_kv_pages")
    return [line for line in lines if line.startswith(names)]


def main():
    args = arguments()
    own = f"lapwing={args.program} serve -m {{model}} --ctx {args.tokens + 4096} --listen 127.0.0.1:{{port}} --log off"
    servers = [Server(text, args.model) for text in [f"{own} {args.serve}", *args.servers]]
    found = {}
    try:
        asks = {server: ask_lapwing if server is servers[0] else ask_llama for server in servers}
        for server, ask in asks.items():
            wait(ask, server)
        for number in range(args.rounds):
            turn = number % len(servers)
            for server in servers[turn:] + servers[:turn]:
                for kind, turns in conversation(args, asks[server], server, random.Random(f"{server.name} {number}")).items():
                    found.setdefault((server.name, kind), []).append(turns)
        held = states(servers[0])
    finally:
        for server in servers:
            server.stop()
    report(args, found, held)


def report(args, found, held):
    wrong = []
    print("| server | request | first token, s | busy, s | first token / busy | last of them, s | prompt tokens computed |\n"
          "|---|---|---|---|---|---|---|")
    for (name, kind), rounds in found.items():
        turns = [turn for of_round in rounds for turn in of_round]
        if not turns:
            continue
        first = statistics.median(turn.first for turn in turns)
        last = statistics.median(max(turn.first for turn in of_round) for of_round in rounds)
        computed = max(turn.computed for turn in turns)
        busy, longer = "", ""
        if turns[0].busy is not None:
            ratio = statistics.median(turn.first / turn.busy for turn in turns)
            busy, longer = f"{statistics.median(turn.busy for turn in turns):.3f}", f"{ratio:.2f}"
            if ratio > LONGER:
                wrong.append(f"{kind}: {ratio:.2f} times as long as its device is busy")
            if computed > args.new + BESIDES:
                wrong.append(f"{kind}: {computed} tokens computed")
        print(f"| {name} | {kind} | {first:.3f} | {busy} | {longer} | {last:.3f} | {computed} |")
    print("\n".join(held))
    for line in wrong:
        print(f"NOT KEPT: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
