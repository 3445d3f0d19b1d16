"""Runs the hidden tests against an answer that lives in another process. Executed in the sandbox: stdlib only.

The answer's code runs in a witness process that is asked over pipes; values come back as plain data. So an answer
cannot end the tests early with a good word, print a verdict, redefine a helper or return an object that equals
everything. The report goes out on this process's own standard output, behind a secret that only this process was told.
This is a sanity check against accidents and shortcuts, not a security boundary.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import os
import subprocess
import sys
from typing import Any, NoReturn

from ddconsole.passes.crossing import decode, encode

PR_SET_DUMPABLE = 4
MAX_FAILURES = 20


class AnswerEndedError(BaseException):
    """The witness process is gone. No `except Exception` of a test may swallow that."""


class AnswerRaisedError(Exception):
    """The answer raised something that is no builtin exception."""


class Remote:
    """Something of the answer's: it can be called and asked for attributes, and equals only itself."""

    def __init__(self, witness: Witness, target: dict[str, Any]) -> None:
        self._witness = witness
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._witness.call(self._target, list(args), kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._witness.ask(self._target | {"attribute": name})["result"]


class Witness:
    """The process that runs the answer's code, seen from the jury."""

    def __init__(self, program: str) -> None:
        incoming, to_it = os.pipe()
        from_it, outgoing = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", program, str(incoming), str(outgoing)],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            pass_fds=(incoming, outgoing),
        )
        os.close(incoming)
        os.close(outgoing)
        self._replies = os.fdopen(from_it, "r")
        self._requests = os.fdopen(to_it, "w")
        self.out_of_memory = False

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and take its reply, raising what the answer raised.

        Raises:
            AnswerEndedError: it ended its process.
        """
        line = ""
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()
            line = self._replies.readline()
        if not line.endswith("\n"):
            raise AnswerEndedError("the answer ended its process")
        reply = json.loads(line)
        if "raised" in reply:
            self._raise(reply["raised"], reply["message"])
        return {key: decode(value, self._stand_in) for key, value in reply.items()}

    def _stand_in(self, items: list[Any]) -> Remote:
        return Remote(self, {"handle": items[0]})

    def _raise(self, kinds: list[str], message: str) -> NoReturn:
        """The nearest builtin exception of what the answer raised."""
        self.out_of_memory = self.out_of_memory or "MemoryError" in kinds
        for kind in kinds:
            error = getattr(builtins, kind, None)
            if isinstance(error, type) and issubclass(error, Exception) and error is not Exception:
                raised = _made(error, message)
                if raised is not None:
                    raise raised
        raise AnswerRaisedError(f"{kinds[0]}: {message}")

    def call(self, target: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call something of the answer; lists, dicts and sets given to it are changed here as they were there."""
        reply = self.ask(target | {"args": encode(args, _handle), "kwargs": encode(kwargs, _handle)})
        for mine, theirs in zip(args, reply["args"], strict=True):
            if type(mine) is not type(theirs) or mine == theirs:
                continue
            if isinstance(mine, list | bytearray):
                mine[:] = theirs
            elif isinstance(mine, dict | set):
                mine.clear()
                mine.update(theirs)
        return reply["result"]

    def dismiss(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                pipe.close()


def _made(kind: type[Exception], message: str) -> Exception | None:
    """An exception of that kind, None where it wants more than a message."""
    try:
        return kind(message)
    except TypeError:
        return None


def _handle(value: Any) -> list[Any]:
    """What an argument that cannot cross is sent as: the handle that it came with."""
    if isinstance(value, Remote) and "handle" in value._target:
        return ["handle", [value._target["handle"], "Remote"]]
    raise TypeError(f"a test gave the answer a {type(value).__name__}, which cannot cross to it")


def is_test(statement: ast.stmt) -> bool:
    """A top-level statement that asserts or calls `check`. Definitions, imports and assignments are set-up."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return False
    return any(isinstance(node, ast.Assert) or _calls_check(node) for node in ast.walk(statement))


def _calls_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check"


def hear(witness: Witness, case: dict[str, str]) -> dict[str, Any]:
    """Load the answer, run the tests, and report: total, passed, failures, error (the answer's), grader (ours)."""
    statements = ast.parse(case["tests"]).body
    report: dict[str, Any] = {"total": sum(map(is_test, statements)), "passed": 0, "failures": []}
    report["error"] = _load(witness, case)
    if report["error"] is None:
        run_tests(statements, witness, case["entry_point"], report)
    return report | {"memory": witness.out_of_memory}


def _load(witness: Witness, case: dict[str, str]) -> str | None:
    """Why the answer cannot be tested, or None."""
    try:
        reply = witness.ask({"load": case["answer"], "entry_point": case["entry_point"]})
    except (AnswerEndedError, AnswerRaisedError) as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if reply["found"] else f"the answer does not define {case['entry_point']}"


def run_tests(statements: list[ast.stmt], witness: Witness, entry_point: str, report: dict[str, Any]) -> None:
    """Every top-level statement in its order. A set-up statement that fails is the tests' own fault."""
    function = Remote(witness, {"name": entry_point})
    space = {entry_point: function, "candidate": function, "__name__": "tests"}
    for statement in statements:
        try:
            exec(compile(ast.Module([statement], []), "<tests>", "exec"), space)
        except AnswerEndedError as error:
            report["error"] = str(error)
            return
        except Exception as error:
            text = f"{ast.unparse(statement)[:200]}: {type(error).__name__}: {error}".removesuffix(": ")[:400]
            if not is_test(statement):
                report["grader"] = text
                return
            report["failures"] = [*report["failures"], text][:MAX_FAILURES]
        else:
            report["passed"] += is_test(statement)


def hold(case: dict[str, str], secret: str, witness_program: str) -> None:
    """The whole hearing. The last thing written to standard output is the secret and the report."""
    _hide_memory()
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    witness = Witness(witness_program)
    try:
        report = hear(witness, case)
    except Exception as error:
        report = {"total": 0, "passed": 0, "failures": [], "grader": f"{type(error).__name__}: {error}"[:500]}
    finally:
        witness.dismiss()
    os.write(1, (secret + json.dumps(report) + "\n").encode())


def _hide_memory() -> None:
    """Keep a process of the same user from reading this one's memory and descriptors, on Linux."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
