"""Which programs a shell command line runs, and which of them can have set its exit code.

A small reader of POSIX-like command lines: quotes, ``&&``, ``||``, ``;``, pipes, groups, assignments, wrappers
(`sudo`, `timeout 10`, ``bash -c``). It never runs anything, and it does not expand variables or globs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    \#[^\n]*                                  # comment (only where a word could start; see _tokens)
  | [^\s;|&()'"\\]++(?!['"\\])                # a word without quotes
  | &&|\|\||;;|\|&|[;|&\n()]                  # operators
  | (?:[^\s;|&()'"\\]++|\\.|'[^']*+'|"(?:[^"\\]++|\\.)*+"|['"])+   # any word; a lone quote is kept as a character
    """,
    re.VERBOSE | re.DOTALL,
)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_ASSIGNMENT = re.compile(r"\w+\+?=")
_REDIRECT = re.compile(r"\d*(?:>>?|<<?<?|>&|&>)")
_KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "{", "}", "time"})
_WRAPPERS = frozenset(
    {
        "sudo",
        "npx",
        "bunx",
        "env",
        "nice",
        "nohup",
        "timeout",
        "gtimeout",
        "command",
        "builtin",
        "exec",
        "stdbuf",
        "doas",
        "xargs",
    }
)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "fish"})
_SUBCOMMANDS = frozenset(
    {
        *("git", "go", "npm", "pnpm", "yarn", "bun", "cargo", "docker", "kubectl", "gh", "pip", "uv", "poetry"),
        *("mise", "make", "brew", "apt", "apt-get", "dotnet", "mvn", "gradle", "terraform", "aws", "nix", "conda"),
        *("helm", "systemctl", "just", "rake", "bundle", "composer", "deno", "az", "gcloud", "supabase", "vercel"),
    }
)
_COMPOUND = frozenset({"for", "case", "select", "function"})
_SPECIAL = _KEYWORDS | _WRAPPERS | _SHELLS | _COMPOUND
"""Words that do more at the start of a command than name the program that runs."""
_OPERATORS = frozenset({"&&", "||", ";", ";;", "|", "|&", "&", "\n", "(", ")"})
_NAME = re.compile(r"[\w:.-]{1,40}")
_STRUCTURE = re.compile(r"[&|;()\n'\"\\#]|<<")
"""What a line of one plain command does not have."""
_MAX = 20_000
"""Characters of a command line that are read; what follows can no longer change its head in practice."""


class Command(NamedTuple):
    """One simple command: `head` (``grep``, ``git push``), its program, whether ``!`` inverts it, its words."""

    head: str
    program: str
    inverted: bool
    words: tuple[str, ...]


class Line(NamedTuple):
    """A parsed line: every command in order, and those whose failure can be the line's exit code."""

    commands: tuple[Command, ...]
    deciders: tuple[Command, ...]


_NONE: tuple[tuple[Command, ...], tuple[Command, ...]] = ((), ())


def parse(text: str) -> Line:
    """Read a command line.

    In ``a && b`` either can have failed; in ``a || b``, ``a ; b`` and ``a | b`` only b decides.
    """
    text = text[:_MAX]
    return _parse_whole(text) if _STRUCTURE.search(text) else Line(*_simple(text.split()))


def _parse_whole(text: str) -> Line:
    if "<<" in text:
        text = _HEREDOC.sub("\n", text)
    commands: list[Command] = []
    deciders: list[Command] = []
    words: list[str] = []
    pending = "start"
    for token in (*_tokens(text), ";"):
        if token not in _OPERATORS:
            if words or token[0] != "#":
                words.append(token)
            continue
        found, deciding = _simple(words)
        if found:
            commands += found
            if pending != "&&":
                deciders.clear()
            deciders += deciding
            pending = token
        elif token == "&&" or pending == "start":
            pending = token
        words.clear()
    return Line(tuple(commands), tuple(deciders))


def _tokens(text: str) -> list[str]:
    """Operators, words and comments; without the newlines and ampersands that are part of a word or a redirection."""
    if "\\\n" not in text and ">&" not in text and "<&" not in text:
        return _TOKEN.findall(text)
    out = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n" and text[match.start() - 1 : match.start()] == "\\":
            continue
        if token == "&" and text[match.start() - 1 : match.start()] in (">", "<"):
            continue
        out.append(token)
    return out


def _simple(words: list[str]) -> tuple[tuple[Command, ...], tuple[Command, ...]]:
    """What a `Line` holds: the command behind keywords, assignments and wrappers; a whole line for ``bash -c``; empty
    for none."""
    if not words:
        return _NONE
    program = words[0]
    if program not in _SPECIAL and program.isalnum():
        return _command(program[:60], False, words[1:])
    inverted = False
    at = 0
    while at < len(words):
        word = words[at]
        if word in _KEYWORDS:
            inverted ^= word == "!"
            at += 1
            continue
        if not word.isalnum() and (_ASSIGNMENT.match(word) or _REDIRECT.match(word)):
            at += 1
            continue
        program = _program(word)
        if program in _WRAPPERS:
            at += 1
            while at < len(words) and (words[at].startswith("-") or words[at][:1].isdigit()):
                at += 1
        elif program in _COMPOUND:
            return _NONE
        else:
            break
    else:
        return _NONE
    rest = words[at + 1 :]
    if program in _SHELLS:
        for i, word in enumerate(rest[:-1]):
            if word.startswith("-") and word.endswith("c"):
                return parse(_unquote(rest[i + 1]))
    return _command(program, inverted, rest)


def _command(program: str, inverted: bool, rest: list[str]) -> tuple[tuple[Command, ...], tuple[Command, ...]]:
    head = program
    if program in _SUBCOMMANDS:
        sub = _subcommand(rest)
        head = f"{program} {sub}" if sub else program
    one = (Command(head, program, inverted, tuple(rest)),)
    return one, one


def _subcommand(rest: list[str]) -> str | None:
    if rest and rest[0].isalnum() and len(rest[0]) <= 40:
        return rest[0]
    skip = False
    for word in rest:
        if skip:
            skip = False
        elif word in ("-C", "-c", "--repo", "-R", "--filter", "-w", "--prefix"):
            skip = True
        elif not word.startswith("-"):
            plain = _unquote(word)
            return plain if _NAME.fullmatch(plain) else None
    return None


def _program(word: str) -> str:
    name = word if word.isalnum() else _unquote(word).rsplit("/", 1)[-1]
    return name if len(name) <= 60 else name[:60]


def _unquote(word: str) -> str:
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        inner = word[1:-1]
        return inner.replace('\\"', '"') if word[0] == '"' else inner
    return word.lstrip("\\")
