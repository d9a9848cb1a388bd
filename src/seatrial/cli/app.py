"""The command `seatrial`: groups, version, and the one place where errors become exit codes."""

from __future__ import annotations

import functools
import os
import sys
from typing import Annotated, Any

import typer

from seatrial._version import __version__
from seatrial.cli.assign import register as add_assign
from seatrial.cli.demo import register as add_demo
from seatrial.cli.doctor import register as add_doctor
from seatrial.cli.empty import refuse_empty
from seatrial.cli.export import register as add_export
from seatrial.cli.gate import register as add_gate
from seatrial.cli.grade import register as add_grade
from seatrial.cli.ingest import register as add_ingest
from seatrial.cli.judge import register as add_judge
from seatrial.cli.label import register as add_label
from seatrial.cli.output import report_error
from seatrial.cli.rank import register as add_rank
from seatrial.cli.recover import register as add_recover
from seatrial.cli.run import register as add_run
from seatrial.cli.scorecard import register as add_scorecard
from seatrial.cli.serve import register as add_serve
from seatrial.cli.sessions import register as add_sessions
from seatrial.cli.signals import register as add_signals
from seatrial.cli.steward import register as add_steward
from seatrial.cli.store import register as add_store
from seatrial.cli.suite import register as add_suite
from seatrial.cli.task import register as add_task
from seatrial.cli.triage import register as add_triage
from seatrial.cli.watch import register as add_watch
from seatrial.cli.weights import register as add_weights
from seatrial.errors import InfrastructureError, SeatrialError

app = typer.Typer(
    name="seatrial",
    help="A sea trial for AI agents: how well they do real work, from the traces they leave, "
    "and what the measurement is worth.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 regression or check failed, 2 usage or bad input, "
    "3 inconclusive or missing evidence, 4 infrastructure.",
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


for add in (
    add_demo,
    add_rank,
    add_ingest,
    add_sessions,
    add_signals,
    add_label,
    add_weights,
    add_scorecard,
    add_gate,
    add_judge,
    add_assign,
    add_run,
    add_grade,
    add_triage,
    add_task,
    add_suite,
    add_store,
    add_recover,
    add_serve,
    add_export,
    add_steward,
    add_watch,
    add_doctor,
):
    add(app)


INTERRUPTED = 130
"""The status of a command that Ctrl-C ended."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    status = run(sys.argv[1:] if argv is None else argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = _unheard()
    sys.exit(status)


@functools.cache
def _tree(asked: typer.Typer) -> Any:
    """The tree of commands, made once a process: reading all signatures takes a tenth of a second."""
    made = typer.main.get_command(asked)
    refuse_empty(made)
    return made


def run(argv: list[str]) -> int:
    """Run the command line; returns the exit status instead of exiting."""
    as_json = "--json" in argv
    try:
        status = _tree(app).main(args=argv, prog_name="seatrial", standalone_mode=False)
        if status == INTERRUPTED:  # the library that parses arguments makes a status of an interrupt
            raise KeyboardInterrupt
        return status if isinstance(status, int) else 0
    except SeatrialError as error:
        report_error(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("\nseatrial: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        return _unheard()
    except SystemExit as error:  # how the library that parses arguments ends on a closed pipe
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return _unheard()
    except Exception as error:
        status = _usage(error, as_json=as_json)
        if status is None:
            raise
        return status
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of compiled code, which is no Exception
            raise
        broken = InfrastructureError(f"a library gave up: {error}", hint="if a store was read, run: seatrial verify")
        report_error(broken, as_json=as_json)
        return broken.exit_code


def _unheard() -> int:
    """Status of a command whose reader has left (`| head`): that of a program ended by the closed pipe, since nobody
    heard its answer; what is still to be written goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return 141


def _usage(error: Exception, *, as_json: bool) -> int | None:
    """Exit status of an argument error, after reporting it; None when it is not one."""
    message = getattr(error, "format_message", None)
    if message is not None:
        from seatrial.errors import UsageError

        context = getattr(error, "ctx", None)
        hint = f"see '{context.command_path} --help'" if context is not None else "see 'seatrial --help'"
        text = str(message())
        if not text:  # no arguments: help was already printed
            return 2
        report_error(UsageError(text.rstrip("."), hint=hint), as_json=as_json)
        return 2
    if type(error).__name__ in {"Abort", "Exit"}:
        return int(getattr(error, "exit_code", 130))
    return None
