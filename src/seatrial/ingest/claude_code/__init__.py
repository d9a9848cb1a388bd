"""Claude Code session files (JSONL) to traces.

``<session>.jsonl`` is one session; sub-agents are inside it as side chains or progress records, or in files of
their own (``agent-<id>.jsonl``), and become traces of their own.
"""

from seatrial.ingest.claude_code.reader import READER

__all__ = ["READER"]
