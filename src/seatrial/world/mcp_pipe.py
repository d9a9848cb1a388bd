"""Joins standard input and output to a Unix socket: what an MCP client starts, so that it reaches a running test.

``python -I .../mcp_pipe.py SOCKET``. Started by its path it loads nothing of seatrial, and so starts at once.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(path: str) -> int:
    """Copy bytes both ways until one side ends."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(path)
    except OSError as error:
        sys.stderr.write(f"the test that this tool server belongs to has ended: {error}\n")
        return 4

    def up() -> None:
        while data := os.read(0, 65_536):
            link.sendall(data)
        link.shutdown(socket.SHUT_WR)

    threading.Thread(target=up, daemon=True).start()
    while data := link.recv(65_536):
        while data:
            data = data[os.write(1, data) :]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
