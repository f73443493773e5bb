"""Loads the exports of `export.rs` into Perfetto's trace processor and checks the result.

    python3 check.py FOLDER_OF_EXPORTS FOLDER_OF_ENGINE
"""

import json
import os
import subprocess
import sys

from perfetto.trace_processor.api import TraceProcessor
from perfetto.trace_processor.rpc import TraceProcessorRpc

BASE = 1_700_000_000_000_001
HOSTILE = "=cmd|'/c calc'!A0\n\x1b[31m"


class Pipe:
    """The trace processor as a child process."""

    def __init__(self, engine):
        bridge = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bridge.cjs")
        self.child = subprocess.Popen(
            ["node", bridge, engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if "-v" in sys.argv else subprocess.DEVNULL,
        )

    def send(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def read(self, count):
        data = self.child.stdout.read(count)
        if len(data) != count:
            raise ConnectionError("the trace processor stopped; -v shows what it says")
        return data

    def close(self):
        if self.child:
            self.child.kill()
            self.child.communicate()
            self.child = None


class Engine(TraceProcessorRpc):
    """The RPC client, which can load a trace as well."""

    def _call(self, method, field=None, data=None):
        stream = self.protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = method
        if data is not None:
            setattr(request, field, data)
        self.transport.send(stream.SerializeToString())
        answer = self.protos.TraceProcessorRpc()
        answer.MergeFromString(self._read_payload())
        self._check_envelope(answer)
        return answer

    def parse(self, chunk):
        rpc = self.protos.TraceProcessorRpc
        return self._call(rpc.TPM_APPEND_TRACE_DATA, "append_trace_data", chunk).append_result

    def notify_eof(self):
        return self._call(self.protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)


class Processor(TraceProcessor):
    def __init__(self, trace, engine):
        self._engine = engine
        super().__init__(trace=trace)

    def _create_backend(self, remote, addr):
        return Engine(Pipe(self._engine), self.protos)

    def rows(self, sql):
        result = self.query(sql)
        return [tuple(row.__dict__.values()) for row in result]


def same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}:\n  found    {found}\n  expected {expected}")
    print(f"  {what}: {found}")


def check_errors(processor):
    same(
        "import errors",
        processor.rows(
            "select name, idx, severity, value from stats "
            "where severity in ('error', 'data_loss') and value > 0"
        ),
        [],
    )


def check_both(processor, spans, hostile):
    """Checks that hold for both formats; `spans` selects the slices that are spans."""
    check_errors(processor)
    same(
        "spans by name: how many, and their total time",
        processor.rows(
            f"select name, count(*), sum(dur) from slice where {spans} group by name order by name"
        ),
        [
            (hostile, 1, 1),
            ("admit", 1, 0),
            ("attn_q", 1, 400),
            ("layer", 3, 1_000 + 2_000 + 2_001),
            ("matmul", 3, 600 + 1_000 + 1_403),
        ],
    )
    same(
        "spans that run at the same time on the lane gpu",
        processor.rows(
            f"select ts, dur, depth from slice where {spans} and name = 'layer' and ts > {BASE} "
            "order by ts"
        ),
        [(BASE + 1_003, 2_000, 0), (BASE + 2_000, 2_001, 0)],
    )
    same(
        "parents of inner spans",
        processor.rows(
            "select child.name as inside, parent.name as outside, count(*) from slice child join slice parent "
            "on child.parent_id = parent.id group by 1, 2 order by 1, 2"
        ),
        # Of the two concurrent inner spans on the GPU, one is on a track of its own.
        [("attn_q", "layer", 1), ("matmul", "layer", 2)],
    )
    same("slices that never end", processor.rows("select name from slice where dur < 0"), [])


def check_perfetto(path, engine):
    print(path)
    processor = Processor(path, engine)
    check_both(processor, "category = 'compute'", HOSTILE)
    same(
        "tracks below each lane",
        processor.rows(
            "select lane, group_concat(child, ', ') from (select lane.name as lane, "
            "child.name as child from track lane join track child on child.parent_id = lane.id "
            "where lane.name in ('scheduler', 'cpu', 'gpu') order by 1, 2) group by 1 order by 1"
        ),
        [
            ("cpu", "cpu 1, cpu idle, cpu messages, cpu messages"),
            ("gpu", "gpu 1, gpu 2, gpu 3, gpu idle, gpu messages, queue depth"),
            ("scheduler", "scheduler 1, scheduler idle, scheduler messages"),
        ],
    )
    same(
        "flows from span to message and from message to span",
        processor.rows(
            "select a.name as sender, b.name as receiver, count(*) from flow join slice a on flow.slice_out = a.id "
            "join slice b on flow.slice_in = b.id group by 1, 2 order by 1, 2"
        ),
        [("admit", "chunk", 1), ("chunk", "layer", 3), ("layer", "chunk", 3)],
    )
    same(
        "spans that a message from the first layer leads to",
        processor.rows(
            "select b.ts, b.dur from slice a join flow f on f.slice_out = a.id "
            "join flow g on g.slice_out = f.slice_in join slice b on g.slice_in = b.id "
            f"where a.ts = {BASE} and a.name = 'layer' order by b.ts"
        ),
        [(BASE + 1_003, 2_000), (BASE + 2_000, 2_001)],
    )
    same(
        "messages",
        processor.rows(
            "select ts, dur, extract_arg(arg_set_id, 'debug.held_by'), "
            "extract_arg(arg_set_id, 'debug.held_ns'), extract_arg(arg_set_id, 'debug.lost') "
            "from slice where category = 'message' order by ts, dur"
        ),
        [
            (BASE, 0, None, None, None),
            (BASE + 999, 2, "back-pressure", 9, None),
            (BASE + 1_000, 999, None, None, None),
            (BASE + 4_000, 0, None, None, 1),
        ],
    )
    same(
        "arguments of a span",
        processor.rows(
            "select extract_arg(arg_set_id, 'debug.chunk'), extract_arg(arg_set_id, 'debug.layer'),"
            " extract_arg(arg_set_id, 'debug.rows'), extract_arg(arg_set_id, 'debug.bytes'),"
            " extract_arg(arg_set_id, 'debug.activity'), extract_arg(arg_set_id, 'debug.request')"
            " from slice where name = 'attn_q' and category = 'compute'"
        ),
        [(7, 3, 2, 1_000, "compute", None)],
    )
    same(
        "values of the counter",
        processor.rows(
            "select ts, value from counter join track on track.id = counter.track_id "
            "where name = 'queue depth' order by ts"
        ),
        [(BASE, 1.0), (BASE + 1_500, -3.0), (BASE + 4_000, float(2**63 - 1))],
    )
    same(
        "idle and busy time of each lane add up to the makespan",
        processor.rows(
            "select track.name, sum(dur) from slice join track on track.id = slice.track_id "
            "where category = 'idle' group by 1 order by 1"
        ),
        [
            ("cpu idle", 4_001 - 1_000 - 1),
            ("gpu idle", 1_003),
            ("scheduler idle", 4_001),
        ],
    )
    same(
        "length of the critical path",
        processor.rows("select sum(dur) from slice where category in ('running', 'waiting')"),
        [(4_001,)],
    )
    same(
        "process",
        processor.rows("select name from process where pid = 1"),
        [('hostile "name" </script> \U0001f426',)],
    )
    processor.close()


def check_chrome(path, engine):
    print(path)
    processor = Processor(path, engine)
    # The trace processor does not decode the escapes of a JSON string.
    check_both(processor, "category = 'compute'", json.dumps(HOSTILE)[1:-1])
    same(
        # In this format, a flow attaches to the innermost slice at its time.
        "flows from innermost span to innermost span",
        processor.rows(
            "select a.name as sender, b.name as receiver, count(*) from flow join slice a on flow.slice_out = a.id "
            "join slice b on flow.slice_in = b.id group by 1, 2 order by 1, 2"
        ),
        [("admit", "attn_q", 1), ("matmul", "layer", 2)],
    )
    same(
        "messages",
        processor.rows(
            "select slice.name, count(*), sum(dur) from slice where category = 'message' group by 1"
        ),
        [("chunk", 4, 1_001)],
    )
    same(
        "threads",
        processor.rows("select name from thread where name like 'gpu%' order by tid"),
        [("gpu 1",), ("gpu 2",), ("gpu 3",), ("gpu idle",)],
    )
    same(
        "values of the counter",
        processor.rows(
            "select ts, value from counter join track on track.id = counter.track_id "
            "where name = 'gpu: queue depth value' or name = 'gpu: queue depth' order by ts"
        ),
        [(BASE, 1.0), (BASE + 1_500, -3.0), (BASE + 4_000, float(2**63 - 1))],
    )
    processor.close()


def main():
    folder, engine = sys.argv[1], sys.argv[2]
    check_perfetto(os.path.join(folder, "run.pftrace"), engine)
    check_chrome(os.path.join(folder, "run.json"), engine)


main()
