"""`seatrial judge`: judges that agree with people, or do not gate (METHODS 6.4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli import output
from seatrial.cli.output import JsonOption, KeepOption, LevelOption, SeedOption

if TYPE_CHECKING:
    from seatrial.flows.judge import Work
    from seatrial.store import Store

CACHE = ".seatrial/judge-cache"

Endpoint = Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint (default: url in the judge's file).")]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Environment variable that holds the endpoint's key (default: SEATRIAL_API_KEY, else, for "
        "api.openai.com alone, OPENAI_API_KEY).",
    ),
]


def register(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(
        help="Judge recorded work by a rubric; validate the judge against people.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("run")(run)
    group.command("compare")(compare)
    group.command("validate")(validate)
    group.command("lint")(lint)
    app.add_typer(group, name="judge")


def run(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Traces to judge.")],
    judge: Annotated[Path, typer.Option("--judge", metavar="FILE", help="The judge: judge.toml.")],
    url: Endpoint = None,
    key_variable: KeyVariable = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write verdicts as a results table (JSONL) for the gate.")
    ] = None,
    cache: Annotated[Path, typer.Option(metavar="DIR", help="Where answers are kept; nothing is asked twice.")] = Path(
        CACHE
    ),
    plan: Annotated[bool, typer.Option("--plan", help="Ask nothing: say what it would take.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, metavar="USD", help="Stop when this much is spent.")
    ] = None,
    allow_own_family: Annotated[
        bool, typer.Option("--allow-own-family", help="Let a model judge agents of its own family.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge at most so many outputs.")] = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    store_dir: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge recorded work by a rubric, one verdict per criterion; says what it costs before and while it asks.

    Traces without consent to judge (their text leaves the machine) are left out and counted: by the consent that they
    carry, those of --store, and the setting consent where there is none.

    Examples:

      seatrial judge run traces/ --judge judge.toml --url http://localhost:8000/v1 --out verdicts.jsonl

      seatrial judge run traces/ --judge judge.toml --plan
    """
    from seatrial.flows import judge as flow
    from seatrial.flows.judge_endpoint import endpoint, priced_judge
    from seatrial.flows.stamps import read_judge
    from seatrial.grading.judge_cache import Cache
    from seatrial.report.chapters import judge as chapter
    from seatrial.settings import load

    spec = priced_judge(read_judge(judge), load().prices)
    kind = None if format == "auto" else format
    work = flow.read_work(paths, spec, format=kind, limit=limit, store=_store(store_dir))
    left_out = _left_out(work)
    store = Cache(cache)
    need = flow.plan(spec, work, store)
    tokens = (need.usage.input_tokens or 0) + (need.usage.output_tokens or 0)
    line = chapter.plan(need.outputs, need.cached, tokens, need.usage.cost_usd)
    if plan:
        if as_json:
            output.emit("judge run", {"plan": {"outputs": need.outputs, "cached": need.cached, "tokens": tokens,
                                               "cost_usd": need.usage.cost_usd}}, warnings=left_out)  # fmt: skip
        else:
            output.console().print(line)
            _warn(left_out)
        return
    complete = endpoint(spec, url, key_variable)
    flow.may_judge(spec, work, allow_own_family=allow_own_family)
    if not as_json:
        output.console(stderr=True).print(line)
    with output.progress(quiet=as_json) as step:
        judged = flow.run(
            spec, work, complete, cache=store, allow_own_family=allow_own_family,
            max_cost_usd=max_cost, progress=step,
        )  # fmt: skip
    if out is not None:
        output.write(out, flow.results_text(judged))
    counts: dict[str, list[int]] = {c.id: [0, 0, 0] for c in spec.criteria}
    for _, verdicts in judged.rows:
        for v in verdicts:
            counts[v.metric][2 if v.passed is None else 0 if v.passed else 1] += 1
    result: dict[str, Any] = {
        "judge": spec.name,
        "asked": judged.asked,
        "cost_usd": judged.cost_usd,
        "unscored": judged.unscored,
        "criteria": {m: {"met": a, "not_met": b, "unscored": c} for m, (a, b, c) in counts.items()},
        "verdicts": flow.results_rows(judged),
    }
    output.keep(store_dir, "judge run", result, name=f"{spec.name} ran", warnings=left_out)
    if as_json:
        output.emit("judge run", result, warnings=left_out)
    else:
        _warn(left_out)
        output.show(chapter.judged({m: (c[0], c[1], c[2]) for m, c in counts.items()}, judged.asked, judged.cost_usd))
    if work.outputs and judged.unscored == len(work.outputs):
        from seatrial.errors import EvidenceError

        raise EvidenceError("no verdict of the judge could be used, so nothing is scored",
                            hint="look at the reasons in --out or --json")  # fmt: skip


def _store(where: str | None) -> Store | None:
    """The store whose consents count: the one that `--store` names."""
    from seatrial.store import Store

    return None if where is None else Store.open(where, create=True)


def _left_out(work: Work) -> list[str]:
    return [f"{d.n} {d.what}: {d.why}" for d in work.left_out]


def _warn(texts: list[str]) -> None:
    for text in texts:
        output.warn(text)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="Traces of the one run.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Traces of the other, at the same tasks.")],
    judge: Annotated[Path, typer.Option("--judge", metavar="FILE", help="The judge, kind = 'pairwise': judge.toml.")],
    url: Endpoint = None,
    key_variable: KeyVariable = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every pair's verdict (JSONL).")] = None,
    cache: Annotated[Path, typer.Option(metavar="DIR", help="Where answers are kept; nothing is asked twice.")] = Path(
        CACHE
    ),
    plan: Annotated[bool, typer.Option("--plan", help="Ask nothing: say what it would take.")] = False,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, metavar="USD", help="Stop when this much is spent.")
    ] = None,
    allow_own_family: Annotated[
        bool, typer.Option("--allow-own-family", help="Let a model judge agents of its own family.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Read at most so many traces of each run.")] = None,
    format: Annotated[str, typer.Option(help="Source format; auto recognises each file.")] = "auto",
    level: LevelOption = 0.95,
    as_json: JsonOption = False,
) -> None:
    """Ask a judge which of two runs did better, task by task, every pair in both orders.

    A pair whose choice changes with the order has no winner; how often that happens is the judge's position bias, and
    is printed.

    Examples:

      seatrial judge compare old/ new/ --judge pairs.toml --url http://localhost:8000/v1

      seatrial judge compare old/ new/ --judge pairs.toml --plan
    """
    from seatrial.flows import judge as flow
    from seatrial.flows import judge_pairs as pairwise
    from seatrial.flows.judge_endpoint import endpoint, priced_judge
    from seatrial.flows.stamps import read_judge
    from seatrial.grading.judge_cache import Cache
    from seatrial.report.chapters import judge as chapter
    from seatrial.settings import load

    spec = priced_judge(read_judge(judge), load().prices)
    kind = None if format == "auto" else format
    first, second = (flow.read_work([path], spec, format=kind, limit=limit) for path in (a, b))
    store = Cache(cache)
    left_out = [*_left_out(first), *_left_out(second)]
    pairs, _ = pairwise.pairs_of(first, second)
    need = pairwise.plan(spec, pairs, store)
    tokens = (need.usage.input_tokens or 0) + (need.usage.output_tokens or 0)
    line = chapter.plan(need.outputs, need.cached, tokens, need.usage.cost_usd, what="pairs in both orders")
    if plan:
        if as_json:
            output.emit("judge compare", {"plan": {"pairs": need.outputs, "cached": need.cached, "tokens": tokens,
                                                   "cost_usd": need.usage.cost_usd}}, warnings=left_out)  # fmt: skip
        else:
            output.console().print(line)
            _warn(left_out)
        return
    complete = endpoint(spec, url, key_variable)
    pairwise.may_compare(spec, first, second, allow_own_family=allow_own_family)
    if not as_json:
        output.console(stderr=True).print(line)
    with output.progress(quiet=as_json) as step:
        found = pairwise.compare(
            spec, first, second, complete, cache=store, allow_own_family=allow_own_family,
            max_cost_usd=max_cost, level=level, progress=step,
        )  # fmt: skip
    if out is not None:
        output.write(out, pairwise.rows_text(found))
    if as_json:
        output.emit("judge compare", found, warnings=left_out)
    else:
        _warn(left_out)
        output.show(chapter.preferences(found, str(a), str(b)))
    if found.preferred is None:
        from seatrial.errors import EvidenceError

        raise EvidenceError("no pair has a winner, so nothing is scored", hint="look at the reasons in --out or --json")


def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Human and judge verdicts: CSV, JSON or JSONL.")],
    judge: Annotated[
        Path | None, typer.Option("--judge", metavar="FILE", help="The judge: judge.toml; needed for a stamp.")
    ] = None,
    stamp: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the stamp, to be committed.")] = None,
    judge_column: Annotated[str | None, typer.Option(help="Column of the judge's verdicts (default: judge).")] = None,
    human: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A human's column (default: human_1, ...); repeatable.")
    ] = None,
    item: Annotated[str | None, typer.Option(help="Column that names the item.")] = None,
    task: Annotated[str | None, typer.Option(help="Column of the task that items share.")] = None,
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    store: KeepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold a judge to people's verdicts: agreement, kappa, alpha, sensitivity, specificity, biases, and its standing.

    Exits 3 where no criterion is usable.

    Examples:

      seatrial judge validate labels.csv

      seatrial judge validate labels.csv --judge judge.toml --stamp judge.stamp.json
    """
    import msgspec

    from seatrial.errors import UsageError
    from seatrial.flows import judge as flow
    from seatrial.flows.stamps import make_stamp, read_judge, write_stamp
    from seatrial.grading.ratings import Columns
    from seatrial.report.chapters import judge as chapter

    if stamp is not None and judge is None:
        raise UsageError("a stamp is bound to a judge", hint="--judge judge.toml")
    spec = read_judge(judge) if judge is not None else None
    columns = Columns(judge=judge_column, humans=tuple(human or ()), item=item, task=task)
    standings = flow.validate_file(file, columns, spec=spec, level=level, seed=seed)
    rows = [msgspec.to_builtins(s) for s in standings]
    if stamp is not None and spec is not None:
        write_stamp(stamp, make_stamp(spec, standings))
    output.keep(store, "judge validate", {"criteria": rows}, name=f"{spec.name if spec else file} against people")
    if as_json:
        output.emit("judge validate", {"criteria": rows})
    else:
        output.show(chapter.standing(rows))
        if stamp is not None:
            output.console().print(f"Stamp: {stamp}")
    if not any(s.status == "usable" for s in standings):
        raise typer.Exit(3)


def lint(
    judge: Annotated[Path, typer.Argument(metavar="FILE", help="The judge: judge.toml.")],
    as_json: JsonOption = False,
) -> None:
    """Flag criteria that two people could not check alike. Exits 1 when there are findings.

    Examples:

      seatrial judge lint judge.toml
    """
    from seatrial.flows.stamps import read_judge
    from seatrial.grading.lint import lint as findings_of
    from seatrial.report.chapters import judge as chapter

    spec = read_judge(judge)
    findings = findings_of(spec.criteria)
    if as_json:
        rows = [{"criterion": f.criterion, "rule": f.rule, "text": f.text} for f in findings]
        output.emit("judge lint", {"findings": rows})
    else:
        output.show(chapter.lint(findings, len(spec.criteria)))
    if findings:
        raise typer.Exit(1)
