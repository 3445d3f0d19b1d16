"""Runs an answer's code and calls it on request. A program of its own in the sandbox: stdlib only.

It owns nothing but its side of two pipes. It never sees the tests, what they expect, or the jury's secret.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from typing import IO, Any

from ddconsole.passes.crossing import decode, encode


class Bench:
    """The answer's names, and the objects of it that the jury holds handles to."""

    def __init__(self) -> None:
        self.space: dict[str, Any] = {"__name__": "answer", "__builtins__": builtins}
        self.kept: list[Any] = []

    def keep(self, value: Any) -> list[Any]:
        """Keep a value that cannot cross."""
        self.kept.append(value)
        return ["handle", [len(self.kept) - 1, type(value).__name__]]

    def fetch(self, items: list[Any]) -> Any:
        """The kept value of a handle."""
        return self.kept[items[0]]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What a request comes to: the result, and the arguments as the call left them."""
        if "load" in request:
            exec(compile(request["load"], "<answer>", "exec"), self.space)
            return {"found": request["entry_point"] in self.space}
        target = self.space[request["name"]] if "name" in request else self.kept[request["handle"]]
        if "attribute" in request:
            return {"result": encode(getattr(target, request["attribute"]), self.keep)}
        args, kwargs = decode(request["args"], self.fetch), decode(request["kwargs"], self.fetch)
        result = target(*args, **kwargs)
        return {"result": encode(result, self.keep), "args": encode(args, self.keep)}


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Answer requests, one JSON object a line, until the other side closes."""
    bench = Bench()
    for line in requests:
        try:
            reply = bench.answer(json.loads(line))
        except BaseException as error:  # the answer may raise anything, SystemExit too: all of it is an outcome
            reply = {"raised": [kind.__name__ for kind in type(error).__mro__], "message": str(error)[:500]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main() -> None:
    """Serve on the pipes whose descriptors stand in the arguments."""
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    incoming, outgoing = int(sys.argv[1]), int(sys.argv[2])
    sys.argv[:] = ["answer"]
    with os.fdopen(incoming, "r") as requests, os.fdopen(outgoing, "w") as replies:
        serve(requests, replies)
