"""Every block of the documentation runs.

A page runs from top to bottom in one temporary folder that holds `sessions/` (a small generated fleet with
`arms.csv` beside it). `python` blocks share one namespace; each `sh` block runs in a shell with `seatrial` on PATH,
but for plain calls of `seatrial` at its beginning and end: those run in this process, by the function that the
program calls, without starting Python for each. On one page all is left to the shell.
Lines that set a checkout up (`git clone`, `cd seatrial`, `scripts/...`) are checked to exist and not run: the
scripts run everything, this test included.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```([a-z]+)[^\n]*\n(.*?)^```$", re.M | re.S)
RUN = {"python", "sh"}
SHOWN = {"text", "json", "yaml", "toml", "csv"}
SITE = {"{toctree}", "{eval-rst}"}
"""What only the documentation site reads; building it checks it (`scripts/docs`)."""
IN_SHELL = "gate-pull-requests.md"
"""The page whose every line is left to the shell."""
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from seatrial.flows import demo

    folder = tmp_path_factory.mktemp("docs")
    demo.make_sessions(folder, sessions=120, seed=3)
    (folder / demo.ASSIGNMENTS).rename(folder / "arms.csv")
    return folder


def blocks(page: Path) -> list[tuple[str, str, int]]:
    text = page.read_text()
    return [(m.group(1), m.group(2), text[: m.start()].count("\n") + 1) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_name_a_known_language(page: Path) -> None:
    fences = re.findall(r"^```(.*)$", page.read_text(), re.M)
    opening = fences[0::2]
    assert all(
        name.split()[0] in RUN | SHOWN | SITE if name.split() else "methods" in page.name or "house" in page.name
        for name in opening
    ), opening


@pytest.mark.parametrize("page", pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def plain(line: str) -> tuple[list[str], str | None] | None:
    """The arguments of a call of `seatrial` that uses nothing of the shell but `> FILE`, and that file; else None."""
    words = list(shlex.shlex(line, posix=False, punctuation_chars=True))
    if words[:1] != ["seatrial"] or "$" in line:
        return None
    arguments = shlex.split(line, comments=True)[1:]
    if any(set(word) <= set("();<>|&") for word in words):
        if [w for w in words if set(w) <= set("();<>|&")] != [">"] or arguments[-2:-1] != [">"]:
            return None
        return arguments[:-2], arguments[-1]
    return arguments, None


def run_plain(line: str, folder: Path, where: str) -> None:
    from seatrial.cli.app import run

    found = plain(line)
    assert found is not None
    arguments, target = found
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = run(arguments)
    assert status == 0, f"{where}\n{line}\n{said.getvalue()}"
    if target is not None:
        (folder / target).write_text(said.getvalue(), encoding="utf-8")


def run_shell(code: str, folder: Path, where: str, *, in_process: bool) -> None:
    lines = []
    for line in code.replace("\\\n", " ").splitlines() if in_process else code.splitlines():
        command = line.split("#")[0].strip()
        if command.startswith(("git clone", "cd seatrial")):
            continue
        if command.startswith("scripts/"):
            assert os.access(ROOT / command.split()[0], os.X_OK), f"{where}: {command} is not there"
            continue
        lines.append(line)
    while in_process and lines and plain(lines[0]):
        run_plain(lines.pop(0), folder, where)
    after: list[str] = []
    while in_process and lines and plain(lines[-1]):
        after.insert(0, lines.pop())
    if any(line.strip() for line in lines):
        env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        script = "set -e\n" + "\n".join(lines)
        done = subprocess.run(["sh", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{where}\n{code}\n{done.stdout}\n{done.stderr}"
    for line in after:
        run_plain(line, folder, where)


def test_what_is_a_plain_call() -> None:
    """The reader of lines that run in this process takes no line that needs a shell."""
    assert plain('seatrial assign "fix login" --arms a,b   # a remark') == (
        ["assign", "fix login", "--arms", "a,b"],
        None,
    )
    assert plain("seatrial rank --json > ranking.json") == (["rank", "--json"], "ranking.json")
    for line in ("seatrial rank | head", "seatrial rank || echo no", 'seatrial signals "$session"', "seatrial a; b",
                 "seatrial serve 2> serve.log & server=$!", "PYTHONPATH=. seatrial run x", "if seatrial gate; then",
                 "seatrial rank > a > b", "", "# seatrial"):  # fmt: skip
        assert plain(line) is None, line


@pytest.mark.parametrize(
    "page", [p for p in pages() if any(b[0] in RUN for b in blocks(p))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_block_runs(page: Path, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for item in fleet.iterdir():
        (tmp_path / item.name).symlink_to(item)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    namespace: dict[str, object] = {"__name__": "docs"}
    for language, code, line in blocks(page):
        where = f"{page.relative_to(ROOT)}:{line}"
        if language == "sh":
            run_shell(code, tmp_path, where, in_process=page.name != IN_SHELL)
        elif language == "python":
            exec(compile("\n" * line + code, where, "exec"), namespace)  # noqa: S102


def test_every_relative_link_resolves() -> None:
    broken = []
    for page in pages():
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert not broken


def test_llms_txt_names_every_page() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "llms"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\.html\): \S", done.stdout, re.M)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(
        p.relative_to(docs).with_suffix("").as_posix() for p in docs.rglob("*.md") if p.parent != docs
    )
    assert len(re.findall(r"\]\(", done.stdout)) == len(listed), "no link but the page's own"
    said = re.findall(r"^- \[[^\]]+\]\([^)]+\): (.*)$", done.stdout, re.M)
    assert [s for s in said if s.startswith("Made by") or s[-1] not in ".?!" or len(s.split()) < 4] == []


def test_the_site_hides_no_warning_and_docstrings_say_it_with_no_bar() -> None:
    """`scripts/docs` fails on a warning, so none may be kept from it. A bar around a word outside double backticks is a
    substitution, which a docstring never means: the site shows it in red."""
    assert "suppress_warnings" not in (ROOT / "docs" / "conf.py").read_text("utf-8")
    named = re.findall(r"automodule:: (\S+)", (ROOT / "docs/reference/api.md").read_text("utf-8"))
    assert len(named) > 20
    for module in named:
        path = ROOT / "src" / Path(*module.split("."))
        tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                plain = re.sub(r"``.*?``", "", ast.get_docstring(node) or "", flags=re.S)
                assert not re.search(r"\|[\w(][^|\n]*\|", plain), (module, getattr(node, "name", ""))
