"""The bare server of `bench fanout`: it accepts connections and writes given bytes to all of them at given moments.

Nothing that serves can do with less: a plain loop over plain sockets. What a server needs more than this is its own.
"""

from __future__ import annotations

import gc
import json
import socket
import sys
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

from triplewire.bench.fanout_links import answer, more_files

_HELLO = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n"


class Bare:
    """Sockets that block: a write is one call of the system."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._clients: list[socket.socket] = []
        self._door = socket.socket()
        self._door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._door.bind(tuple(told["address"]))
        self._door.listen(4096)
        self._door.settimeout(0.2)

    def accept(self) -> int:
        """All that are waiting; how many there are now."""
        while True:
            try:
                client, _ = self._door.accept()
            except TimeoutError:
                return len(self._clients)
            client.settimeout(None)
            client.recv(4096)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.send(_HELLO)
            self._clients.append(client)

    def replay(self, trace: Path) -> int:
        """Write each block to every client when its moment has come; how many blocks there were."""
        blocks = [(after / 1e9, b64decode(data)) for after, data in json.loads(trace.read_text())]
        began = time.monotonic()
        for after, data in blocks:
            time.sleep(max(0.0, began + after - time.monotonic()))
            for client in self._clients:
                client.send(data)
        return len(blocks)


def main() -> None:
    more_files()
    gc.disable()
    bare = Bare(json.loads(sys.stdin.readline()))
    answer(ready=True)
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if "replay" in order:
            answer(blocks=bare.replay(Path(order["replay"])))
        else:
            answer(clients=bare.accept())


if __name__ == "__main__":
    main()
