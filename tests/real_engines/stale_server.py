"""An old server that holds a port, as an engine left from yesterday does.

    python stale_server.py PORT

It is busy, and says so by 503, until somebody has asked it for text. That somebody is the new engine's own warm-up,
which takes the answer for its own and logs that it is ready; whoever looks at the port alone finds a server that is
well.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = {
    "text": " of yesterday",
    "meta_info": {"id": "old", "finish_reason": {"type": "stop"}, "prompt_tokens": 4, "completion_tokens": 8},
    "model_path": "another-model",
    "is_generation": True,
    "has_image_understanding": False,
}


class Handler(BaseHTTPRequestHandler):
    """A plausible document, whatever is asked."""

    asked = threading.Event()

    def do_GET(self) -> None:
        """Readiness and identity."""
        busy = self.path.startswith(("/health", "/ready")) and not self.asked.is_set()
        self._answer(503 if busy else 200)

    def do_POST(self) -> None:
        """A request for text."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(200)
        self.asked.set()

    def _answer(self, status: int) -> None:
        body = json.dumps(ANSWER).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: what it was asked is of no interest."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
