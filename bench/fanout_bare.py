"""The bare server of `bench fanout`: it accepts connections and writes given bytes to all of them at given moments.

No server can do with less: a plain loop over plain sockets that block, a system call for each write.
"""

from __future__ import annotations

import gc
import json
import socket
import sys
import time
from base64 import b64decode
from pathlib import Path

from bench.links import allow_files, answer

_HELLO = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n"


def _open_listener(address: tuple[str, int]) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(address)
    listener.listen(4096)
    listener.settimeout(0.2)
    return listener


def _accept(listener: socket.socket, clients: list[socket.socket]) -> None:
    """Accept all that are waiting."""
    while True:
        try:
            client, _ = listener.accept()
        except TimeoutError:
            return
        client.settimeout(None)
        client.recv(4096)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.send(_HELLO)
        clients.append(client)


def _replay(trace: Path, clients: list[socket.socket]) -> int:
    """Write each block to every client when its moment has come; return how many blocks there were."""
    blocks = [(after / 1e9, b64decode(data)) for after, data in json.loads(trace.read_text())]
    began = time.monotonic()
    for after, data in blocks:
        time.sleep(max(0.0, began + after - time.monotonic()))
        for client in clients:
            client.send(data)
    return len(blocks)


def main() -> None:
    allow_files()
    gc.disable()
    listener, clients = _open_listener(tuple(json.loads(sys.stdin.readline())["address"])), list[socket.socket]()
    answer(ready=True)
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if "replay" in order:
            answer(blocks=_replay(Path(order["replay"]), clients))
        else:
            _accept(listener, clients)
            answer(clients=len(clients))


if __name__ == "__main__":
    main()
