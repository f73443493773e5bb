"""Restarts one of two servers under load, with SIGTERM, while clients try again at the other: none sees a failure.

usage: restart.py LAPWING MODEL.gguf [ROUNDS]
"""

import asyncio
import itertools
import json
import signal
import subprocess
import sys

PROGRAM, MODEL = sys.argv[1], sys.argv[2]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 6
BODY = json.dumps({"prompt": "a b c", "max_tokens": 40, "ignore_eos": True, "stream": True}).encode()


def start(port=0):
    command = [PROGRAM, "serve", "-m", f"model={MODEL}", "-t", "1", "--preload", "--json", "--log", "off"]
    server = subprocess.Popen([*command, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)
    return server, int(json.loads(server.stdout.readline())["address"].rsplit(":", 1)[1])


async def attempt(port):
    """Whether an answer came whole; an error is its text."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        return str(error)
    try:
        writer.write(b"POST /v1/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY))
        data = await reader.read()
        return None if data.endswith(b"data: [DONE]\n\n") else data[-200:].decode(errors="replace")
    except OSError as error:
        return str(error)
    finally:
        writer.close()


async def main():
    servers = [start(), start()]
    ports = [port for _, port in servers]
    stop, counts = asyncio.Event(), {"whole": 0, "again": 0, "cut": 0}

    async def client(number):
        for turn in itertools.count(number):
            if stop.is_set():
                return
            errors = []
            for port in [ports[turn % 2], ports[(turn + 1) % 2], ports[turn % 2]]:
                error = await attempt(port)
                if error is None:
                    counts["whole"] += 1
                    break
                # An answer that has begun is not cut, so only refused requests are sent again.
                counts["cut"] += "finish_reason" in error or '"text"' in error
                errors.append(error)
                counts["again"] += 1
            else:
                raise AssertionError(errors)

    clients = [asyncio.create_task(client(number)) for number in range(12)]
    for round in range(ROUNDS):
        await asyncio.sleep(1)
        server, port = servers[round % 2]
        server.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.wait, 40)
        assert code == 0, code
        servers[round % 2] = await asyncio.to_thread(start, port)
    stop.set()
    await asyncio.gather(*clients)
    for server, _ in servers:
        server.terminate()
        server.wait(40)
    print(counts)
    assert counts["cut"] == 0, "an answer that had begun was cut"
    assert counts["whole"] > 100
    print(f"{ROUNDS} restarts: no client saw a failure")


asyncio.run(main())
