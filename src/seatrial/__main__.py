"""`python -m seatrial` is the command `seatrial`."""

from __future__ import annotations

from seatrial.cli import main

if __name__ == "__main__":
    main()
