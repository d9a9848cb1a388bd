"""A PDDL text game that steps in milliseconds: the same engine and grammar as TextWorld's own, asked for less.

TextWorld's environment derives every admissible command after every step, translates the game anew at every reset
(twice: a second time for its planner), and takes 40 to 120 ms a step for it. Here the game is translated once, a reset
reloads it, commands are derived once per operator, and facts and commands are listed only when somebody asks.
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
        return sorted({command for _, _, command in self._game.operators()})


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

    def reset(self) -> Seen:
        """Begin anew: about 10 ms."""
        self._state.begin()
        return Seen(self, self._tell("#intro#", ""))

    def step(self, command: str) -> tuple[Seen, int, bool]:
        """Say a command. The first operator with that command is applied, as TextWorld does."""
        command = command.strip()
        found = next(((id, name) for id, name, said in self.operators() if said == command), None)
        if found is None:
            seen = Seen(self, NOTHING)
        else:
            id, name = found
            self._state.apply_id(id)
            action = name.split(" ", 1)[0]
            seen = Seen(self, self._tell(self._logic.actions[action].feedback_rule, name))
        return seen, int(seen.won), seen.won

    def won(self) -> bool:
        """The goal is reached."""
        return bool(self._library.check_goal())

    def facts(self) -> list[str]:
        """What is true now, in the game's names, sorted."""
        return sorted(
            f"{f.name}({', '.join(f'{self._plain.get(v.name) or v.name}: {v.type}' for v in f.arguments)})"
            for f in self._state.facts
        )

    def operators(self) -> Iterator[tuple[int, str, str]]:
        """Applicable operators in the engine's order, without those of the same name: id, name, command."""
        for id, name in self._state.applicable().items():
            command = self._commands.get(name)
            if command is None:
                command, fixed = self._command(name)
                if fixed:
                    self._commands[name] = command
            yield id, name, command

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
        self._watching: set[str] | None = None
        self._load()
        self.add_facts(self._given)
        atoms = (pddl.Atom * self.downward_lib.get_state_size())()
        self.downward_lib.get_state(atoms)
        found = (a.get_fact(self.name2type) for a in atoms)
        self.add_facts([f for f in found if not f.is_negation])
        self._start = {k: frozenset(v) for k, v in self._facts.items()}

    def _load(self) -> None:
        self._facts: dict[Any, Any] = defaultdict(set)
        self._vars_by_name: dict[str, Any] = {}
        self._vars_by_type: dict[str, Any] = defaultdict(set)
        self._var_counts: dict[str, int] = Counter()
        self._changed: set[Any] = set()
        self.downward_lib.load_sas(self.sas.encode())

    def begin(self) -> None:
        """Load the start state."""
        variables = self._vars_by_name, self._vars_by_type, self._var_counts
        self._load()
        self._vars_by_name, self._vars_by_type, self._var_counts = variables
        for signature, facts in self._start.items():
            self._facts[signature] = set(facts)

    def watch(self, predicates: set[str]) -> None:
        """Only changes of these are in `watched`."""
        self._watching = predicates

    def watched(self) -> frozenset[Any]:
        """Watched facts that are not as they were in the start state."""
        return frozenset(self._changed)

    def applicable(self) -> dict[int, str]:
        """Names of the operators that can be applied, by id."""
        operators = (fast_downward.Operator * self.downward_lib.get_applicable_operators_count())()
        self.downward_lib.get_applicable_operators(operators)
        self._operators = {o.id: o for o in operators}
        names: dict[str, int] = {}
        for o in operators:
            names.setdefault(o.name, o.id)
        return {id: name for name, id in names.items()}

    def apply_id(self, id: int) -> None:
        """Apply an applicable operator and update the facts that the grammar reads."""
        effects = (pddl.Atom * self._operators[id].nb_effect_atoms)()
        self.downward_lib.apply_operator(id, effects)
        for effect in effects:
            fact = effect.get_fact(self.name2type)
            self._set(fact.negate(), False)
            self._set(fact, True)

    def _set(self, fact: Any, true: bool) -> None:
        facts = self._facts[fact.signature]
        (facts.add if true else facts.discard)(fact)
        if self._watching is None or fact.name.removeprefix("not_") in self._watching:
            differs = true != (fact in self._start.get(fact.signature, ()))
            (self._changed.add if differs else self._changed.discard)(fact)


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
