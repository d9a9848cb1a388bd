"""A PDDL text game that steps in milliseconds: the same engine and grammar as TextWorld's own, asked for less.

TextWorld's environment derives every admissible command after every step, translates the game anew at every reset
(twice: a second time for its planner), and takes 40 to 120 ms a step for it. Here the game is translated once, a reset
takes changes back, commands are derived once per operator, and facts and commands are listed only when somebody asks.
What the engine did once in a state it need not do again: branches of one run ask for the same steps all the time.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from seatrial.errors import InputError, MissingExtra

try:
    import fast_downward
    from alfworld.agents.utils.misc import Demangler
    from textworld.envs.pddl import logic as pddl
    from textworld.envs.pddl.textgen import ContextSensitiveGrammar
    from textworld.generator.game import EntityInfo
    from textworld.logic import Placeholder, Proposition, Type, Variable

    from seatrial.world.pddl_text import Teller
except ImportError as error:
    raise MissingExtra("alfworld", "a TextWorld game") from error

NOTHING = "Nothing happens."
"""TextWorld's answer to a command that it does not take."""


_Operator = tuple[int, int]
"""The engine's number of an operator, and how many effects it has."""


class Seen:
    """What one step shows. `facts` and `admissible_commands` are those of the present, derived when read."""

    def __init__(self, game: PddlGame, feedback: str) -> None:
        self._game = game
        self.feedback = feedback
        self.won = game.won()

    @property
    def facts(self) -> list[str]:
        """What is true now, in the game's names, sorted."""
        return self._game.facts()

    @property
    def admissible_commands(self) -> list[str]:
        """What the game takes now, sorted."""
        return self._game.commands()


class PddlGame:
    """One game, with TextWorld's ``load``, ``reset`` and ``step``; commands and feedback are the same, word for word.

    Raises:
        InputError: the file holds no PDDL game.
    """

    def load(self, path: str) -> None:
        """Read and translate the game: about 0.4 s."""
        try:
            data = json.loads(Path(path).read_bytes())
            domain, problem, grammar = data["pddl_domain"], data["pddl_problem"], data["grammar"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError("this is no PDDL game", file=path, hint="name a game.tw-pddl file") from error
        self.walkthrough: tuple[str, ...] = tuple(data.get("walkthrough") or ())
        self._logic, rules = _logic_of(domain, grammar)
        self._library = fast_downward.load_lib()
        self._state = _State(self._library, problem, self._logic)
        names = {v.name: EntityInfo(v.name, v.type) for fact in self._state.facts for v in fact.arguments}
        demangler = Demangler(game_infos=names, shuffle=False)
        for info in names.values():
            info.name = demangler.demangle_alfred_name(info.id)
            info.definite, info.indefinite = "the", "a"
        self._names = names
        self._teller = Teller(rules, self._state, names)
        self._plain = {k: info.name for k, info in names.items()}
        self._commands: dict[str, str] = {}
        self._moving = {_predicate(e) for a in self._state.task.actions for e in a.effects}
        read = {p.removeprefix("not_") for p in re.findall(r"(\w+)\(\w+\s*:", grammar)}
        self._state.watch(read)
        self._said: dict[tuple[str, str, frozenset[Any]], str] = {}
        self._offered: dict[frozenset[Any], dict[str, str]] = {}

    def reset(self) -> Seen:
        """Begin anew: well under a millisecond."""
        self._state.begin()
        return Seen(self, self._tell("#intro#", ""))

    def step(self, command: str) -> tuple[Seen, int, bool]:
        """Say a command. The first operator with that command is applied, as TextWorld does."""
        name = self._offers().get(command.strip())
        if name is None:
            seen = Seen(self, NOTHING)
        else:
            self._state.apply_named(name)
            action = name.split(" ", 1)[0]
            seen = Seen(self, self._tell(self._logic.actions[action].feedback_rule, name))
        return seen, int(seen.won), seen.won

    def won(self) -> bool:
        """The goal is reached."""
        return self._state.won()

    def facts(self) -> list[str]:
        """What is true now, in the game's names, sorted."""
        return sorted(
            f"{f.name}({', '.join(f'{self._plain.get(v.name) or v.name}: {v.type}' for v in f.arguments)})"
            for f in self._state.facts
        )

    def commands(self) -> list[str]:
        """What the game takes now, sorted."""
        return sorted(self._offers())

    def _offers(self) -> dict[str, str]:
        """Commands to the operators that they stand for, the first where several have the same."""
        key = self._state.key()
        offers = self._offered.get(key)
        if offers is None:
            offers = {}
            for name in self._state.applicable():
                offers.setdefault(self._said_for(name), name)
            self._offered[key] = offers
        return offers

    def _said_for(self, name: str) -> str:
        command = self._commands.get(name)
        if command is None:
            command, fixed = self._command(name)
            if fixed:
                self._commands[name] = command
        return command

    def _tell(self, rule: str, name: str) -> str:
        """Feedback follows from the operator and the facts that the grammar reads: the same ones say the same again,
        which branches from one state ask for all the time."""
        key = (rule, name, self._state.watched())
        text = self._said.get(key)
        if text is None:
            text = self._said[key] = self._teller.tell(rule, self._mapping(name) if name else {})
        return text

    def _command(self, name: str) -> tuple[str, bool]:
        """The words for an operator, and whether they are the same in every state."""
        template = self._logic.actions[name.split(" ", 1)[0]].template
        asked = set(re.findall(r"(\w+)\(", template))
        words = self._teller.tell(template, self._mapping(name)) if "[" in template or "#" in template else template
        mapping = self._mapping(name)
        for placeholder, variable in mapping.items():
            words = words.replace("{" + placeholder.name + "}", self._plain[variable.name])
        return words, not (asked & self._moving) and "#" not in template

    def _mapping(self, name: str) -> dict[Any, Any]:
        action, *arguments = name.split()
        parameters = self._state.parameters[action]
        return {
            Placeholder(p.name.strip("?"), p.type_name): Variable(a, p.type_name)
            for p, a in zip(parameters, arguments, strict=False)
        }


class _State(pddl.PddlState):  # type: ignore[misc]
    """TextWorld's state of a PDDL game, translated once and begun as often as wanted."""

    def __init__(self, library: Any, problem: str, logic: Any) -> None:
        self._logic = logic
        self.downward_lib = library
        self.task, self.sas = fast_downward.pddl2sas(logic.domain, problem, verbose=False)
        for kind in self.task.types:
            try:
                logic.types.add(Type(kind.name, kind.supertype_names))
            except ValueError:
                continue  # known to every game
        self.name2type = {o.name: o.type_name for o in self.task.objects}
        atom = fast_downward.translate.pddl.conditions.Atom
        self._given = [
            Proposition(a.predicate, [Variable(x, self.name2type[x]) for x in a.args])
            for a in self.task.init
            if isinstance(a, atom) and a.predicate != "="
        ]
        self.parameters = {a.name: a.parameters for a in self.task.actions}
        self._idle = _written_only(self.task)
        self._watching: set[str] = set()
        self._facts: dict[Any, Any] = defaultdict(set)
        self._vars_by_name: dict[str, Any] = {}
        self._vars_by_type: dict[str, Any] = defaultdict(set)
        self._var_counts: dict[str, int] = Counter()
        self._changed: set[Any] = set()
        self._path: list[_Operator] = []
        self._engine: list[_Operator] | None = None
        self._operators: dict[frozenset[Any], dict[str, _Operator]] = {}
        self._effects: dict[tuple[frozenset[Any], str], tuple[Any, ...]] = {}
        self._goal: dict[frozenset[Any], bool] = {}
        self._at_engine()
        self.add_facts(self._given)
        atoms = (pddl.Atom * self.downward_lib.get_state_size())()
        self.downward_lib.get_state(atoms)
        found = (a.get_fact(self.name2type) for a in atoms)
        self.add_facts([f for f in found if not f.is_negation])
        self._start = {k: frozenset(v) for k, v in self._facts.items()}

    def begin(self) -> None:
        """Go back to the start state."""
        for fact in self._changed:
            facts, there = self._facts[fact.signature], fact in self._start.get(fact.signature, ())
            (facts.add if there else facts.discard)(fact)
        self._changed = set()
        self._path = []

    def watch(self, predicates: set[str]) -> None:
        """Changes of these are in `watched`, and all that the game can react to are in `key`."""
        self._watching = predicates
        self._idle -= predicates

    def watched(self) -> frozenset[Any]:
        """Watched facts that are not as they were in the start state."""
        return frozenset(f for f in self._changed if f.name.removeprefix("not_") in self._watching)

    def key(self) -> frozenset[Any]:
        """All that later steps depend on: facts that are not as they were in the start state, without those that no
        condition ever reads."""
        return frozenset(f for f in self._changed if f.name.removeprefix("not_") not in self._idle)

    def applicable(self) -> dict[str, _Operator]:
        """Operators that can be applied, in the engine's order; of several with one name the first."""
        key = self.key()
        found = self._operators.get(key)
        if found is None:
            self._at_engine()
            operators = (fast_downward.Operator * self.downward_lib.get_applicable_operators_count())()
            self.downward_lib.get_applicable_operators(operators)
            found = self._operators[key] = {}
            for o in operators:
                found.setdefault(o.name, (o.id, o.nb_effect_atoms))
        return found

    def apply_named(self, name: str) -> None:
        """Apply an applicable operator and update the facts."""
        key, operator = self.key(), self.applicable()[name]
        effects = self._effects.get((key, name))
        if effects is None:
            self._at_engine()
            effects = self._effects[key, name] = self._apply(operator)
        self._path.append(operator)
        for fact in effects:
            self._set(fact.negate(), False)
            self._set(fact, True)

    def won(self) -> bool:
        """The goal is reached."""
        key = self.key()
        won = self._goal.get(key)
        if won is None:
            self._at_engine()
            won = self._goal[key] = bool(self.downward_lib.check_goal())
        return won

    def _at_engine(self) -> None:
        """Bring the engine to the present state."""
        if self._engine is None or self._engine != self._path[: len(self._engine)]:
            self.downward_lib.load_sas(self.sas.encode())
            self._engine = []
        for operator in self._path[len(self._engine) :]:
            self._apply(operator)

    def _apply(self, operator: _Operator) -> tuple[Any, ...]:
        id, size = operator
        effects = (pddl.Atom * size)()
        self.downward_lib.apply_operator(id, effects)
        assert self._engine is not None
        self._engine.append(operator)
        return tuple(e.get_fact(self.name2type) for e in effects)

    def _set(self, fact: Any, true: bool) -> None:
        facts = self._facts[fact.signature]
        (facts.add if true else facts.discard)(fact)
        differs = true != (fact in self._start.get(fact.signature, ()))
        (self._changed.add if differs else self._changed.discard)(fact)


def _written_only(task: Any) -> set[str]:
    """Predicates that actions change and no condition reads: what was examined, in ALFWorld."""
    read = set(_predicates(task.goal))
    for action in task.actions:
        read |= set(_predicates(action.precondition))
        for effect in action.effects:
            read |= set(_predicates(effect.condition))
    for axiom in task.axioms:
        read |= set(_predicates(axiom.condition))
    return {_predicate(e) for a in task.actions for e in a.effects} - read


def _predicates(condition: Any) -> Iterator[str]:
    name = getattr(condition, "predicate", None)
    if name is not None:
        yield str(name).lower()
    for part in getattr(condition, "parts", ()):
        yield from _predicates(part)


_TASK = re.compile(r'("task":\s*\[\s*\{\s*"rhs":\s*)("(?:[^"\\]|\\.)*")')


@lru_cache(maxsize=4)
def _parsed(domain: str, grammar: str) -> Any:
    """Parsing a grammar takes longer than translating a game, and games of one release differ in the task alone."""
    return pddl.GameLogic(domain=domain, grammar=grammar)


def _logic_of(domain: str, grammar: str) -> tuple[Any, dict[str, Any]]:
    """The logic, shared by all games whose grammar differs in the task's words alone, and this game's own rules."""
    task = _TASK.search(grammar)
    if task is None:
        logic = _parsed(domain, grammar)
        return logic, logic.grammar._rules
    logic = _parsed(domain, _TASK.sub(r'\1""', grammar, count=1))
    own = ContextSensitiveGrammar.parse(json.dumps({"task": [{"rhs": json.loads(task.group(2))}]}))
    return logic, {**logic.grammar._rules, **own._rules}


def _predicate(effect: Any) -> str:
    return str(effect.literal.predicate).lower()
