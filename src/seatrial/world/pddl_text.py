"""A game's grammar to the words of one feedback: TextWorld's rules, expanded without copying and without `eval`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textworld.envs.pddl import textgen
from textworld.logic import Rule

from seatrial.errors import InputError

Names = Mapping[str, Any]
"""Variables of the grammar, by name: entities with `name`, `indefinite` and the like."""


class Teller:
    """Expands rules of one grammar in one state. The text is the same, word for word, as TextWorld's `derive`.

    Expressions in braces may name attributes, add them and choose with ``or``; nothing else is evaluated.
    """

    def __init__(self, rules: Mapping[str, Any], state: Any, entities: Names) -> None:
        self._rules = rules
        self._state = state
        self._entities = entities
        self._symbols: dict[str, Sequence[Any]] = {}
        self._queries: dict[str, Any] = {}
        self._expressions: dict[str, Callable[[Names], str]] = {}

    def tell(self, rule: str, mapping: Mapping[Any, Any]) -> str:
        """The text of ``rule``, where `mapping` binds placeholders to the variables of an operator.

        Raises:
            InputError: the grammar lacks a rule that it names, or holds an expression of another kind.
        """
        symbols = self._symbols.get(rule)
        if symbols is None:
            symbols = self._symbols[rule] = textgen._parse_and_convert(rule, rule_name="symbols")
        return self._all(symbols, self._variables({}, mapping), dict(mapping))

    def _all(self, symbols: Sequence[Any], variables: Names, mapping: dict[Any, Any]) -> str:
        return "".join(self._one(s, variables, mapping) for s in symbols)

    def _one(self, symbol: Any, variables: Names, mapping: dict[Any, Any]) -> str:
        if isinstance(symbol, textgen.TerminalSymbol):
            return str(symbol.symbol)
        if isinstance(symbol, textgen.NonterminalSymbol):
            return self._named(str(symbol.symbol), variables, mapping)
        if isinstance(symbol, textgen.ListSymbol):
            return self._list(self._each(symbol.symbol, variables, mapping), variables, mapping)
        return "".join(self._each(symbol, variables, mapping))

    def _each(self, symbol: Any, variables: Names, mapping: dict[Any, Any]) -> list[str]:
        """The texts of a symbol, one for each way to fulfil its condition."""
        if isinstance(symbol, textgen.EvalSymbol):
            return [self._value(symbol.expression, variables)]
        if not isinstance(symbol, textgen.ConditionalSymbol):
            return [self._one(symbol, variables, mapping)]
        if not symbol.given:
            return [self._one(symbol.expression, variables, mapping)]
        texts = []
        for found in self._state.all_assignments(self._query(symbol.given), mapping):
            bound = dict(found)
            texts.append(self._one(symbol.expression, self._variables(variables, bound), {**mapping, **bound}))
        return texts

    def _named(self, name: str, variables: Names, mapping: dict[Any, Any]) -> str:
        for rule in self._rules.get(name, ()):
            if not rule.condition or self._holds(rule.condition, mapping):
                return self._all(rule.rhs, variables, mapping)
        raise InputError(f"the game's grammar has no rule for {name!r}", hint="the game file is damaged")

    def _holds(self, condition: str, mapping: dict[Any, Any]) -> bool:
        return any(True for _ in self._state.all_assignments(self._query(condition), mapping))

    def _list(self, texts: Sequence[str], variables: Names, mapping: dict[Any, Any]) -> str:
        if not texts:
            return self._named("list_empty", variables, mapping)
        if len(texts) == 1:
            return texts[0]
        separator = self._named("list_separator", variables, mapping)
        return separator.join(texts[:-1]) + self._named("list_last_separator", variables, mapping) + texts[-1]

    def _query(self, condition: str) -> Any:
        query = self._queries.get(condition)
        if query is None:
            query = self._queries[condition] = Rule.parse_conjunctive_query(condition)
        return query

    def _variables(self, known: Names, mapping: Mapping[Any, Any]) -> Names:
        return {**known, **{placeholder.name: self._entities[v.name] for placeholder, v in mapping.items()}}

    def _value(self, expression: str, variables: Names) -> str:
        read = self._expressions.get(expression)
        if read is None:
            read = self._expressions[expression] = _reader(expression)
        return read(variables)


def _reader(expression: str) -> Callable[[Names], str]:
    try:
        node = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as error:
        raise InputError(f"the game's grammar holds {expression!r}", hint="the game file is damaged") from error
    return lambda variables: str(_read(node, variables))


def _read(node: ast.expr, variables: Names) -> Any:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and not node.attr.startswith("_"):
        return getattr(variables[node.value.id], node.attr)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _read(node.left, variables) + _read(node.right, variables)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        values = [_read(value, variables) for value in node.values]
        return next((v for v in values if v), values[-1])
    raise InputError(f"the game's grammar holds {ast.unparse(node)!r}", hint="seatrial evaluates names and sums alone")
