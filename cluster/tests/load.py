"""Many requests at the same time, and what came of each."""

import asyncio
import dataclasses
import json
import random
import time

import aiohttp


@dataclasses.dataclass
class Answer:
    """What came of a request."""

    number: int
    text: str = ""
    status: int = 0
    error: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    worker: int = 0
    seconds: float = 0.0
    first_seconds: float = 0.0
    tokens: int = 0
    generated_tokens: int = 0


async def ask(session, url, number, body, client=None):
    """Streams an answer."""
    headers = {"x-dynamo-meta-client": client} if client else {}
    answer, begin = Answer(number), time.monotonic()
    body = {
        "model": "tiny",
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "nvext": {"extra_fields": ["worker_id"]},
    } | body
    try:
        async with session.post(f"{url}/v1/completions", json=body, headers=headers) as response:
            answer.status = response.status
            if response.status != 200:
                answer.error = await response.text()
            else:
                await (read(response, answer, begin) if body["stream"] else response.read())
    except (aiohttp.ClientError, asyncio.TimeoutError) as error:
        answer.error = f"{type(error).__name__}: {error}"
    answer.seconds = time.monotonic() - begin
    return answer


async def read(response, answer, begin):
    """Reads the events of a stream."""
    is_done, is_error = False, False
    async for line in response.content:
        line = line.decode().strip()
        is_error |= line.startswith("event: error")
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            is_done = True
            break
        event = json.loads(data)
        if is_error or "error" in event:
            answer.error = data
            return
        if event.get("choices") and not answer.first_seconds:
            answer.first_seconds = time.monotonic() - begin
        for choice in event.get("choices", []):
            answer.text += choice.get("text") or ""
            answer.tokens += bool(choice.get("text"))
        if usage := event.get("usage"):
            details = usage.get("prompt_tokens_details") or {}
            answer.prompt_tokens, answer.generated_tokens = usage["prompt_tokens"], usage["completion_tokens"]
            answer.cached_tokens = details.get("cached_tokens") or 0
        ids = (event.get("nvext") or {}).get("worker_id") or {}
        answer.worker = ids.get("decode_worker_id") or answer.worker
    if not is_done:
        answer.error = "the stream has no end"


async def run(url, bodies, parallel, during=None):
    """Sends requests, so many at the same time; `during` is called with the number of those that have ended."""
    left = iter(enumerate(bodies))
    answers = [None] * len(bodies)
    ended = 0

    async def client():
        nonlocal ended
        for number, body in left:
            answers[number] = await ask(session, url, number, body)
            ended += 1
            if during:
                await during(ended)

    timeout = aiohttp.ClientTimeout(total=300)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        await asyncio.gather(*(client() for _ in range(parallel)))
    return answers


async def replay(url, requests):
    """Sends requests, each at its time, of (seconds, client, body)."""

    async def send(number, at, client, body):
        await asyncio.sleep(at - (time.monotonic() - begin))
        return await ask(session, url, number, body, client)

    timeout = aiohttp.ClientTimeout(total=600)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        begin = time.monotonic()
        return await asyncio.gather(*(send(number, *request) for number, request in enumerate(requests)))


def ids(seed, count):
    """Random token ids of ordinary words."""
    return random.Random(seed).choices(range(1000, 40000), k=count)


def trace(groups, each, prefix, suffix, tokens):
    """Requests in groups that share a prefix, in random order."""
    bodies = []
    for group in range(groups):
        for one in range(each):
            prompt = ids(f"{group}", prefix) + ids(f"{group}.{one}", suffix)
            bodies.append({"prompt": prompt, "max_tokens": tokens, "ignore_eos": True})
    random.Random(1).shuffle(bodies)
    return bodies
