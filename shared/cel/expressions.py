"""Compiles the text of an expression into a function of its variables.

cel-python parses; its evaluator is not used, since it cannot be bounded, has no values of types
that Kubernetes adds, and compares values of different types as older versions of CEL did
(ADR 0077). Types are not checked: the API server has done so.

`&&`, `||`, `all` and `exists` absorb errors as CEL does: `error && false` is false.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from celpy.celparser import CELParseError, CELParser
from lark import Token, Tree

from shared.cel import functions, optionals
from shared.cel.literals import LiteralError, literal
from shared.cel.macros import MACROS, Macro, Node, Scope, decide
from shared.cel.values import (
    ABSENT,
    Budget,
    CelError,
    CelType,
    OptionalValue,
    Uint,
    Value,
    charged,
    equal,
    is_number,
    type_name,
)

#: Kubernetes' limit of an expression, in characters.
EXPRESSION_CHARACTERS_MAX: Final = 10 * 1024
#: Levels that parentheses, calls and operators may be nested in.
DEPTH_MAX: Final = 60


class UnsupportedExpressionError(Exception):
    """The expression does not parse, or uses something that is not supported; the message names
    both and the position.
    """


_Tree: TypeAlias = "Tree[Token]"
_Branch: TypeAlias = "Tree[Token] | Token"

_TYPES: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"}
)
#: Rules that only group: with one child, they mean the child.
_GROUPS: Final = frozenset(
    {
        "expr",
        "conditionalor",
        "conditionaland",
        "relation",
        "addition",
        "multiplication",
        "unary",
        "member",
        "primary",
        "paren_expr",
    }
)


def compile_expression(text: str, variables: frozenset[str]) -> Node:
    """The function of an expression over these variables.

    Raises:
        UnsupportedExpressionError: See there.
    """
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise UnsupportedExpressionError(f"it has more than {EXPRESSION_CHARACTERS_MAX} characters")
    text, marks = optionals.hide_marks(text)
    try:
        tree = CELParser().parse(text)
    except CELParseError as error:
        where = f"{error.line}:{error.column}" if error.line and error.line > 0 else "its end"
        raise UnsupportedExpressionError(f"unexpected syntax at {where}") from error
    compiler = _Compiler(variables, text, marks)
    node = compiler.node(tree, 0)
    if compiler.marks:
        at = min(compiler.marks)
        where = f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"
        raise UnsupportedExpressionError(f"an optional element is not supported at {where}")
    return node


class _Compiler:
    def __init__(self, variables: frozenset[str], text: str, marks: set[int]) -> None:
        #: Names in scope.
        self._names = set(variables)
        self._text = text
        #: Positions of hidden `?` that no selection has used yet.
        self.marks = marks

    def node(self, branch: _Branch, depth: int) -> Node:
        tree = _ungrouped(branch)
        if depth > DEPTH_MAX:
            raise _refusal(tree, f"it is nested in more than {DEPTH_MAX} levels")
        if isinstance(tree, Token):
            raise _refusal(tree, f"unexpected {tree}")
        compiled = _RULES.get(str(tree.data))
        if compiled is None:
            raise _refusal(tree, f"{tree.data} is not supported")
        return compiled(self, tree, depth + 1)

    def ternary(self, tree: _Tree, depth: int) -> Node:
        condition, yes, no = (self.node(child, depth) for child in tree.children)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            chosen = condition(scope)
            if not isinstance(chosen, bool):
                raise functions.overload("_?_:_", chosen)
            return yes(scope) if chosen else no(scope)

        return evaluate

    def logical(self, tree: _Tree, depth: int) -> Node:
        """A chain of one operator, flat: `a || b || c` is no nesting."""
        rule, operands = str(tree.data), [tree.children[1]]
        left = _ungrouped(tree.children[0])
        while isinstance(left, Tree) and left.data == rule and len(left.children) == 2:
            operands.append(left.children[1])
            left = _ungrouped(left.children[0])
        operands.append(left)
        nodes = [self.node(operand, depth) for operand in reversed(operands)]
        deciding = rule == "conditionalor"
        return lambda scope: decide(
            scope,
            deciding,
            (partial(node, scope) for node in nodes),
            "||" if deciding else "&&",
        )

    def binary(self, tree: _Tree, depth: int) -> Node:
        first = _branch(tree.children[0])
        left, right = self.node(first.children[0], depth), self.node(tree.children[1], depth)
        operator = _OPERATORS[str(first.data)]

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            return operator(scope.budget, left(scope), right(scope))

        return evaluate

    def unary(self, tree: _Tree, depth: int) -> Node:
        sign, operand = tree.children
        negates = _branch(sign).data == "unary_not"
        value = self.node(operand, depth)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            given = value(scope)
            if negates and isinstance(given, bool):
                return not given
            if not negates and isinstance(given, float):
                return -given
            if (
                not negates
                and is_number(given)
                and isinstance(given, int)
                and not isinstance(given, Uint)
            ):
                return functions.to_int(-given)
            raise functions.overload("!_" if negates else "-_", given)

        return evaluate

    def literal(self, tree: _Tree, _depth: int) -> Node:
        (token,) = tree.children
        if not isinstance(token, Token):
            raise _refusal(token, f"{token.data} is not supported")
        try:
            value = literal(token.type, str(token))
        except LiteralError as error:
            raise _refusal(token, str(error)) from error
        return lambda _: value

    def ident(self, tree: _Tree, _depth: int) -> Node:
        token = tree.children[0]
        name = str(token)
        if name == "null":
            return lambda _: None
        if name in self._names:
            return lambda scope: scope.variables[name]
        if name in _TYPES:
            kind = CelType(name)
            return lambda _: kind
        raise _refusal(token, f"undeclared reference to {name!r}")

    def select(self, tree: _Tree, depth: int) -> Node:
        value, name = self.node(tree.children[0], depth), str(tree.children[1])
        optional = self._is_marked(tree.children[1])

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            holder = value(scope)
            if optional or isinstance(holder, OptionalValue):
                return optionals.select(holder, name)
            if not isinstance(holder, Mapping):
                raise CelError(f"type {type_name(holder)} does not support field selection")
            return _at(holder, name)

        return evaluate

    def _is_marked(self, branch: _Branch) -> bool:
        """Whether a `?` is before the name or key of a selection."""
        at = (_first_token(branch).start_pos or 0) - 1
        while at >= 0 and self._text[at].isspace():
            if at in self.marks:
                self.marks.remove(at)
                return True
            at -= 1
        return False

    def index(self, tree: _Tree, depth: int) -> Node:
        optional = self._is_marked(tree.children[1])
        value, key = (self.node(child, depth) for child in tree.children)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            holder, at = value(scope), key(scope)
            if optional or isinstance(holder, OptionalValue):
                return optionals.select(holder, at)
            if isinstance(holder, Mapping):
                return _at(holder, at)
            if isinstance(holder, tuple) and isinstance(at, int) and not isinstance(at, bool):
                if not 0 <= at < len(holder):
                    raise CelError(f"index out of bounds: {at}")
                return holder[at]
            raise functions.overload("_[_]", holder, at)

        return evaluate

    def list_literal(self, tree: _Tree, depth: int) -> Node:
        nodes = [self.node(element, depth) for element in _arguments(tree.children)]

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1 + len(nodes))
            return tuple(node(scope) for node in nodes)

        return evaluate

    def map_literal(self, tree: _Tree, depth: int) -> Node:
        nodes = [self.node(element, depth) for element in _arguments(tree.children)]
        pairs = list(zip(nodes[::2], nodes[1::2], strict=True))

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1 + len(pairs))
            entries: dict[Value, Value] = {}
            for key, value in pairs:
                at = key(scope)
                if not isinstance(at, str | int):
                    raise CelError(f"unsupported key type: {type_name(at)}")
                entries[at] = value(scope)
            return entries

        return evaluate

    def call(self, tree: _Tree, depth: int) -> Node:
        token, arguments = tree.children[0], _arguments(tree.children[1:])
        name = str(token)
        if name == "has":
            return self._has(token, arguments, depth)
        return self._applied(token, functions.GLOBAL.get(name), arguments, depth)

    def method(self, tree: _Tree, depth: int) -> Node:
        receiver, token = tree.children[0], tree.children[1]
        arguments, name = _arguments(tree.children[2:]), str(token)
        space = _ungrouped(receiver)
        if isinstance(space, Tree) and space.data == "ident":
            qualified = f"{space.children[0]}.{name}"
            if qualified == "cel.bind":
                return self._bind(token, arguments, depth)
            if qualified in functions.GLOBAL:
                return self._applied(token, functions.GLOBAL[qualified], arguments, depth)
        if name in {"or", "orValue"} and len(arguments) == 1:
            return self._or(name, receiver, arguments[0], depth)
        if name in {"optMap", "optFlatMap"} and len(arguments) == 2:
            return self._opt_map(name, receiver, arguments, depth)
        macro = MACROS.get((name, len(arguments)))
        if macro is not None:
            return self._macro(macro, receiver, arguments, depth)
        return self._applied(token, functions.METHODS.get(name), [receiver, *arguments], depth)

    def _applied(
        self,
        token: _Branch,
        known: tuple[functions.Function, range] | None,
        arguments: Sequence[_Branch],
        depth: int,
    ) -> Node:
        if known is None:
            raise _refusal(token, f"function {token} is not supported")
        function, numbers = known
        if len(arguments) not in numbers:
            raise _refusal(token, f"function {token} does not take {len(arguments)} arguments")
        nodes = [self.node(argument, depth) for argument in arguments]

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            return function(scope.budget, *[node(scope) for node in nodes])

        return evaluate

    def _has(self, token: _Branch, arguments: Sequence[_Branch], depth: int) -> Node:
        field = _ungrouped(arguments[0]) if len(arguments) == 1 else token
        if (
            not isinstance(field, Tree)
            or field.data != "member_dot"
            or self._is_marked(field.children[1])
        ):
            raise _refusal(token, "has() takes one field selection")
        value, name = self.node(field.children[0], depth), str(field.children[1])

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            holder = value(scope)
            if isinstance(holder, OptionalValue):
                return optionals.select(holder, name).is_present
            if not isinstance(holder, Mapping):
                raise CelError(f"type {type_name(holder)} does not support field selection")
            return name in holder

        return evaluate

    def _or(self, name: str, receiver: _Branch, argument: _Branch, depth: int) -> Node:
        """`or` and `orValue`, whose argument is evaluated if there is no value."""
        value, other = self.node(receiver, depth), self.node(argument, depth)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            optional = optionals.of_value(value(scope), name)
            if name == "orValue":
                return optional.content if optional.is_present else other(scope)
            return optional if optional.is_present else optionals.of_value(other(scope), name)

        return evaluate

    def _opt_map(
        self, name: str, receiver: _Branch, arguments: Sequence[_Branch], depth: int
    ) -> Node:
        """`optMap` and `optFlatMap`, whose expression is evaluated if there is a value."""
        value = self.node(receiver, depth)
        variable, body = self._within(arguments[0], arguments[1], depth)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            optional = optionals.of_value(value(scope), name)
            if not optional.is_present:
                return optional
            result = body(scope.bound(variable, optional.content))
            return OptionalValue(result) if name == "optMap" else optionals.of_value(result, name)

        return evaluate

    def _bind(self, token: _Branch, arguments: Sequence[_Branch], depth: int) -> Node:
        if len(arguments) != 3:
            raise _refusal(token, "cel.bind takes a name and two expressions")
        value = self.node(arguments[1], depth)
        name, body = self._within(arguments[0], arguments[2], depth)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            return body(scope.bound(name, value(scope)))

        return evaluate

    def _within(self, name: _Branch, body: _Branch, depth: int) -> tuple[str, Node]:
        """A body in which the variable is known."""
        identifier = _ungrouped(name)
        if not isinstance(identifier, Tree) or identifier.data != "ident":
            raise _refusal(identifier, "a variable's name must be simple")
        variable = str(identifier.children[0])
        before = set(self._names)
        self._names.add(variable)
        try:
            return variable, self.node(body, depth)
        finally:
            self._names = before

    def _macro(
        self, macro: Macro, receiver: _Branch, arguments: Sequence[_Branch], depth: int
    ) -> Node:
        value = self.node(receiver, depth)
        bodies: list[Node] = []
        name = ""
        for argument in arguments[1:]:
            name, body = self._within(arguments[0], argument, depth)
            bodies.append(body)

        def evaluate(scope: Scope) -> Value:
            scope.budget.spend(1)
            collection = value(scope)
            if not isinstance(collection, tuple | Mapping):
                raise CelError(f"got {type_name(collection)!r}, expected iterable type")
            inner = scope.bound(name, None)
            return macro(inner, name, tuple(collection), bodies)

        return evaluate


def _at(entries: Mapping[Value, Value], key: Value) -> Value:
    if isinstance(key, Mapping | tuple):
        raise functions.overload("_[_]", entries, key)
    value = entries.get(key, ABSENT)
    if value is ABSENT:
        raise CelError(f"no such key: {key}")
    return value


def _ungrouped(branch: _Branch) -> _Branch:
    while isinstance(branch, Tree) and branch.data in _GROUPS and len(branch.children) == 1:
        branch = branch.children[0]
    return branch


def _branch(branch: _Branch) -> _Tree:
    """An inner node of the tree."""
    if isinstance(branch, Token):
        raise _refusal(branch, f"unexpected {branch}")
    return branch


def _arguments(children: Sequence[_Branch]) -> list[_Branch]:
    """The expressions of a call's or literal's parentheses."""
    return list(children[0].children) if children and isinstance(children[0], Tree) else []


def _first_token(branch: _Branch) -> Token:
    """Its first token; an empty one without a position: it has none."""
    while isinstance(branch, Tree):
        if not branch.children:
            return Token("", "")
        branch = branch.children[0]
    return branch


def _refusal(branch: _Branch, text: str) -> UnsupportedExpressionError:
    token = _first_token(branch)
    if token.line is not None:
        return UnsupportedExpressionError(f"{text} at {token.line}:{token.column}")
    return UnsupportedExpressionError(text)


def _added(budget: Budget, left: Value, right: Value) -> Value:
    for kind in (str, bytes, tuple):
        if isinstance(left, kind) and isinstance(right, kind):
            first: Any = left
            other: Any = right
            charged(budget, len(first) + len(other))
            return first + other
    return _calculated("_+_", lambda a, b: a + b, left, right)


def _calculated(
    name: str, operation: Callable[[int, int], int], left: Value, right: Value
) -> Value:
    """Numbers of one type, and a result of that type."""
    if type_name(left) != type_name(right) or not is_number(left):
        raise functions.overload(name, left, right)
    first: Any = left
    other: Any = right
    try:
        result = operation(first, other)
    except ZeroDivisionError as error:
        raise CelError("division by zero") from error
    if isinstance(left, float):
        return result
    return functions.to_uint(result) if isinstance(left, Uint) else functions.to_int(result)


def _divided(_budget: Budget, left: Value, right: Value) -> Value:
    if isinstance(left, float) and isinstance(right, float):
        if right == 0:
            return float("nan") if left == 0 else left * float("inf")
        return left / right
    return _calculated("_/_", _quotient, left, right)


def _quotient(left: int, right: int) -> int:
    """Towards zero."""
    return left // right if (left < 0) == (right < 0) else -(-left // right)


def _remainder(_budget: Budget, left: Value, right: Value) -> Value:
    if isinstance(left, float):
        raise functions.overload("_%_", left, right)
    return _calculated("_%_", lambda a, b: a - b * _quotient(a, b), left, right)


_OPERATORS: Final[Mapping[str, functions.Function]] = {
    "relation_lt": lambda _, left, right: functions.compare(left, right) < 0,
    "relation_le": lambda _, left, right: functions.compare(left, right) <= 0,
    "relation_gt": lambda _, left, right: functions.compare(left, right) > 0,
    "relation_ge": lambda _, left, right: functions.compare(left, right) >= 0,
    "relation_eq": equal,
    "relation_ne": lambda budget, left, right: not equal(budget, left, right),
    "relation_in": lambda budget, left, right: functions.contains(budget, right, left),
    "addition_add": _added,
    "addition_sub": lambda _, left, right: _calculated("_-_", lambda a, b: a - b, left, right),
    "multiplication_mul": lambda _, left, right: _calculated(
        "_*_", lambda a, b: a * b, left, right
    ),
    "multiplication_div": _divided,
    "multiplication_mod": _remainder,
}
_RULES: Final[Mapping[str, Callable[[_Compiler, _Tree, int], Node]]] = {
    "expr": _Compiler.ternary,
    "conditionalor": _Compiler.logical,
    "conditionaland": _Compiler.logical,
    "relation": _Compiler.binary,
    "addition": _Compiler.binary,
    "multiplication": _Compiler.binary,
    "unary": _Compiler.unary,
    "literal": _Compiler.literal,
    "ident": _Compiler.ident,
    "dot_ident": _Compiler.ident,
    "member_dot": _Compiler.select,
    "member_index": _Compiler.index,
    "member_dot_arg": _Compiler.method,
    "ident_arg": _Compiler.call,
    "list_lit": _Compiler.list_literal,
    "map_lit": _Compiler.map_literal,
}
