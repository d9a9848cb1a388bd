"""Runs the repository's functions without running Python: a small, bounded interpreter over the syntax tree.

Functions of arithmetic alone: assignments, ``if``, ``return``, numbers, text, comparisons, calls of each other.
Whatever an agent writes is read as data; anything else than the above is an error of the test that reaches it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

LARGEST = 10**15
STEPS = 5_000
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_KNOWN: dict[str, Callable[..., Any]] = {"min": min, "max": max, "round": round, "abs": abs, "int": int, "float": float}


class Refused(Exception):
    """Something that the interpreter does not do, or did for too long."""


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


def functions(sources: Mapping[str, str]) -> dict[str, ast.FunctionDef]:
    """The functions that the files define, by name; a file that is no Python defines none."""
    found: dict[str, ast.FunctionDef] = {}
    for _, text in sorted(sources.items()):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        found.update({node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)})
    return found


class Interpreter:
    """Calls functions of one set of sources; `STEPS` bound each call from outside."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._functions = functions(sources)
        self._steps = 0

    def call(self, name: str, arguments: list[Any]) -> Any:
        """The function's value.

        Raises:
            Refused: it is not there, does what the interpreter does not do, or fails.
        """
        self._steps = 0
        try:
            return self._call(name, arguments)
        except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
            raise Refused(f"{type(error).__name__}: {error}") from error

    def _call(self, name: str, arguments: list[Any]) -> Any:
        if name not in self._functions:
            if name in _KNOWN:
                return self._bounded(_KNOWN[name](*arguments))
            raise Refused(f"no function {name}")
        function = self._functions[name]
        names = [a.arg for a in function.args.args]
        if len(names) != len(arguments):
            raise Refused(f"{name} takes {len(names)} arguments, not {len(arguments)}")
        try:
            self._block(function.body, dict(zip(names, arguments, strict=True)))
        except _Return as returned:
            return returned.value
        return None

    def _block(self, body: list[ast.stmt], scope: dict[str, Any]) -> None:
        for node in body:
            self._tick()
            if isinstance(node, ast.Return):
                raise _Return(self._value(node.value, scope) if node.value is not None else None)
            if isinstance(node, ast.If):
                self._block(node.body if self._value(node.test, scope) else node.orelse, scope)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                scope[node.targets[0].id] = self._value(node.value, scope)
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                raise Refused(f"line {node.lineno}: {type(node).__name__} is not understood")

    def _value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self._tick()
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in scope:
                raise Refused(f"line {node.lineno}: {node.id} is not defined")
            return scope[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self._arithmetic(node.op, self._value(node.left, scope), self._value(node.right, scope))
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, scope)
            return not value if isinstance(node.op, ast.Not) else -value
        if isinstance(node, ast.BoolOp):
            values = (self._value(v, scope) for v in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            right = self._value(node.comparators[0], scope)
            return _COMPARE[type(node.ops[0])](self._value(node.left, scope), right)
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test, scope) else node.orelse, scope)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node.func.id, [self._value(a, scope) for a in node.args])
        raise Refused(f"line {node.lineno}: {type(node).__name__} is not understood")

    def _arithmetic(self, op: ast.operator, left: Any, right: Any) -> Any:
        texts = isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add)
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if not texts and not numbers:
            raise Refused("only numbers are computed with")  # "a" * 10**9 and "%999999999d" would fill the memory
        return self._bounded(_BINARY[type(op)](left, right))

    def _tick(self) -> None:
        self._steps += 1
        if self._steps > STEPS:
            raise Refused("it runs too long")

    def _bounded(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > 10_000:
            raise Refused("a text grows too long")
        if isinstance(value, int | float) and abs(value) > LARGEST:
            raise Refused("a number grows too large")
        return value
