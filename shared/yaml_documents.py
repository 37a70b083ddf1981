"""Reads YAML with bounds: the only place that loads it. Pure.

A short text can stand for a large document (aliases), and can be nested so deep that the parser in
C overflows its stack. So its events are checked, in one pass without recursion, before any of them
becomes an object. The rules are about what the text would be without aliases, because every reader
walks over that.

What is read can be sent as JSON, and is what kubectl reads of the same text: keys are texts, and so
are dates, clock times, infinity and NaN.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import yaml

#: As deep as JSON is read (`shared.kube.decoding`).
DEPTH_MAX: Final = 200
#: Values that aliases may add: a walk over them takes some tenths of a second. Manifests that are
#: written by hand repeat some hundreds.
ALIASED_NODES_MAX: Final = 100_000
#: Characters that they may add. No object in etcd is as large.
ALIASED_CHARACTERS_MAX: Final = 4 * 1024 * 1024
#: More than the manifests of a large cluster. A file beyond it is no manifest.
TEXT_CHARACTERS_MAX: Final = 64 * 1024 * 1024
#: Numbers to the base 60 (`!!int 1:30`) are computed digit by digit, in the square of their length.
_NUMBER_CHARACTERS_MAX: Final = 256

# The loader in C needs a tenth of the time; PyYAML may have been built without it.
_BASE: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX: Final = "tag:yaml.org,2002:"
_NUMBER_TAGS: Final = frozenset({f"{_PREFIX}int", f"{_PREFIX}float"})
#: Tags that PyYAML gives texts without quotes, and kubectl does not.
_LEFT_OUT: Final = frozenset({f"{_PREFIX}timestamp", f"{_PREFIX}value"})
#: As PyYAML's, without those to the base 60, infinity and NaN.
_NUMBERS: Final = {
    f"{_PREFIX}int": re.compile(
        r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z", re.ASCII
    ),
    f"{_PREFIX}float": re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?\Z", re.ASCII
    ),
}


class _Loader(_BASE):  # type: ignore[misc,valid-type]  # chosen when the module is imported
    """Constructs values that JSON has."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in tags if tag not in _LEFT_OUT]
        for first, tags in _BASE.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """The mapping with texts as keys."""
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return {_key(key, node): value for key, value in mapping.items()}


def _key(key: object, node: yaml.MappingNode) -> str:
    match key:
        case str():
            return key
        case bool():
            return str(key).lower()
        case int() | float():
            return str(key)
        case _:
            raise yaml.constructor.ConstructorError(
                problem=f"a key must be text, and is {key!r:.20}", problem_mark=node.start_mark
            )


class InvalidYaml(ValueError):
    """A text is no YAML, or breaks a rule; the message names the line and the rule."""


def read_documents(text: str | bytes) -> list[Any]:
    """All documents of a text; an empty one is None. Raises InvalidYaml."""
    try:
        _check(text)
        return list(yaml.load_all(text, Loader=_Loader))
    except InvalidYaml:
        raise
    except yaml.YAMLError as error:
        raise InvalidYaml(_described(error)) from None
    except RecursionError:
        raise InvalidYaml("its merge keys (<<) are nested too deep") from None
    except UnicodeError:
        raise InvalidYaml("it must be text in UTF-8") from None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        # PyYAML's constructors of numbers, dates and tags do not check what they are given.
        raise InvalidYaml(f"a value does not fit its type: {error}") from None


def read_document(text: str | bytes) -> Any:
    """The only document of a text; None: it is empty. Raises InvalidYaml."""
    documents = read_documents(text)
    if len(documents) > 1:
        raise InvalidYaml(f"it must be one document, and has {len(documents)}")
    return documents[0] if documents else None


def _check(text: str | bytes) -> None:
    """Compare a text's events with the rules. Raises InvalidYaml, yaml.YAMLError."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise InvalidYaml(f"it must have at most {TEXT_CHARACTERS_MAX} characters")
    sizes = _Sizes()
    for event in _events(text):
        match event:
            case yaml.ScalarEvent():
                _check_number(event)
                sizes.add(event)
            case yaml.AliasEvent():
                sizes.repeat(event)
            case yaml.CollectionStartEvent():
                sizes.open(event)
            case yaml.CollectionEndEvent():
                sizes.close()
            case yaml.DocumentStartEvent():
                # Anchors end with their document. What aliases add is counted for the whole text.
                sizes.forget_anchors()
            case _:
                pass


def _events(text: str | bytes) -> Iterator[yaml.Event]:
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=_Loader)
    return events


class _Sizes:
    """Values and characters of the open collections and of anchors, aliases expanded."""

    def __init__(self) -> None:
        #: Of each open collection: its anchor, and how much was counted before it.
        self._open: list[tuple[str | None, int, int]] = []
        self._anchors: dict[str, tuple[int, int]] = {}
        self._nodes = 0
        self._characters = 0
        self._aliased_nodes = 0
        self._aliased_characters = 0

    def forget_anchors(self) -> None:
        self._anchors.clear()

    def add(self, event: yaml.ScalarEvent) -> None:
        self._nodes += 1
        self._characters += len(event.value)
        if event.anchor is not None:
            self._anchors[event.anchor] = 1, len(event.value)

    def open(self, event: yaml.CollectionStartEvent) -> None:
        self._open.append((event.anchor, self._nodes, self._characters))
        self._nodes += 1
        if len(self._open) > DEPTH_MAX:
            raise _broken(event, f"values must be nested in at most {DEPTH_MAX} levels")

    def close(self) -> None:
        anchor, nodes, characters = self._open.pop()
        if anchor is not None:
            self._anchors[anchor] = self._nodes - nodes, self._characters - characters

    def repeat(self, event: yaml.AliasEvent) -> None:
        """Count what an alias stands for; an unknown one is left to the loader."""
        if any(anchor == event.anchor for anchor, _, _ in self._open):
            raise _broken(event, f"the anchor {event.anchor} must not contain itself")
        nodes, characters = self._anchors.get(event.anchor or "", (0, 0))
        self._nodes += nodes
        self._characters += characters
        self._aliased_nodes += nodes
        self._aliased_characters += characters
        if self._aliased_nodes > ALIASED_NODES_MAX:
            raise _broken(event, f"aliases must stand for at most {ALIASED_NODES_MAX} values")
        if self._aliased_characters > ALIASED_CHARACTERS_MAX:
            rule = f"aliases must stand for at most {ALIASED_CHARACTERS_MAX} characters"
            raise _broken(event, rule)


def _check_number(event: yaml.ScalarEvent) -> None:
    if len(event.value) <= _NUMBER_CHARACTERS_MAX:
        return
    if event.tag in _NUMBER_TAGS:
        raise _broken(event, f"a number must have at most {_NUMBER_CHARACTERS_MAX} characters")


def _described(error: yaml.YAMLError) -> str:
    """The line and what is wrong there. PyYAML names no file, but `<unicode string>`."""
    if isinstance(error, yaml.reader.ReaderError):
        # libyaml counts in bytes, PyYAML in characters.
        return f"it must be text: the character at position {error.position} is not allowed in YAML"
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return f"{where}{', '.join(filter(None, (error.context, error.problem)))}"


def _broken(event: yaml.Event, rule: str) -> InvalidYaml:
    line = 0 if event.start_mark is None else event.start_mark.line
    return InvalidYaml(f"line {line + 1}: {rule}")
