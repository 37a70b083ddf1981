"""Regular expressions on names, as in HyperNodes: Go's syntax and Go's linear time.

RE2 matches them, because Go follows its rules: a pattern means the same as in Volcano, and none
takes exponential time. Some do in Python's own engine: `(a+)+$` on a node name of thirty letters
blocks a process.
"""

from collections.abc import Iterable
from typing import Final

#: Longer patterns are refused; the names to match have at most 253 characters.
CHARACTERS_MAX: Final = 1024
#: Memory for one compiled pattern; RE2 refuses patterns that need more (`\pL{100}`).
_MEMORY_BYTES_MAX: Final = 1 << 20
#: Syntax that distinguishes the start of a line from the start of the text, or redefines `^`.
_OF_WHOLE_TEXTS: Final = (r"\A", r"\z", "(?")


class PatternError(ValueError):
    """A text is not a pattern, or a too large one; the message has the reason."""


class Pattern:
    """A compiled pattern."""

    def __init__(self, text: str) -> None:
        """Compile a pattern. Raises PatternError."""
        # Imported for the first pattern: it takes 1.6 MiB, and most clusters have no HyperNodes.
        import re2

        if len(text) > CHARACTERS_MAX:
            raise PatternError(f"must have at most {CHARACTERS_MAX} characters")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.never_nl = True
        options.max_mem = _MEMORY_BYTES_MAX
        try:
            self._one = re2.compile(text.encode(), options)
            # Compiled second: "a)(b" is not a pattern, but would be one inside these brackets.
            at_once = f"(?m:(?:{text}).*)".encode()
            plain = not any(mark in text for mark in _OF_WHOLE_TEXTS)
            self._lines = re2.compile(at_once, options) if plain else None
        except re2.error as error:
            raise PatternError(_words(*error.args)) from None
        except UnicodeEncodeError:
            raise PatternError("must be valid Unicode") from None

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """The names in which the pattern matches; without anchors it matches anywhere in a name.

        Searches all names as one text where the result is the same: one search per name takes
        twenty times as long (measured: 10,000 names, 120 ms).
        """
        listed = [*names]
        text = "\n".join(listed).encode("utf-8", "surrogatepass")
        if self._lines is None or text.count(b"\n") != len(listed) - 1:
            return frozenset(name for name in listed if self._one.search(_bytes(name)))
        matching: set[str] = set()
        for match in self._lines.finditer(text):
            begin = text.rfind(b"\n", 0, match.start()) + 1
            matching.add(text[begin : match.end()].decode("utf-8", "surrogatepass"))
        return frozenset(matching)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _words(said: object = "") -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
