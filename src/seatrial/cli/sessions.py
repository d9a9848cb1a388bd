"""`seatrial sessions`: look at what is stored."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, StoreOption


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(help="List, show and search stored sessions.", no_args_is_help=True)
    group.command("list")(list_)
    group.command("show")(show)
    group.command("search")(search)
    app.add_typer(group, name="sessions")


LimitOption = Annotated[int, typer.Option(min=1, help="At most so many rows.")]


def list_(
    store: StoreOption = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    task_type: Annotated[str | None, typer.Option(help="Only this task type.")] = None,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """List stored sessions, newest first.

    Example: seatrial sessions list --model claude-opus-4-6 --limit 20
    """
    import polars as pl

    from seatrial.report import looks
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    frame = opened.table("sessions")
    if model is not None:
        frame = frame.filter(pl.col("models").list.contains(model))
    if task_type is not None:
        frame = frame.filter(pl.col("task_type") == task_type)
    total = int(frame.select(pl.len()).collect().item())
    rows = frame.sort(["start", "session"], descending=[True, False], nulls_last=True).head(limit).collect()
    if as_json:
        result = {"total": total, "sessions": rows.to_dicts()}
        output.emit("sessions list", result, data_version=opened.data_version)
        return
    output.show(looks.sessions(rows.iter_rows(named=True), total))


def show(
    session: Annotated[str, typer.Argument(help="Session id, or the start of one.")],
    store: StoreOption = None,
    limit: LimitOption = 200,
    as_json: JsonOption = False,
) -> None:
    """Show one session step by step.

    Example: seatrial sessions show 175b29b3
    """
    from seatrial.report import looks
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    trace = opened.trace(opened.resolve(session))
    if as_json:
        output.emit("sessions show", trace, data_version=opened.data_version)
        return
    output.show(looks.trace(trace, limit))


def search(
    text: Annotated[str, typer.Argument(help="Text to find, ignoring case.")],
    store: StoreOption = None,
    limit: LimitOption = 50,
    as_json: JsonOption = False,
) -> None:
    """Find sessions and steps whose text contains TEXT (reads every stored trace).

    Example: seatrial sessions search "permission denied"
    """
    from seatrial.report import looks
    from seatrial.settings import load
    from seatrial.store import Store

    opened = Store.open(store or load().store)
    hits: list[dict[str, object]] = []
    wanted = text.casefold()
    ids = opened.session_ids()
    searched = 0
    with output.progress(quiet=as_json) as step:
        for done, session in enumerate(ids, 1):
            searched = done
            for row in opened.trace(session).steps:
                for where, body in [("text", row.text), *((f"results.{i}", r.text) for i, r in enumerate(row.results))]:
                    at = body.casefold().find(wanted)
                    if at >= 0:
                        quote = body[max(0, at - 40) : at + len(text) + 40]
                        hits.append({"session": session, "step": row.index, "where": where, "quote": quote})
            step(done, len(ids), "sessions")
            if len(hits) >= limit:
                break
    hits = hits[:limit]
    if as_json:
        result = {"hits": hits, "searched": searched, "sessions": len(ids)}
        output.emit("sessions search", result, data_version=opened.data_version)
        return
    output.show(looks.hits(hits, searched, len(ids)))
