"""Patterns of names, as HyperNodes have them: Go's syntax, and Go's promise of time.

They are matched by RE2, the engine whose rules Go's follows: a pattern means to us what it means to
Volcano, and no pattern takes exponential time, as some do in Python's own engine (`(a+)+$` beside a
node's name of thirty letters stops a process).
"""

from collections.abc import Iterable
from typing import Final

import re2

#: Longer ones are refused: names that a pattern is to choose have 253 characters at most.
CHARACTERS_MAX: Final = 1024
#: Of one compiled pattern; RE2 refuses those that need more (`((a{99}){99})`).
_MEMORY_BYTES_MAX: Final = 1 << 20
#: What can distinguish the begin of a line from the begin of the text, or define how `^` is read.
_OF_WHOLE_TEXTS: Final = (r"\A", r"\z", "(?")


class PatternError(ValueError):
    """A text is no pattern, or one that is too large; the message says why."""


class Pattern:
    """A pattern that has been read."""

    def __init__(self, text: str) -> None:
        """Read a pattern. Raises PatternError."""
        if len(text) > CHARACTERS_MAX:
            raise PatternError(f"must have at most {CHARACTERS_MAX} characters")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.never_nl = True
        options.max_mem = _MEMORY_BYTES_MAX
        try:
            self._one = re2.compile(text.encode(), options)
            # Alone it must be a pattern already: "a)(b" would be one within our brackets.
            at_once = f"(?m:(?:{text}).*)".encode()
            plain = not any(mark in text for mark in _OF_WHOLE_TEXTS)
            self._lines = re2.compile(at_once, options) if plain else None
        except re2.error as error:
            raise PatternError(_words(*error.args)) from None
        except UnicodeEncodeError:
            raise PatternError("must be valid Unicode") from None

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """The names that it matches, anywhere in them unless it says otherwise.

        All names are searched as one text where that is the same: once for each name takes twenty
        times as long (measured: 10,000 names, 120 ms).
        """
        listed = [*names]
        text = "\n".join(listed).encode("utf-8", "surrogatepass")
        if self._lines is None or text.count(b"\n") != len(listed) - 1:
            return frozenset(one for one in listed if self._one.search(_bytes(one)))
        found: set[str] = set()
        for match in self._lines.finditer(text):
            begin = text.rfind(b"\n", 0, match.start()) + 1
            found.add(text[begin : match.end()].decode("utf-8", "surrogatepass"))
        return frozenset(found)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _words(said: object = "") -> str:
    """RE2's words for what it refuses."""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
