"""`seatrial label`: give labels at the keyboard, hand them out and take them in, compare two annotators."""

from __future__ import annotations

import enum
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, LevelOption, SeedOption, StoreOption

if TYPE_CHECKING:
    from seatrial.flows.label import Item


class Unit(enum.StrEnum):
    """What is labelled."""

    turn = "turn"
    action = "action"
    output = "output"


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(invoke_without_command=True)
    group.callback()(label)
    group.command("agreement")(agreement)
    app.add_typer(group, name="label")


def label(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Answers are appended here.")] = Path("labels.jsonl"),
    unit: Annotated[Unit, typer.Option(help="Human turns, agent actions, or final outputs.")] = Unit.turn,
    annotator: Annotated[str, typer.Option(help="Who labels; with --import, where a line names nobody.")] = "me",
    n: Annotated[
        int,
        typer.Option(
            min=1, help="How many items to expect: each is drawn by chance, so the queue holds about this many."
        ),
    ] = 100,
    random_share: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share drawn at random; the rest is what detectors are unsure of.")
    ] = 0.5,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write the queue as JSONL instead of asking.")
    ] = None,
    take: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Take answers from a JSONL file instead of asking.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep-queue", help="Keep the queue in the store, for 'seatrial serve', instead of asking.")
    ] = False,
    criterion: Annotated[
        list[str] | None, typer.Option(help="A criterion of the rubric for outputs; may be repeated.")
    ] = None,
    store: StoreOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Label turns, actions or outputs of stored sessions; stop with q and go on later with the same command.

    Models are not shown. Every item's chance of being drawn is recorded with its label.

    Examples:

      seatrial label --n 200 --annotator ana

      seatrial label --unit output --export queue.jsonl
    """
    if context.invoked_subcommand is not None:
        return
    from seatrial.errors import UsageError
    from seatrial.flows import label as flow
    from seatrial.settings import load
    from seatrial.store import Store

    if take is not None:
        _take(take, out, annotator, unit, store, as_json)
        return
    opened = Store.open(store or load().store)
    with output.progress(quiet=as_json) as step:
        queue = flow.queue(opened, unit.value, n, random_share=random_share, seed=seed, progress=step)
    waiting = queue.items
    left_out = [f"{d.n} {d.what}: {d.why}" for d in queue.left_out]
    if criterion and not (keep and unit is Unit.output):
        raise UsageError("criteria are for a kept queue of outputs", hint="--unit output --keep-queue")
    waiting = tuple(flow.by_criterion(waiting, criterion or ()))
    if keep:
        plural = {"turn": "turns", "action": "actions", "output": "outputs"}[unit.value]
        kept = {"unit": unit.value, "criteria": criterion or [], "items": waiting}
        output.keep(opened.path, "label queue", kept, name=f"{len(waiting)} {plural}",
                    data_version=opened.data_version, warnings=left_out)  # fmt: skip
        _end({"queue": len(waiting), "unit": unit.value}, f"{len(waiting)} items wait in the store", as_json, left_out)
        return
    if export is not None:
        import msgspec

        output.write(export, "".join(msgspec.json.encode(item).decode() + "\n" for item in waiting))
        told = f"{len(waiting)} items written to {export}"
        _end({"exported": len(waiting), "file": str(export)}, told, as_json, left_out)
        return
    from seatrial.report.text import visible

    screen = output.console(stderr=True)
    _interruptible()
    given = flow.ask(
        waiting, out, annotator, _show, lambda: _key(as_json), lambda text: screen.print(visible(text), markup=False)
    )
    held = len([a for a in flow.read_answers(out) if a.annotator == annotator])
    result = {"answered": given, "held": held, "queue": len(waiting), "file": str(out)}
    _end(result, f"{given} answers now, {held} in {out}", as_json, left_out)


def _take(path: Path, out: Path, annotator: str, unit: Unit, store: str | None, as_json: bool) -> None:
    from seatrial.flows.label_import import take
    from seatrial.settings import load
    from seatrial.store import Store

    place = store or load().store
    there = store is not None or "://" in str(place) or (Path(place) / "store.json").exists()
    opened = Store.open(place) if there else None
    made = take(path, out, annotator=annotator, unit=unit.value, store=opened)
    warnings = list(made.warnings)
    if opened is None:
        warnings.append("there is no store here, so it is not known whether the answers' items are in it")
    result: dict[str, object] = {
        "imported": made.imported, "held": made.held, "unknown": made.unknown, "file": made.file,
    }  # fmt: skip
    already = f"; {made.held} were there already" if made.held else ""
    _end(result, f"{made.imported} answers taken into {out}{already}", as_json, warnings)


def _show(item: Item, place: int, total: int) -> None:
    from seatrial.flows.label import KEYS
    from seatrial.report.text import visible

    keys = ", ".join(f"{k} {v}" for k, v in KEYS[item.unit].items())
    lines = [
        f"\n{place} of {total}",
        "  before: " + visible(" ".join(item.before.split())),
        "",
        visible(item.shown),
        "",
    ]
    sys.stderr.write("\n".join([*lines, f"{keys}; s skip, q stop"]) + "\n")


def _key(quiet: bool) -> str:
    if not quiet:
        sys.stderr.write("> ")
        sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        if not quiet:
            sys.stderr.write("\n")
        raise EOFError
    return line


def _interruptible() -> None:
    """Let Ctrl-C end a wait for keys. The library of tables makes system calls start again after a signal, so that a
    read would go on; giving Python its own handler back undoes that."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))


def _end(result: dict[str, object], text: str, as_json: bool, warnings: Sequence[str] = ()) -> None:
    if as_json:
        output.emit("label", result, warnings=warnings)
        return
    for warning in warnings:
        output.warn(warning)
    output.console().print(text, markup=False)


def agreement(
    first: Annotated[Path, typer.Argument(metavar="FILE", help="One annotator's answers.")],
    second: Annotated[Path, typer.Argument(metavar="FILE", help="The other's.")],
    level: LevelOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Cohen's kappa of two annotators, label by label, on the items that both answered.

    Example: seatrial label agreement ana.jsonl ben.jsonl
    """
    from seatrial.flows import label as flow

    result = flow.agreement(flow.answers_of(first), flow.answers_of(second), level=level)
    if as_json:
        output.emit("label agreement", result)
        return
    from seatrial.report import accuracy

    output.show(accuracy.agreement(result))
