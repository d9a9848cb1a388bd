"""The first human message to a task type: small, documented, deterministic, blind to model and run (METHODS 3.3).

Types are tried by points: each phrase family that occurs adds its points to one type; the highest total wins, ties
go to the type listed first; below one point the type is `unknown`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from seatrial.signals import looks

VERSION = "task-type-1"
TYPES = ("debugging", "coding", "workflow", "data", "writing", "research", "service", "conversation", "unknown")

_FAMILIES: tuple[tuple[str, float, str], ...] = (
    ("debugging", 2.0, r"\b(?:bug|debug|fix|broken|crash\w*|stack ?trace|traceback|regression|flaky|hotfix)\b"),
    ("debugging", 2.0, r"\w*(?:Error|Exception)\b|\b(?:error|exception|failing|fails|failed|failure)\b"),
    (
        "debugging",
        1.5,
        r"\b(?:doesn.?t|not|isn.?t|won.?t|stopped) (?:work\w*|load\w*|show\w*|pass\w*|start\w*|build\w*)\b",
    ),
    ("debugging", 1.0, r"\bwhy (?:is|does|do|did|are|am)\b.*\b(?:slow|wrong|missing|empty|null|undefined|not)\b"),
    ("coding", 2.0, r"\b(?:implement|refactor|code|function|class|method|api|endpoint|component|module|typescript)\b"),
    ("coding", 1.5, r"\b(?:add|create|build|write|make|update|remove|rename|migrate|support|extend)\b"),
    ("coding", 1.0, r"\b(?:tests?|unit test|repo|repository|library|cli|ui|button|page|flag|option|schema|plugin)\b"),
    ("coding", 1.0, r"\b[\w/-]+\.(?:py|ts|tsx|js|jsx|go|rs|java|rb|c|cpp|h|cs|swift|kt|php|al|sh|sql|vue|css|html)\b"),
    (
        "coding",
        1.0,
        r"\b(?:implementier\w*|programm\w*|implementa\w*|código|codificar|coder)\b|写(?:一个|代码)|实现|実装|作って",
    ),
    ("workflow", 2.5, r"\b(?:commit|push|merge|rebase|branch|pull request|deploy\w*|release|pipeline|ci/cd|cron)\b"),
    ("workflow", 2.0, r"\b(?:install|configure|set ?up|docker\w*|kubernetes|terraform|workflow|automate|automation)\b"),
    ("workflow", 1.0, r"\b(?:run|start|launch|schedule|server|environment|vm|ssh|dns|pr)\b"),
    ("data", 2.5, r"\b(?:dataset|dataframe|csv|parquet|excel|spreadsheet|etl|pandas|sql query|dashboard)\b"),
    ("data", 1.5, r"\b(?:analy[sz]e|plot|chart|visuali[sz]e|aggregate|statistics|regression model|correlation|rows)\b"),
    (
        "writing",
        2.5,
        r"\b(?:essay|blog|article|email|letter|copy ?edit\w*|proofread|poem|story|slogan|tweet|newsletter)\b",
    ),
    ("writing", 1.5, r"\b(?:draft|rewrite|translate|paraphrase|summari[sz]e|readme|document(?:ation)?|changelog)\b"),
    ("research", 2.0, r"\b(?:research|investigate|compare|survey|find out|look (?:up|into)|evaluate|review|audit)\b"),
    (
        "service",
        3.0,
        r"\b(?:my (?:order|reservation|booking|flight|account|subscription|refund|package)|refund|cancel my)\b",
    ),
    (
        "service",
        2.0,
        r"\b(?:reservation|booking|flight|return|exchange|baggage|customer service|delivery|certificate)\b",
    ),
    (
        "conversation",
        1.5,
        r"\A\s*(?:what|who|when|where|why|how|which|is|are|can|could|does|do|should|explain|tell me)\b",
    ),
    ("conversation", 1.0, r"\?\s*\Z"),
    (
        "conversation",
        1.5,
        r"\A\s*(?:hi|hello|hey|thanks|good (?:morning|evening)|hallo|hola|bonjour|olá|你好|こんにちは)\b",
    ),
    (
        "conversation",
        1.0,
        r"\b(?:explain|what does|what is|difference between|understand|opinion|think about|advice)\b",
    ),
)
_COMPILED = tuple((kind, points, re.compile(pattern, re.IGNORECASE)) for kind, points, pattern in _FAMILIES)
_READ = 4_000


@lru_cache(maxsize=1)
def _look() -> looks.Look:
    return looks.Look([pattern for _, _, pattern in _COMPILED])


def classify(text: str) -> str:
    """The type of a request; `unknown` where nothing speaks for one."""
    head = text[:_READ]
    totals = dict.fromkeys(TYPES, 0.0)
    for i in sorted(_look()(looks.plain(head))):
        kind, points, pattern = _COMPILED[i]
        if pattern.search(head):
            totals[kind] += points
    best = max(TYPES, key=lambda kind: totals[kind])
    return best if totals[best] >= 1.0 else "unknown"
