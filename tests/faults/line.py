"""A line that can be cut or frozen: a TCP proxy between the console and the demo host's ssh server."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from pathlib import Path

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset: the other side sees the line break, not end."""


class Line:
    """Forwards connections to a port of this machine until it is told otherwise."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Break every connection; new ones are taken. How many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for end in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        return len(pairs)

    def freeze(self) -> int:
        """Nothing arrives any more, and nobody is told. How many connections that holds up."""
        self._flowing.clear()
        with self._lock:
            return len(self._pairs)

    def thaw(self) -> None:
        """What was held back arrives."""
        self._flowing.set()

    def close(self) -> None:
        """No connection is left."""
        self._server.close()
        self.thaw()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            with self._lock:
                self._pairs.add((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        with self._lock:  # one that has ended cannot be hit any more
            self._pairs = {pair for pair in self._pairs if source not in pair}


def put_between(state_dir: Path) -> Line:
    """Let everybody who looks for the demo host of this folder find the line to it instead."""
    info = json.loads((state_dir / "demo-host.json").read_text())
    line = Line(info["port"])
    known = state_dir / "known_hosts"
    key = known.read_text().split(" ", 1)[1]
    known.write_text(known.read_text() + f"[127.0.0.1]:{line.port} {key}")
    (state_dir / "demo-host.json").write_text(json.dumps(info | {"port": line.port}))
    return line
