"""Reads KV events as vLLM's documents say, and compares the tree that it builds from them with what the server has.

$LAPWING_URL is the server, with one model; $LAPWING_LISTENING what it has printed; $LAPWING_FORM the form of its events. The types are
those of vLLM's documents for that form: maps since 2026, lists before.
"""

import hashlib
import json
import os
import random
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import zmq

URL = os.environ["LAPWING_URL"]
LISTS = os.environ["LAPWING_FORM"] == "array"
PUBLISHED = json.loads(os.environ["LAPWING_LISTENING"])["kv_events"][0]
MODEL = PUBLISHED["model"]
END = (-1).to_bytes(8, "big", signed=True)


class KVCacheEvent(msgspec.Struct, array_like=LISTS, omit_defaults=True, gc=False, tag=True):
    pass


if LISTS:

    class BlockStored(KVCacheEvent):
        block_hashes: list[int | bytes]
        parent_block_hash: int | bytes | None
        token_ids: list[int]
        block_size: int
        lora_id: int | None
        medium: str | None
        lora_name: str | None = None
        extra_keys: list[tuple[Any, ...] | None] | None = None

    class BlockRemoved(KVCacheEvent):
        block_hashes: list[int | bytes]
        medium: str | None

else:

    class BlockStored(KVCacheEvent):
        block_hashes: list[int | bytes]
        parent_block_hash: int | bytes | None
        token_ids: list[int]
        block_size: int
        lora_id: int | None
        medium: str | None
        lora_name: str | None
        extra_keys: list[tuple[Any, ...] | None] | None = None
        group_idx: int | None = None
        kv_cache_spec_kind: str | None = None
        kv_cache_spec_sliding_window: int | None = None

    class BlockRemoved(KVCacheEvent):
        block_hashes: list[int | bytes]
        medium: str | None
        group_idx: int | None = None


class AllBlocksCleared(KVCacheEvent):
    pass


class KVEventBatch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]
    data_parallel_rank: int | None = None


decoder = msgspec.msgpack.Decoder(type=KVEventBatch)
context = zmq.Context()


def digest(data):
    return int.from_bytes(hashlib.sha256(data).digest()[-8:], "big")


class Tree:
    """The blocks that are stored and not removed: their parents, and the namespaces of texts that begin with them."""

    def __init__(self):
        self.parents, self.salts, self.seen = {}, {}, {"stored": 0, "removed": 0, "cleared": 0}

    def apply(self, batch):
        assert abs(time.time() - batch.ts) < 600 and batch.data_parallel_rank == 0, batch
        for event in batch.events:
            if isinstance(event, AllBlocksCleared):
                self.parents, self.salts = {}, {}
                self.seen["cleared"] += 1
            elif isinstance(event, BlockStored):
                self.store(event)
            else:
                assert event.medium == "GPU"
                self.seen["removed"] += len(event.block_hashes)
                for block in event.block_hashes:
                    del self.parents[block]
                    self.salts.pop(block, None)

    def store(self, event):
        parent, size = event.parent_block_hash, event.block_size
        assert event.medium == "GPU" and len(event.token_ids) == size * len(event.block_hashes), event
        self.seen["stored"] += len(event.block_hashes)
        if parent is None:
            salt = event.extra_keys[0][0] if event.extra_keys else None
            above = 0 if salt is None else digest(b"\x01" + salt.encode())
        else:
            assert parent in self.parents, "a block is stored before the one before it"
            salt, above = self.salts.get(parent), parent
        for at, block in enumerate(event.block_hashes):
            tokens = event.token_ids[at * size : (at + 1) * size]
            data = b"\0" + above.to_bytes(8, "big") + b"".join(token.to_bytes(4, "big") for token in tokens)
            assert block == digest(data), "the hash is that of the formula"
            assert block not in self.parents, "a block is stored twice"
            self.parents[block], self.salts[block] = parent, salt
            parent = above = block


class Reader:
    """A subscriber that asks for the batches that it misses."""

    def __init__(self, topic=MODEL):
        self.tree, self.next = Tree(), None
        self.live = context.socket(zmq.SUB)
        self.live.connect(PUBLISHED["address"])
        self.live.setsockopt(zmq.SUBSCRIBE, topic.encode())
        self.replay = context.socket(zmq.DEALER)
        self.replay.connect(PUBLISHED["replay"])

    def read(self, timeout_ms, lose=False):
        """Applies what comes within a time; `lose` throws it away."""
        while self.live.poll(timeout_ms):
            topic, number, payload = self.live.recv_multipart()
            assert topic.decode() == MODEL and len(number) == 8, (topic, number)
            number = int.from_bytes(number, "big")
            if lose or (self.next is not None and number < self.next):
                continue
            if self.next is None or number > self.next:
                self.catch_up(self.next or 0)
                if number < self.next:
                    continue
            self.apply(number, payload)

    def apply(self, number, payload):
        self.tree.apply(decoder.decode(payload))
        self.next = number + 1

    def catch_up(self, number):
        """Applies all batches from a number on."""
        self.replay.send_multipart([b"", number.to_bytes(8, "big")])
        while True:
            assert self.replay.poll(20_000), "no answer"
            delimiter, *topic, number, payload = self.replay.recv_multipart()
            assert delimiter == b"" and len(topic) == (0 if LISTS else 1)
            if number == END:
                assert payload == b"" and topic in ([], [b""])
                return
            assert topic in ([], [MODEL.encode()])
            self.apply(int.from_bytes(number, "big"), payload)

    def agrees(self):
        """Whether it knows what the server has, within a while."""
        for _ in range(200):
            self.read(100)
            listed = json.load(urllib.request.urlopen(f"{URL}/debug/blocks?model={MODEL}"))["blocks"]
            parse = lambda text: None if text is None else int(text, 16)
            known = {parse(block["hash"]): parse(block["parent"]) for block in listed}
            if known == self.tree.parents:
                return True
        return False


def post(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=120))


def ask(prompt, salt=None):
    body = {"model": MODEL, "prompt": prompt, "max_tokens": 3, "temperature": 0, "ignore_eos": True}
    post("/v1/completions", body | ({"cache_salt": salt} if salt else {}))


beginnings = [[random.randrange(5, 250) for _ in range(96)] for _ in range(3)]


def some(count):
    """Requests that begin alike, some of them at the same time, with and without namespaces."""

    def one(_):
        beginning = random.choice(beginnings)[: random.randrange(96)]
        ask(beginning + [random.randrange(5, 250) for _ in range(1 + random.randrange(90))], random.choice([None, None, "alice"]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(count)))


# One who subscribes before a model is loaded, and one to all topics. They need a moment until they are connected.
first, other = Reader(), Reader("")
time.sleep(0.5)
ask(list(range(5, 60)))
assert first.agrees() and other.agrees(), "the first request"
assert first.tree.seen["cleared"] >= 1 and len(first.tree.parents) == 3, first.tree.seen
some(60)
assert first.agrees() and other.agrees(), "many requests"
assert first.tree.seen["removed"] > 20, f"the cache was never full: {first.tree.seen}"

# One who comes late asks for all; one who loses batches asks for these.
late = Reader()
late.catch_up(0)
assert late.agrees(), "a late reader"
some(10)
first.read(500, lose=True)
some(10)
assert first.agrees() and late.agrees(), "after lost batches"

# One who never reads holds up nobody.
stalled = context.socket(zmq.SUB)
stalled.setsockopt(zmq.RCVHWM, 1)
stalled.connect(PUBLISHED["address"])
stalled.setsockopt(zmq.SUBSCRIBE, b"")
some(40)
assert first.agrees(), "beside a reader that does not read"

# One who asks for batches that are gone is told all, as everybody is.
cleared = first.tree.seen["cleared"]
new = Reader()
new.catch_up(0)
assert new.agrees() and first.agrees()

# A model that is unloaded has no blocks.
post("/api/generate", {"model": MODEL, "prompt": "ab", "raw": True, "stream": False, "keep_alive": 0, "options": {"num_predict": 1}})
for _ in range(100):
    first.read(100)
    if not first.tree.parents and first.tree.seen["cleared"] > cleared:
        break
assert not first.tree.parents, "unloaded"
some(4)
assert first.agrees() and first.tree.parents, "loaded again"
print(f"KV events as {'lists' if LISTS else 'maps'}: {first.tree.seen}")
