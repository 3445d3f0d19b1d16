"""Inputs of any length that other readers took quadratic or exponential time for."""

from __future__ import annotations

from collections.abc import Callable

Family = Callable[[int], bytes]
"""About so many bytes of one kind."""


def repeated(unit: bytes, head: bytes = b"", tail: bytes = b"") -> Family:
    """`unit` again and again."""
    return lambda size: head + unit * (size // len(unit)) + tail


def nested(left: bytes, right: bytes, middle: bytes = b"1") -> Family:
    """As deep as it is long."""
    return lambda size: left * (size // 2 // len(left)) + middle + right * (size // 2 // len(right))


SLOW_CUT = b"\x00\x3f"
"""Pieces of 64 bytes: for readers that are fed."""

ONE_CUT = b"\x0f\xff"

PLAIN: dict[str, Family] = {
    "spaces": repeated(b" "),
    "newlines": repeated(b"\n"),
    "carriage returns": repeated(b"\r"),
    "nul": repeated(b"\x00"),
    "one long word": repeated(b"a"),
    "digits": repeated(b"9"),
    "dots and digits": repeated(b"1."),
    "bad utf-8": repeated(b"\xff"),
    "escapes never closed": repeated(b"\x1b]"),
    "escape strings": repeated(b"\x1b]0;x"),
    "brackets": repeated(b"["),
    "nested brackets": nested(b"[", b"]"),
    "nested braces": nested(b'{"a":', b"}"),
    "quotes": repeated(b"'"),
    "escaped quotes": repeated(b'\\"'),
    "commas": repeated(b","),
    "colons": repeated(b": "),
    "keys of secrets": repeated(b"api_key="),
    "a secret never closed": repeated(b"a", head=b"api_key='"),
    "flags": repeated(b"--a-b"),
    "dashes": repeated(b"-"),
    "out of memory": repeated(b"CUDA out of memory. Tried to allocate 1.0 GiB. GPU 0 has a total "),
    "tracebacks": repeated(b"Traceback (most recent call last)\nValueError: x\n"),
    "stamped lines": repeated(b"[2026-12-02 14:00:00 TP0] Load weight begin. avail mem=1.0 GB\n"),
    "bars": repeated(b"\rMulti-thread loading shards:  25% Completed | 1/4 [00:03<00:09,  3.01s/it]"),
    "cards": repeated(b"0, NVIDIA, GPU-1, 1, 2, 3, 4, 5, 6, 7, 8, 9\n"),
    "fences": repeated(b"```python\n"),
    "think": repeated(b"<think>"),
    "closed thinks": repeated(b"<think></think>"),
    "docstrings": repeated(b'"""\n'),
    "events": repeated(b'data: {"text": "a", "meta_info": {"completion_tokens": 1}}\n\n'),
    "an event of many lines": repeated(b"data: x\n"),
    "chat chunks": repeated(b'data: {"choices": [{"delta": {"content": "abcd", "tool_calls": [{"function": '
                            b'{"arguments": "x"}}]}}]}\n\n'),
    "yaml lists": repeated(b"- a\n"),
    "yaml keys": lambda size: b"".join(b"k%d: v\n" % number for number in range(size // 9)),
    "yaml anchors": repeated(b"- &a x\n"),
    "sections": repeated(b"= a\n b\n"),
    "matrix": repeated(b" \tGPU0\tX\n"),
    "help": repeated(b"  --port PORT {a,b,c}  x\n"),
    "spec words": repeated(b"b=16 ", head=b"add "),
    "spec lists": repeated(b"8,", head=b"sweep B="),
    "spec quotes": repeated(b"\\'", head=b"add note='"),
}  # fmt: skip
