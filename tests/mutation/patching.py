"""Makes a loaded module behave as its mutant: functions get the mutant's code, in place.

So everything that has imported them behaves as the mutant, too, and nothing is imported again.
"""

import ast
import inspect
import sys
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from tests.mutation.table import ROOT, Mutant, source_of

#: As `Changes.functions` has the module itself: a value at its top level is another one.
TOP_LEVEL: Final = ""


class NotPatchable(Exception):
    """The mutant changes what a loaded module cannot get: bases of a class, its fields, imports."""


class Changes(NamedTuple):
    """What a mutant changes in its file."""

    #: Qualified names of functions and methods.
    functions: tuple[str, ...]
    #: Names at the top level with other values.
    values: tuple[str, ...]


def changes_of(mutant: Mutant) -> Changes:
    """What a mutant changes. Raises NotPatchable."""
    texts = (ROOT / mutant.path).read_text(), source_of(mutant)
    old, new = map(_parsed, texts)
    functions: list[str] = []
    values: list[str] = []
    for before, after in _changed(old, new, texts):
        if _is_function(before) and _is_function(after):
            functions.append(before.name)
        elif isinstance(before, ast.ClassDef) and isinstance(after, ast.ClassDef):
            for method, changed in _changed(before, after, texts):
                if not (_is_function(method) and _is_function(changed)):
                    raise NotPatchable(f"{mutant.path}: a field of {before.name}")
                functions.append(f"{before.name}.{method.name}")
        elif isinstance(before, ast.Assign | ast.AnnAssign):
            targets = before.targets if isinstance(before, ast.Assign) else [before.target]
            values += [one.id for one in targets if isinstance(one, ast.Name)]
        else:
            raise NotPatchable(f"{mutant.path}: line {getattr(before, 'lineno', 0)}")
    return Changes(tuple(functions), tuple(values))


def patch(mutant: Mutant) -> None:
    """Make the loaded module its mutant, for the rest of this process. Raises NotPatchable."""
    changes = changes_of(mutant)
    module = sys.modules[mutant.module]
    file = str(ROOT / mutant.path)
    made = ModuleType(mutant.module)
    made.__file__ = file
    exec(compile(source_of(mutant), file, "exec", dont_inherit=True), made.__dict__)
    for name in changes.values:
        _give_value(module, name, getattr(made, name))
    for name in changes.functions:
        old, new = _function(module, name), _function(made, name)
        if len(old.__code__.co_freevars) != len(new.__code__.co_freevars):
            raise NotPatchable(f"{mutant.path}: {name} uses other variables around it")
        old.__code__, old.__defaults__ = new.__code__, new.__defaults__
        old.__kwdefaults__ = new.__kwdefaults__


def _give_value(module: ModuleType, name: str, value: object) -> None:
    """Set a value in its module, and where it was imported to."""
    before = getattr(module, name)
    for other in list(sys.modules.values()):
        names = getattr(other, "__dict__", {})
        if names.get(name, TOP_LEVEL) is before:
            names[name] = value


def _function(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = found.__dict__[part]
    if isinstance(found, property):
        found = found.fget
    found = inspect.unwrap(getattr(found, "__func__", found))
    if not isinstance(found, FunctionType):
        raise NotPatchable(f"{module.__name__}: {name} is no function")
    return found


#: Mutants of one file follow each other.
_parsed: Final = lru_cache(maxsize=8)(ast.parse)


def _changed(old: Any, new: Any, texts: tuple[str, str]) -> list[tuple[Any, Any]]:
    """Statements of two bodies that differ, in pairs. Raises NotPatchable."""
    if len(old.body) != len(new.body):
        raise NotPatchable("a statement is missing or new")
    lines = [text.splitlines() for text in texts]
    return [
        (one, other)
        for one, other in zip(old.body, new.body, strict=True)
        # Most have the same text, which is known much sooner.
        if _text(one, lines[0]) != _text(other, lines[1]) and ast.dump(one) != ast.dump(other)
    ]


def _text(statement: Any, lines: list[str]) -> list[str]:
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(one.lineno for one in decorators)])
    return lines[first - 1 : statement.end_lineno]


def _is_function(node: Any) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
