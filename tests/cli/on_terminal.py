"""Runs a program on a terminal of its own and prints what happened as JSON.

Usage: on_terminal.py STEPS PROGRAM ARGUMENT...
STEPS is a JSON list of {"wait": TEXT}, {"send": TEXT} and {"signal": NUMBER}. A wait looks only at
output that came after the text of the wait before it.
"""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

LIMIT_S = 60


def main():
    steps, command = json.loads(sys.argv[1]), sys.argv[2:]
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    before = termios.tcgetattr(slave)

    def lead():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=lead
    )
    end = time.monotonic() + LIMIT_S
    output, seen, problem = "", 0, None

    def read(seconds):
        nonlocal output
        if select.select([master], [], [], seconds)[0]:
            output += os.read(master, 65536).decode("utf-8", "replace")
            return True
        return False

    for step in steps:
        if "wait" in step:
            while step["wait"] not in output[seen:] and time.monotonic() < end:
                if not read(0.1) and child.poll() is not None:
                    break
            at = output.find(step["wait"], seen)
            if at < 0:
                problem = "no " + repr(step["wait"])
                break
            seen = at + len(step["wait"])
        elif "send" in step:
            os.write(master, step["send"].encode())
        else:
            child.send_signal(step["signal"])
    while child.poll() is None:
        if problem or time.monotonic() > end:
            problem = problem or "the program does not end"
            child.kill()
        read(0.05)
    while read(0.05):
        pass
    print(
        json.dumps(
            {
                "output": output,
                "code": child.returncode,
                "restored": termios.tcgetattr(slave) == before,
                "problem": problem,
            }
        )
    )


main()
