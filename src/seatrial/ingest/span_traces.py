"""Spans to traces: which spans are model calls, tool runs, agents and sub-agents, and what each adds.

One conversation is one trace: invocations of one recorded session belong together. A model call that several spans
record, one around the other, is one call; tokens are those of the innermost span that has any, and what agents and
roots sum up is never added. A tool inside a tool, and everything else that a span says, is kept in `Trace.extra`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from seatrial.ingest.drafts import an_object, totals
from seatrial.ingest.identity import Ids
from seatrial.ingest.messages import arguments_of
from seatrial.ingest.span_chat import Said, parsed, result_text
from seatrial.ingest.span_dialogue import Dialogue, ModelCall, ToolRun
from seatrial.ingest.span_fields import (
    MODEL,
    SESSION,
    TOOL_INPUT,
    TOOL_NAME,
    TOOL_OUTPUT,
    USER,
    first,
    rest_of,
    talk_in,
    talk_out,
    text_at,
    tools_of,
    usage_of,
)
from seatrial.ingest.span_parts import agent_of, call_id_of, earliest, exception_of, kept, key_of, literal
from seatrial.ingest.spans import Span, Tree, seconds
from seatrial.records import Provenance, Totals, Trace, Usage


class Assembled(msgspec.Struct, kw_only=True):
    """Traces made of spans, and how many spans came twice (the fuller one counts)."""

    traces: list[Trace]
    repeated: int


def assemble(spans: Iterable[Span], origin: Provenance) -> Assembled:
    """The traces of these spans, each conversation followed by its sub-agents; spans may come in any order.

    A trace's id is the spans' trace id, the first one's where a recorded session has several; a sub-agent's adds
    its span's id. Spans without any model call, tool run or message make no trace.
    """
    tree = Tree(spans)
    ids = Ids()
    made: list[Trace] = []
    for name, members in _sessions(tree):
        made.extend(_Session(tree, name, members, origin).traces(ids))
    return Assembled(traces=made, repeated=tree.repeated)


def _sessions(tree: Tree) -> Iterator[tuple[str, list[Span]]]:
    """Spans by conversation, named by its first trace id: those that share a recorded session belong together."""
    by_trace: dict[str, list[Span]] = defaultdict(list)
    for span in tree.spans:
        by_trace[span.trace_id].append(span)
    sessions: dict[str, list[Span]] = defaultdict(list)
    for trace_id, members in by_trace.items():
        named = {value for span in members if (value := text_at(span.attributes, SESSION)) is not None}
        sessions["session " + named.pop() if len(named) == 1 else trace_id].extend(members)
    for members in sessions.values():
        members.sort(key=lambda span: span.start or 0)
        yield members[0].trace_id, members


class _Session:
    """One conversation: its spans, sorted into the main agent's and each sub-agent's."""

    def __init__(self, tree: Tree, name: str, members: list[Span], origin: Provenance) -> None:
        self.tree = tree
        self.name = name
        self.members = members
        self.origin = origin
        self.calls = _calls(tree, members)
        self.in_call = {key_of(span) for chain in self.calls for span in chain}
        self.tools = [s for s in members if tree.role(s) == "tool" and not self._inside_tool(s)]
        self.subagents = self._subagents()
        self.by_scope: dict[tuple[str, str] | None, list[Span]] = defaultdict(list)
        for span in members:
            self.by_scope[self._scope(span)].append(span)
        self.calls_by_scope: dict[tuple[str, str] | None, list[list[Span]]] = defaultdict(list)
        for chain in self.calls:
            self.calls_by_scope[self._scope(chain[0])].append(chain)
        self.tool_keys = {key_of(span) for span in self.tools}

    def _inside_tool(self, span: Span) -> bool:
        """Whether a tool's span is a part of another tool's run, rather than something that an agent called."""
        for above in self.tree.ancestors(span):
            role = self.tree.role(above)
            if role != "other":
                return role == "tool"
        return False

    def _subagents(self) -> dict[tuple[str, str], Span]:
        """Agent spans that are sub-agents: under a tool's run, or under an agent that makes model calls itself."""
        own: set[tuple[str, str]] = set()
        holds: set[tuple[str, str]] = set()
        for chain in self.calls:
            agents = [s for s in self.tree.ancestors(chain[0]) if self.tree.role(s) == "agent"]
            own.update(key_of(s) for s in agents[:1])
            holds.update(key_of(s) for s in agents)
        found: dict[tuple[str, str], Span] = {}
        for span in self.members:
            if key_of(span) not in holds or self.tree.role(span) != "agent":
                continue
            for above in self.tree.ancestors(span):
                role = self.tree.role(above)
                if role == "tool" or (role == "agent" and key_of(above) in own):
                    found[key_of(span)] = span
                if role in ("tool", "agent"):
                    break
        return found

    def _scope(self, span: Span, *, outer: bool = False) -> tuple[str, str] | None:
        """The sub-agent that a span belongs to; None for the main agent. `outer`: the span's own agent excluded."""
        if not outer and key_of(span) in self.subagents:
            return key_of(span)
        return next((key_of(s) for s in self.tree.ancestors(span) if key_of(s) in self.subagents), None)

    def traces(self, ids: Ids) -> Iterator[Trace]:
        """The conversation and its sub-agents; nothing where no span tells of an agent."""
        scopes: list[tuple[str, str] | None] = [None, *self.subagents]
        names = {scope: ids(self.name if scope is None else f"{self.name}~{scope[1]}") for scope in scopes}
        started: dict[str, list[str]] = defaultdict(list)
        parents: dict[tuple[str, str], tuple[str, str | None]] = {}
        for key, span in self.subagents.items():
            tool = next(
                (s for s in self.tree.ancestors(span) if key_of(s) in self.tool_keys or key_of(s) in self.subagents),
                None,
            )
            by = tool if tool is not None and self.tree.role(tool) == "tool" else None
            parents[key] = (names[self._scope(span, outer=True)], call_id_of(by) if by is not None else None)
            if by is not None:
                started[by.span_id].append(names[key])
        for scope in scopes:
            trace = self._trace(scope, names[scope], started)
            if trace is None:
                continue
            if scope is not None:
                parent, parent_call = parents[scope]
                trace = msgspec.structs.replace(trace, parent=parent, parent_call=parent_call)
            yield trace

    def _trace(self, scope: tuple[str, str] | None, name: str, started: dict[str, list[str]]) -> Trace | None:
        calls, mine = self.calls_by_scope[scope], self.by_scope[scope]
        tools = [span for span in mine if key_of(span) in self.tool_keys]
        dialogue = Dialogue(person=scope is None)
        units: dict[str, list[Span]] = defaultdict(list)
        for span in mine:
            units[span.trace_id].append(span)
        chains: dict[str, list[list[Span]]] = defaultdict(list)
        for chain in calls:
            chains[chain[0].trace_id].append(chain)
        runs: dict[str, list[Span]] = defaultdict(list)
        for tool in tools:
            runs[tool.trace_id].append(tool)
        for trace_id, members in sorted(units.items(), key=lambda item: earliest(item[1])):
            self._unit(dialogue, members, chains[trace_id], runs[trace_id], started)
        steps = dialogue.steps()
        if not any(step.event_class == "agent" for step in steps):
            return None
        return self._record(name, mine, calls, steps)

    def _record(self, name: str, mine: list[Span], calls: list[list[Span]], steps: Any) -> Trace:
        summed = totals(steps)
        usage, by = summed.usage, None
        if usage == Usage():
            above = next((s for s in mine if key_of(s) not in self.in_call and usage_of(s) is not None), None)
            if above is not None:
                usage, by = usage_of(above) or usage, above.span_id
        extent = [t for span in mine for t in (seconds(span.start), seconds(span.end)) if t is not None]
        used = {key_of(chain[-1]) for chain in calls} | self.tool_keys
        unused = [span for span in mine if key_of(span) not in used]
        others = [kept(span, rest_of(span) if key_of(span) in self.in_call else None) for span in unused]
        tools = next((t for chain in calls for span in reversed(chain) if (t := tools_of(span))), None)
        extra: dict[str, Any] = {"trace_ids": list(dict.fromkeys(span.trace_id for span in mine))}
        session = next((value for span in mine if (value := text_at(span.attributes, SESSION)) is not None), None)
        if session is not None:
            extra["session"] = session
        if others:
            extra["spans"] = others
        if mine and mine[0].resource:
            extra["resource"] = mine[0].resource
        model = next((step.model for step in steps if step.model is not None and not step.copied), None)
        return Trace(
            id=name,
            agent=agent_of(self.tree, mine, tools),
            model=model,
            user=next((u for span in mine if (u := text_at(span.attributes, USER)) is not None), None),
            steps=steps,
            totals=Totals(
                usage=usage,
                wall=round(max(extent) - min(extent), 6) if extent else None,
                extra={"usage_of_span": by} if by is not None else {},
            ),
            provenance=self.origin,
            extra=extra,
        )

    def _unit(
        self,
        dialogue: Dialogue,
        members: list[Span],
        calls: list[list[Span]],
        tools: list[Span],
        started: dict[str, list[str]],
    ) -> None:
        """One invocation: its root's words, its model calls and tool runs in order of their start."""
        root = _root(self.tree, members, self.in_call)
        asked = talk_in(root) if root is not None else None
        question = [s for s in asked.said if s.who == "user"] if asked is not None else []
        dialogue.begin(s.text for s in question)
        before = len(dialogue.drafts)
        opened = seconds(earliest(members)) if members else None
        queue: list[tuple[int, int, list[Span] | Span]] = [
            *((chain[-1].start or 0, self.tree.order[id(chain[-1])], chain) for chain in calls),
            *((tool.start or 0, self.tree.order[id(tool)], tool) for tool in tools),
        ]
        queue.sort(key=lambda entry: entry[:2])
        responses: set[str] = set()
        done: set[int] = set()
        for n, (_, _, event) in enumerate(queue):
            if n in done:
                continue
            if isinstance(event, list):
                self._called(dialogue, event, opened, responses)
                continue
            run = self._run(event, started)
            if not dialogue.knows(run.call_id) and (maker := _maker(queue, n, run.call_id)) is not None:
                done.add(maker)
                made = queue[maker][2]
                if isinstance(made, list):
                    self._called(dialogue, made, opened, responses)
            dialogue.run(run)
        tells = bool(calls or tools) or (root is not None and _speaks(self.tree, root))
        new = dialogue.drafts[before:]
        if question and tells and not any(d.event_class in ("human", "harness") for d in new):
            dialogue.open_with(question, opened, before)
        dialogue.trail(question, seconds(root.end) if root is not None else None, before)
        if tells and dialogue.silent(before):
            words = _answer(self.tree, members, root, self.in_call)
            if words:
                dialogue.close_with(words, seconds(root.end) if root is not None else None)

    def _called(self, dialogue: Dialogue, chain: list[Span], opened: float | None, responses: set[str]) -> None:
        leaf = chain[-1]
        response = text_at(leaf.attributes, ("gen_ai.response.id", "ai.response.id"))
        if response is not None:
            if response in responses:
                return
            responses.add(response)
        call = _model_call(chain)
        dialogue.call(call, opened)

    def _run(self, span: Span, started: dict[str, list[str]]) -> ToolRun:
        a = span.attributes
        given = parsed(first(a, TOOL_INPUT))
        if isinstance(given, dict) and set(given) == {"input"}:
            given = parsed(given["input"])
        if isinstance(given, str):
            given = literal(given)
        arguments, raw, _ = arguments_of(given)
        output = first(a, TOOL_OUTPUT)
        text = result_text(output)
        shaped = an_object(parsed(output))
        failed = (
            shaped.get("isError")
            if isinstance(shaped.get("isError"), bool)
            else shaped.get("status") == "error" or None
        )
        error = span.status == "error" or failed is True
        if error and not text:
            text = span.status_message or exception_of(span)
        above = self.tree.parent(span)
        name = text_at(a, TOOL_NAME) or (text_at(above.attributes, ("tool.name",)) if above is not None else None)
        answers = shaped.get("tool_call_id")
        return ToolRun(
            span_id=span.span_id,
            name=name or span.name.removeprefix("execute_tool ").removeprefix("running tool: "),
            call_id=call_id_of(span) or (answers if isinstance(answers, str) else None),
            arguments=arguments,
            raw_arguments=raw,
            text=text,
            outcome="error" if error else "ok" if span.end is not None else "unknown",
            end=seconds(span.end),
            subagents=tuple(started.get(span.span_id, ())),
            extra={"span": kept(span, hide=frozenset((*TOOL_INPUT, *TOOL_OUTPUT)))},
        )


def _calls(tree: Tree, members: list[Span]) -> list[list[Span]]:
    """Model calls, each as the spans that record it from the outermost to the innermost, in order of start.

    A span around several model calls is no call; it sums up.
    """
    models = [span for span in members if tree.role(span) == "llm"]
    above: dict[int, Span] = {}
    inside: dict[int, int] = defaultdict(int)
    for span in models:
        for outer in tree.ancestors(span):
            role = tree.role(outer)
            if role == "llm":
                above[id(span)] = outer
                inside[id(outer)] += 1
            if role != "other":
                break
    chains = []
    for span in models:
        if inside[id(span)]:
            continue
        chain, outer_span = [span], above.get(id(span))
        while outer_span is not None and inside[id(outer_span)] == 1:
            chain.insert(0, outer_span)
            outer_span = above.get(id(outer_span))
        chains.append(chain)
    return chains


def _model_call(chain: list[Span]) -> ModelCall:
    """One call from the spans that record it: the innermost wins, the outer ones fill what it lacks."""
    leaf = chain[-1]
    ins = [talk for span in reversed(chain) if (talk := talk_in(span)) is not None]
    outs = [talk for span in reversed(chain) if (talk := talk_out(span)) is not None]
    given = next((t for t in ins if t.shaped), ins[0] if ins and _is_text(ins[0].said) else None)
    said = next((t for t in outs if t.shaped), None)
    if said is None:
        plain = [t for t in outs if _is_text(t.said) and t.said[0].text != "None"]
        said = plain[0] if plain else None
    error = next((s.status_message or exception_of(s) or "error" for s in reversed(chain) if s.status == "error"), None)
    return ModelCall(
        ids=[span.span_id for span in chain],
        start=seconds(leaf.start),
        end=seconds(leaf.end),
        given=given.said if given is not None else [],
        said=said.said if said is not None else [],
        model=next((m for span in reversed(chain) if (m := text_at(span.attributes, MODEL)) is not None), None),
        usage=next((u for span in reversed(chain) if (u := usage_of(span)) is not None), None),
        error=error,
        extra={"span": kept(leaf, rest_of(leaf))},
    )


def _maker(queue: list[tuple[int, int, list[Span] | Span]], at: int, call_id: str | None) -> int | None:
    """The model call of the same start that made this tool call: it comes first, whatever the order of the spans."""
    if call_id is None:
        return None
    for n in range(at + 1, len(queue)):
        if queue[n][0] != queue[at][0]:
            return None
        event = queue[n][2]
        if isinstance(event, list):
            talk = next((t for span in reversed(event) if (t := talk_out(span)) is not None and t.shaped), None)
            if talk is not None and any(call.id == call_id for said in talk.said for call in said.calls):
                return n
    return None


def _root(tree: Tree, members: list[Span], calls: set[tuple[str, str]]) -> Span | None:
    """The outermost span of an invocation that has words of its own and is no model call."""
    inside = {span.span_id for span in members}
    tops = [s for s in members if s.parent_id not in inside and key_of(s) not in calls and tree.role(s) != "tool"]
    for span in [*tops, *(s for s in members if tree.role(s) == "agent" and key_of(s) not in calls)]:
        talk = talk_in(span)
        if talk is not None and (talk.shaped or _is_text(talk.said)):
            return span
    return None


def _answer(tree: Tree, members: list[Span], root: Span | None, calls: set[tuple[str, str]]) -> str:
    """The last words of an invocation whose model calls do not show them: its root's, or an agent's."""
    agents = [s for s in reversed(members) if tree.role(s) == "agent" and key_of(s) not in calls]
    for span in [*([root] if root is not None else []), *agents]:
        talk = talk_out(span)
        if talk is not None and (talk.shaped or _is_text(talk.said)):
            words = [s.text for s in talk.said if s.who == "agent" and s.text]
            if words:
                return words[-1]
    return ""


def _speaks(tree: Tree, root: Span) -> bool:
    """Whether a root without model calls still tells of an agent: its platform has recorded no more than its words."""
    return tree.role(root) == "agent" or "langfuse.trace.input" in root.attributes


def _is_text(said: list[Said]) -> bool:
    return bool(said) and said[0].text[:1] not in ("{", "[")
