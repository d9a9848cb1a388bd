"""Tool results to causes: the taxonomy of METHODS 1.3, case by case."""

from __future__ import annotations

import pytest

from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.signals import calls, commands, shell


def bash(command: str, **result: object) -> commands.Finding:
    call = ToolCall(id="1", name="Bash", arguments={"command": command})
    return commands.classify(call, ToolResult(call_id="1", **result), calls.read(command))  # type: ignore[arg-type]


def tool(name: str, **result: object) -> commands.Finding:
    return commands.classify(ToolCall(id="1", name=name), ToolResult(call_id="1", **result), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "heads", "deciders"),
    [
        ("grep -n foo src", ["grep"], ["grep"]),
        ("cd x && FOO=1 sudo timeout 10 rg 'a && b' .", ["cd", "rg"], ["cd", "rg"]),
        ("make build; git push origin main", ["make build", "git push"], ["git push"]),
        ("cat a.txt | sort | uniq -c", ["cat", "sort", "uniq"], ["uniq"]),
        ("false || echo no", ["false", "echo"], ["echo"]),
        ('bash -lc "cd x && grep y z"', ["cd", "grep"], ["cd", "grep"]),
        ("cat <<'EOF' > f\nfalse\nEOF\ntrue", ["cat", "true"], ["true"]),
        ("! diff a b", ["diff"], ["diff"]),
        ("npm --prefix web run build 2>&1", ["npm run"], ["npm run"]),
        ("/usr/bin/env python3 x.py", ["python3"], ["python3"]),
        ("git -C repo -c a=b diff --quiet", ["git diff"], ["git diff"]),
        ("echo 'unclosed", ["echo"], ["echo"]),
        ("", [], []),
    ],
)
def test_a_command_line_is_split_into_commands_and_deciders(line: str, heads: list[str], deciders: list[str]) -> None:
    parsed = shell.parse(line)
    assert [c.head for c in parsed.commands] == heads
    assert [c.head for c in parsed.deciders] == deciders


@pytest.mark.parametrize(
    "command",
    [
        "grep foo x",
        "rg -n foo",
        "diff a b",
        "cmp -s a b",
        "test -f x",
        "[ -f x ]",
        "[[ -d x ]]",
        "pgrep node",
        "which tool",
        "cat a | grep foo",
        "cd repo && git grep foo",
        "! grep -q foo x",
        "git merge-base --is-ancestor a b",
        "echo start; grep foo x",
    ],
)
def test_exit_1_that_means_no_is_benign(command: str) -> None:
    assert bash(command, outcome="error", exit_code=1, text="").cause == "benign"


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("false && rg x", 1, ""),
        ("grep foo missing.txt", 2, "grep: missing.txt: No such file or directory"),
        ("grep foo x", 1, "(eval):1: parse error near `('"),
        ("python app.py", 1, "Traceback (most recent call last):\n  ...\nValueError: x"),
        ("ls nowhere && grep x y", 1, "ls: cannot access 'nowhere': No such file or directory"),
        ("git push", 1, "error: failed to push some refs"),
        ("grep foo x && pytest -q", 1, "1 failed"),
    ],
)
def test_other_failures_are_the_models(command: str, code: int, text: str) -> None:
    assert bash(command, outcome="error", exit_code=code, text=text).cause == "model"


@pytest.mark.parametrize(
    "text",
    [
        "mkdir: cannot create directory '/x': Permission denied",
        "curl: (6) Could not resolve host: example.org",
        "OSError: [Errno 28] No space left on device",
        "Error: 429 Too Many Requests",
        "503 Service Unavailable",
        "connect ECONNREFUSED 127.0.0.1:5432",
        "HTTP 401: Bad credentials",
    ],
)
def test_environment_faults_are_named_by_the_output(text: str) -> None:
    found = bash("make deploy", outcome="error", exit_code=1, text=text)
    assert found.cause == "environment"
    assert found.why.startswith("environment fault: ")


@pytest.mark.parametrize(
    ("outcome", "text", "cause"),
    [
        ("rejected", "no", "rejected"),
        ("error", "The user doesn't want to proceed with this tool use.", "rejected"),
        ("interrupted", "", "interrupted"),
        ("error", "[Request interrupted by user for tool use]", "interrupted"),
        ("error", "<tool_use_error>Sibling tool call errored</tool_use_error>", "interrupted"),
        ("error", "<tool_use_error>File has not been read yet.</tool_use_error>", "model"),
        ("error", "No such tool available: Foo", "model"),
        ("error", "hm", "unknown"),
    ],
)
def test_tool_level_outcomes(outcome: str, text: str, cause: str) -> None:
    assert tool("Edit", outcome=outcome, text=text).cause == cause


def test_a_check_that_fails_is_no_environment_fault_whatever_it_prints() -> None:
    text = "log: 429 too many requests\nFAIL src/otp.spec.ts"
    assert bash("npx jest src/otp", outcome="error", exit_code=1, text=text).cause == "model"
    assert bash("npm test", outcome="error", exit_code=1, text="npm: Permission denied").cause == "environment"


def test_exit_codes_of_signals() -> None:
    assert bash("sleep 9", outcome="error", exit_code=130, text="").cause == "interrupted"
    assert bash("yes | head -1", outcome="error", exit_code=141, text="y").cause == "benign"


def test_an_exit_code_told_in_the_text_is_read() -> None:
    assert bash("grep foo x", outcome="error", text="Exit code 1").cause == "benign"
    assert bash("grep foo x", outcome="error", text="Exit code 2\ngrep: x: No such file").cause == "model"


def test_an_exit_code_that_the_command_prints_is_no_failure() -> None:
    assert bash('false; echo "exit code: $?"', outcome="ok", text="exit code: 1").cause is None


@pytest.mark.parametrize(
    ("command", "text", "why"),
    [
        ("python x.py", "ok\nTraceback (most recent call last):\n  File", "traceback"),
        ("./run.sh", "bash: line 3: jqq: command not found", "command not found"),
        ("git fetch", "fatal: repository 'x' not found", "fatal"),
        ("curl -i http://x", "HTTP/1.1 404 Not Found\nserver: y", "HTTP status"),
        ("curl http://x", '{"error": "no such user"}', "declares an error"),
    ],
)
def test_abnormal_output_with_exit_0(command: str, text: str, why: str) -> None:
    found = bash(command, outcome="ok", exit_code=0, text=text)
    assert found.abnormal
    assert found.cause is None
    assert why in found.why


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("cat app.log", "Traceback (most recent call last):\n  File"),
        ("grep -rn fatal src", "fatal: this is a string in a file"),
        ("git log -3", "fatal: mentioned in a commit message"),
        ("curl -s http://x", '{"error": null, "data": 1}'),
        ("curl -i http://x", "HTTP/1.1 200 OK"),
        ("echo hi", "zsh:1: command not found: dump_zsh_state"),
    ],
)
def test_text_that_is_only_read_is_no_error(command: str, text: str) -> None:
    found = bash(command, outcome="ok", exit_code=0, text=text)
    assert not found.abnormal
    assert found.cause is None


def test_function_tools_declare_errors_in_their_body_and_file_tools_do_not() -> None:
    assert tool("book_reservation", outcome="unknown", text="Error: payment method not found").abnormal
    assert tool("update_order", outcome="ok", text='{"success": false, "reason": "x"}').abnormal
    assert not tool("Read", outcome="ok", text="Error: this is the first line of a file").abnormal
    assert not tool("web_fetch", outcome="ok", text='{"error": "shown on a page"}').abnormal


def trace(*steps: Step, **rest: object) -> Trace:
    return Trace(
        id="t",
        agent=Agent(name="a"),
        provenance=Provenance(format="f", reader="f", reader_version="1"),
        steps=steps,
        **rest,  # type: ignore[arg-type]
    )


def test_prose_is_never_evidence() -> None:
    said = Step(index=0, event_class="agent", text="Traceback (most recent call last):\nfatal: oh no")
    assert commands.detect(trace(said)).signals == []


def test_copied_steps_give_nothing() -> None:
    step = Step(
        index=0,
        event_class="agent",
        copied=True,
        tool_calls=(ToolCall(id="1", name="Bash", arguments={"command": "false"}),),
        results=(ToolResult(call_id="1", outcome="error", exit_code=1),),
    )
    found = commands.detect(trace(step))
    assert found.signals == []
    assert found.calls == []


def test_a_refusal_is_a_correction_candidate_and_its_reason_is_the_evidence() -> None:
    text = "The user doesn't want to proceed with this tool use. To tell you how, the user said:\nuse the other table"
    step = Step(
        index=4,
        event_class="agent",
        model="m",
        tool_calls=(ToolCall(id="1", name="Edit"),),
        results=(ToolResult(call_id="1", outcome="rejected", text=text),),
    )
    error, candidate = commands.detect(trace(step)).signals
    assert (error.kind, error.cause) == ("execution_error", "rejected")
    assert candidate.kind == "correction"
    assert candidate.quote == "use the other table"
    assert candidate.confidence >= 0.7


def test_results_without_ids_are_paired_in_order() -> None:
    step = Step(
        index=0,
        event_class="agent",
        tool_calls=(ToolCall(id="a", name="Bash", arguments={"command": "true"}), ToolCall(id="b", name="Nope")),
        results=(ToolResult(outcome="ok", exit_code=0), ToolResult(outcome="error", text="No such tool available")),
    )
    first, second = commands.detect(trace(step)).calls
    assert (first.outcome, first.hallucinated) == ("ok", False)
    assert (second.outcome, second.hallucinated, second.cause) == ("error", True, "model")


def test_argv_commands_are_read() -> None:
    call = ToolCall(id="1", name="shell", arguments={"command": ["bash", "-lc", "cd x && grep y z"]})
    assert commands.command_text(call) == "cd x && grep y z"
    assert commands.command_text(ToolCall(id="1", name="Edit", arguments={"command": "x"})) is None


NOISE = "/bin/bash: line 3: dump_bash_state: command not found\n"


@pytest.mark.parametrize(
    ("command", "text", "abnormal"),
    [
        ("make build", NOISE, False),
        ("make build", NOISE + "bash: frob: command not found\n", True),
        ("make build", "built\n", False),
        ("cat a | sort", NOISE * 20 + "bash: frob: command not found\n", True),
        ("cat a | sort", "x\n" * 400 + "bash: frob: command not found\n", False),
        (None, NOISE + "error: it broke", True),
        (None, "\n\n" + NOISE + "error: it broke", True),
        (None, "fine\n" + NOISE + "error: it broke", False),
    ],
)  # fmt: skip
def test_what_the_wrapper_prints_is_neither_evidence_nor_in_the_way(
    command: str | None, text: str, abnormal: bool
) -> None:
    arguments = {"command": command} if command is not None else {"file_path": "a.py"}
    call = ToolCall(id="c", name="Bash" if command is not None else "Edit", arguments=arguments)
    read = calls.read(command) if command is not None else None
    found = commands.classify(call, ToolResult(call_id="c", outcome="ok", text=text), read)
    assert found.abnormal is abnormal
