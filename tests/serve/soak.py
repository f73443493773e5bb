"""Sends many requests of all kinds to a server, good and bad, and checks that it is as it was before.

usage: soak.py LAPWING MODEL.gguf [REQUESTS]

Kinds: complete and streamed answers, clients that leave at any moment, clients that read slowly, broken and too large
bodies, prompts that are too long, unknown models and paths, wrong and missing keys. Checked: no status 5xx but a named
overload, no request left, no KV page leased, memory and threads as after a tenth of the requests.
"""

import asyncio
import collections
import json
import random
import subprocess
import sys
import tempfile

PROGRAM, MODEL = sys.argv[1], sys.argv[2]
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
AT_ONCE = 64
KEYS = ["first", "second", "third"]
random.seed(1)


def start():
    keys = tempfile.NamedTemporaryFile("w", suffix=".keys", delete=False)
    keys.write("".join(f"client-{key} {key}\n" for key in KEYS))
    keys.close()
    settings = tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False)
    settings.write("stalled_s = 2.0\nrequests_max = 48\n[clients.client-third]\nrequests_at_once = 4\n")
    settings.close()
    command = [PROGRAM, "serve", "-m", f"model={MODEL}", "-t", "2", "--listen", "127.0.0.1:0", "--json", "--log", "off"]
    server = subprocess.Popen([*command, "--key-file", keys.name, "--config", settings.name], stdout=subprocess.PIPE, text=True)
    host, port = json.loads(server.stdout.readline())["address"].rsplit(":", 1)
    return server, host, int(port)


def memory_and_threads(server):
    lines = dict(line.split(":", 1) for line in open(f"/proc/{server.pid}/status") if ":" in line)
    return int(lines["VmRSS"].split()[0]) / 1024, int(lines["Threads"])


async def send(host, port, body, key="first", path="/v1/completions", method="POST", leave=None, slow=False):
    """The status and the body; status 0 if the client left."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        head = f"{method} {path} HTTP/1.0\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
        if key:
            head += f"authorization: Bearer {key}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        if leave is not None:
            await asyncio.sleep(leave)
            return 0, b""
        if slow:
            await asyncio.sleep(random.choice([0.5, 3.0]))
        data = await reader.read()
        status = int(data.split(b" ", 2)[1]) if data else -1
        return status, data.partition(b"\r\n\r\n")[2]
    except (ConnectionResetError, BrokenPipeError):
        return -1, b""
    finally:
        writer.close()


def completion(**more):
    prompt = " ".join(random.choices("abcdefgh", k=random.choice([1, 8, 40])))
    return json.dumps({"prompt": prompt, "max_tokens": random.choice([1, 8, 32]), "ignore_eos": True, **more}).encode()


async def one(host, port):
    kind = random.choices(
        ["whole", "stream", "leave", "slow", "broken", "large", "long", "unknown", "path", "key", "third"],
        [30, 25, 15, 1, 5, 1, 4, 4, 4, 6, 5],
    )[0]
    good = {200, 429}
    call = lambda *args, **named: send(host, port, *args, **named)
    if kind == "whole":
        return kind, good, await call(completion(n=random.choice([1, 1, 2])), key=random.choice(KEYS))
    if kind == "stream":
        status, body = await call(completion(stream=True), key=random.choice(KEYS))
        complete = status != 200 or body.endswith(b"data: [DONE]\n\n")
        return kind, good, (status if complete else -2, body)
    if kind == "leave":
        return kind, {0}, await call(completion(stream=random.random() < 0.5, max_tokens=400), leave=random.random() * 0.05)
    if kind == "slow":
        return kind, good | {-1}, await call(completion(stream=True, max_tokens=200, logprobs=5), slow=True)
    if kind == "broken":
        return kind, {400}, await call(random.choice([b"{", b"[]", b"\xff\xfe", b'{"prompt":{}}', b'{"prompt":"a","n":0}', b""]))
    if kind == "large":
        return kind, {413, -1}, await call(b" " * (17 << 20))
    if kind == "long":
        return kind, {400, 429}, await call(completion(prompt="word " * 5000))
    if kind == "unknown":
        return kind, {404}, await call(completion(model="nothing"))
    if kind == "path":
        return kind, {404, 405}, await call(b"", path="/nothing", method=random.choice(["GET", "POST", "DELETE"]))
    if kind == "key":
        return kind, {401}, await call(completion(), key=random.choice([None, "wrong", ""]))
    return kind, good, await call(completion(), key="third")


async def main():
    server, host, port = start()
    seen, wrong, after_a_tenth = collections.Counter(), [], None
    slots = asyncio.Semaphore(AT_ONCE)

    async def run():
        async with slots:
            kind, expected, (status, body) = await one(host, port)
            seen[kind, status] += 1
            if status not in expected:
                wrong.append((kind, status, body[:200]))

    async def state():
        return json.loads((await send(host, port, b"", path="/debug/state", method="GET"))[1])["models"][0]["state"]

    try:
        for part in range(10):
            await asyncio.gather(*(run() for _ in range(COUNT // 10)))
            if part == 0:
                after_a_tenth = memory_and_threads(server)
        for _ in range(100):
            now = await state()
            if now["running"] == now["waiting"] == now["kv_pages_leased"] == 0:
                break
            await asyncio.sleep(0.1)
        at_the_end = memory_and_threads(server)
        for (kind, status), count in sorted(seen.items()):
            print(f"{kind:8} {status:4} {count:6}")
        print(f"memory {after_a_tenth[0]:.0f} -> {at_the_end[0]:.0f} MB, threads {after_a_tenth[1]} -> {at_the_end[1]}, {now}")
        assert not wrong, wrong[:5]
        assert now["running"] == now["waiting"] == now["kv_pages_leased"] == 0, now
        assert at_the_end[0] < after_a_tenth[0] * 1.2 + 20, "memory grows"
        assert at_the_end[1] <= after_a_tenth[1] + 2, "threads grow"
    finally:
        server.terminate()
    assert server.wait(40) == 0, "it ends with code 0"
    print(f"{COUNT} requests: ok")


asyncio.run(main())
