"""Words in tool output that name a fault, and command exits that mean "no" rather than failure (METHODS 1.3).

Everything here is read from the tool's own output, never from prose and never with an eye on the model.
"""

from __future__ import annotations

import re

# (i) Environment: permission, network, disk, quota, service unavailable (METHODS 1.4).
ENVIRONMENT: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for name, pattern in (
        (
            "permission",
            r"permission denied|bad credentials|\b(?:http|error)[ /:\d.]* ?40[13]\b|40[13] (?:unauthorized|forbidden)"
            r"|operation not permitted|access is denied|\bEACCES\b|\bEPERM\b|read-only file system"
            r"|sudo: a (?:terminal|password) is required|sandbox[- ](?:denied|restriction)|interactive authentication",
        ),
        (
            "network",
            r"could not resolve (?:host|proxy)|temporary failure in name resolution|name or service not known"
            r"|connection (?:refused|reset|timed out)|network is unreachable|no route to host"
            r"|\bECONNREFUSED\b|\bECONNRESET\b|\bETIMEDOUT\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bENETUNREACH\b"
            r"|tls handshake timeout|i/o timeout|ssl(?:error| connect error)|failed to connect to",
        ),
        ("disk", r"no space left on device|disk quota exceeded|\bENOSPC\b|disk (?:is )?full|cannot allocate memory"),
        (
            "quota",
            r"rate limit(?: exceeded|ed)|too many requests|quota (?:exceeded|exhausted)|usage limit reached"
            r"|insufficient[_ ]quota|overloaded_error",
        ),
        (
            "service",
            r"service (?:is )?(?:temporarily )?unavailable|\b50[234] (?:bad gateway|service|gateway)"
            r"|bad gateway|gateway time-?out|internal server error|cannot connect to the docker daemon"
            r"|index\.lock['\"]?: file exists|resource temporarily unavailable|server is overloaded"
            r"|unexpected store location|is being (?:deprecated|sunset|retired)",
        ),
    )
)

# Tool-level messages by which a harness reports that it never ran the call, or that the agent misused the tool.
SIBLING = re.compile(r"sibling tool call errored|cancelled: parallel tool call", re.IGNORECASE)
HALLUCINATED = re.compile(
    r"no such tool|unknown tool|tool [\"'`]?[\w.:-]+[\"'`]? (?:not found|does not exist|is not available|is unknown)"
    r"|(?:does not|doesn't) have (?:a )?tool|unsupported tool|unsupported call|unrecognized function",
    re.IGNORECASE,
)
MISUSE = re.compile(
    r"no such file|does not exist|not (?:been )?found|has not been read|no matches found|string to replace|old_string"
    r"|\binvalid\b|\bunrecognized\b|\bunknown (?:option|flag|command|skill|argument|switch|json|field|tool|property)"
    r"|\bunmatched\b|\bunexpected\b|\billegal\b|\bmissing required|required (?:parameter|argument|flag)|usage:"
    r"|parse error|syntax ?error|traceback|\w+error\b|exception|\berrors?\b[\"']?\s*[:\[({]|^\S{1,40}: error\b"
    r"|\berror (?:code|parsing|in|at|while|when|reading|running|executing|loading|creating)|\bERR_\w+|\bE[A-Z]{4,}:"
    r"|\bfatal:|command not found|undefined|is not a function|cannot|could not|unable to|\bfailed\b|\bfail\b|conflict"
    r"|not a (?:git repository|directory)|is a directory|already exists|modified since|did you mean"
    r"|too (?:large|long)|exceeds|mismatch|panic:|assert|is not (?:allowed|supported|valid|defined)|✗|✘|❌"
    r"|^(?:\w[\w.-]*): (?:the |not |no |un|in|can|bad |option)|none of the others can be|mutually exclusive"
    r"|\b(?:style|lint\w*|type|format\w*) (?:issues?|problems?|violations?) (?:were )?found",
    re.IGNORECASE | re.MULTILINE,
)
# Programs that run checks: what they print about permissions or networks comes from the code that they check.
CHECKERS = re.compile(
    r"\b(?:pytest|jest|vitest|mocha|go test|cargo test|tox|nox|rspec|phpunit|unittest|playwright|cypress|ctest|test)\b",
    re.IGNORECASE,
)
CHECK_FAILED = re.compile(r"\b(?:FAIL(?:ED|URES?)?|[1-9]\d* (?:failed|failing)|AssertionError)\b")
TIMEOUT = re.compile(r"command timed out|timed out after|deadline exceeded|timeout expired", re.IGNORECASE)
INTERRUPTED = re.compile(r"\[?request interrupted by user|interrupted by (?:the )?user|user aborted", re.IGNORECASE)
REJECTED = re.compile(
    r"user (?:doesn't|does not|didn't) want to (?:proceed|take)|(?:rejected|denied|declined) by (?:the )?user"
    r"|user (?:has )?(?:rejected|denied|declined|refused)",
    re.IGNORECASE,
)
REJECTION_REASON = re.compile(
    r"(?:the user said|user (?:feedback|provided the following reason[^:]*)|reason given)\s*:\s*(?P<reason>\S.*)",
    re.IGNORECASE | re.DOTALL,
)

# The tool did its part and hands a decision back: nobody misused it.
CONFLICT = re.compile(
    r"^CONFLICT \(|automatic merge failed; fix conflicts|could not apply [0-9a-f]{6,}", re.IGNORECASE | re.MULTILINE
)
CONFLICTING = frozenset({"git merge", "git rebase", "git cherry-pick", "git pull", "git revert", "git stash", "git am"})
# Others had pushed meanwhile: the log does not say whether the agent should have known.
REMOTE_AHEAD = re.compile(r"! \[rejected\].*\((?:fetch first|non-fast-forward)\)")

# Programs whose exit codes answer a question. The set holds the codes that mean "no", "different" or "none".
BENIGN_EXITS: dict[str, frozenset[int]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ugrep", "git grep"), frozenset({1})),
    **dict.fromkeys(("diff", "cmp", "colordiff", "comm", "git diff", "delta", "dircmp"), frozenset({1})),
    **dict.fromkeys(("test", "[", "[["), frozenset({1})),
    **dict.fromkeys(("which", "type", "hash", "whereis"), frozenset({1})),
    **dict.fromkeys(("pgrep", "pkill", "pidof", "fuser", "lsof"), frozenset({1})),
    "git check-ignore": frozenset({1}),
    "git merge-base": frozenset({1}),
    "git show-ref": frozenset({1}),
    "git config": frozenset({1}),
    "git symbolic-ref": frozenset({1}),
    "systemctl is-active": frozenset({3}),
    "systemctl is-enabled": frozenset({1}),
    "expr": frozenset({1}),
    "let": frozenset({1}),
    "fzf": frozenset({1}),
}
# Programs that hardly ever fail without saying so on stderr: with a silent output they are not the one that failed.
NOISY = frozenset(
    {
        *("cd", "ls", "cat", "echo", "printf", "export", "set", "source", ".", "pwd", "mkdir", "cp", "mv", "rm"),
        *("head", "tail", "sed", "awk", "sort", "uniq", "wc", "cut", "tr", "find", "touch", "chmod", "git", "go"),
        *("npm", "pnpm", "yarn", "bun", "cargo", "python", "python3", "node", "pip", "uv", "docker", "curl", "jq"),
        *("make", "sleep", "date", "tee", "true", ":", "rustc", "gcc", "tar", "unzip", "gh", "mise", "popd", "pushd"),
    }
)
# The same for commands of two words; the pattern, where there is one, must occur in the output.
BENIGN_COMMANDS: dict[tuple[str, ...], tuple[frozenset[int], re.Pattern[str] | None]] = {
    ("gh", "pr", "checks"): (frozenset({1, 8}), re.compile(r"^\S.*\t(?:pass|fail|pending|skipping)\t", re.MULTILINE)),
    ("gh", "api"): (frozenset({1}), re.compile(r"\"status\": ?\"404\"|\(HTTP 404\)")),
    ("npm", "view"): (frozenset({1}), re.compile(r"\bE404\b")),
    ("npm", "info"): (frozenset({1}), re.compile(r"\bE404\b")),
    ("npm", "outdated"): (frozenset({1}), None),
}
SILENCED = re.compile(r"(?:2|&)>>?\s*/dev/null|>&\s*/dev/null")
"""A command whose complaints are thrown away beforehand expects to fail: ``ls maybe/* 2>/dev/null`` asks."""
PROBES = frozenset({"ls", "stat", "readlink", "cat", "find", "file"})
SIGNALS: dict[int, str] = {130: "interrupt", 141: "closed pipe"}

# Programs that print other files' text: an error message inside it is data, not an error of the command.
READERS = frozenset(
    {
        *("cat", "head", "tail", "less", "more", "bat", "sed", "awk", "grep", "egrep", "fgrep", "rg", "ag", "ack"),
        *("git show", "git diff", "git log", "git grep", "git blame", "strings", "xxd", "jq", "cut", "sort", "uniq"),
        *("echo", "printf", "diff", "nl", "tac", "zcat", "journalctl", "docker logs", "kubectl logs", "yq"),
        *("gh run", "gh pr", "gh issue", "gh api", "find", "xargs", "tee", "column", "fold", "wc"),
    }
)

# Lines that the harness's own shell wrapper leaves in the output: no command of the agent wrote them.
HARNESS_NOISE = re.compile(r"^.*\b(?:dump_(?:zsh|bash)_state|__vsc_\w+|shell-snapshots?)\b.*$\n?", re.MULTILINE)

COMMAND_NOT_FOUND = re.compile(
    r"^\S*(?:sh|eval\)|line \d+)?:.{0,80}: (?:command )?not found$|^\S*(?:sh|eval\)):(?:\d+:)? command not found: \S+",
    re.MULTILINE,
)
# (needle, name, confidence, pattern): the needle is looked for first, it costs next to nothing.
ABNORMAL: tuple[tuple[str, str, float, re.Pattern[str]], ...] = (
    ("Traceback", "traceback", 0.9, re.compile(r"^[ \t]*Traceback \(most recent call last\):$", re.MULTILINE)),
    ("not found", "command not found", 0.9, COMMAND_NOT_FOUND),
    ("fatal: ", "fatal", 0.85, re.compile(r"^fatal: \S.*", re.MULTILINE)),
    ("panic: ", "panic", 0.85, re.compile(r"^panic: \S.*", re.MULTILINE)),
)
HTTP_STATUS = re.compile(
    r"^(?:< )?HTTP/[\d.]+ (?P<code>[45]\d\d)\b.*"
    r"|^(?:http_?code|http status|status(?: code)?)\s*[:=]\s*(?P<alt>[45]\d\d)\b.*",
    re.IGNORECASE | re.MULTILINE,
)
HTTP_PROGRAMS = frozenset({"curl", "wget", "http", "https", "httpie", "xh"})
DECLARED_TEXT = re.compile(
    r"\A\s*(?:error|err|exception|fatal error|fehler|erreur)\s*[:\-–]\s*\S.{0,200}", re.IGNORECASE
)
DECLARED_JSON = re.compile(
    r"\A\s*\{.{0,400}?\"(?:error|errors|error_message|errorMessage)\"\s*:\s*(?:\"[^\"]+\"|\{\s*\"|\[\s*[{\"]|true)"
    r"|\A\s*\{.{0,400}?\"(?:is_?error|isError)\"\s*:\s*true"
    r"|\A\s*\{.{0,400}?\"(?:success|ok)\"\s*:\s*false",
    re.DOTALL,
)
