"""Reads the lists of mutants, and makes the source of one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
LISTS: Final = Path(__file__).parent / "mutants"
#: The areas with lists, in the order of the page.
AREAS: Final = ("binder", "api", "lifecycle", "foresight", "ledgers", "security")


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one file."""

    area: str
    #: Relative to the repository.
    path: str
    promise: str
    anchor: str
    replacement: str
    #: Why no test can notice it; "": one must.
    equivalent: str = ""

    @property
    def module(self) -> str:
        """Its file as Python imports it."""
        return self.path.removesuffix(".py").replace("/", ".")


class InvalidList(Exception):
    """A list of mutants that breaks a rule; the text names the mutant."""


def read_lists(folder: Path = LISTS) -> list[Mutant]:
    """All mutants, by area. Raises InvalidList."""
    mutants: list[Mutant] = []
    for area in AREAS:
        file = folder / f"{area}.txt"
        if file.is_file():
            mutants += parse(file.read_text(), area)
    return mutants


def parse(text: str, area: str) -> Iterator[Mutant]:
    """The mutants of one list. Raises InvalidList."""
    path = ""
    for part in re.split(r"^(?=## |\* )", text, flags=re.MULTILINE):
        if not part.strip():
            continue
        if part.startswith("## "):
            path = part.removeprefix("## ").strip()
            continue
        yield _mutant(part, area, path)


def _mutant(part: str, area: str, path: str) -> Mutant:
    promise, *lines = part.rstrip("\n").split("\n")
    fields: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if line[:2] in {"- ", "+ ", "= "} or line in {"-", "+"}:
            current = fields.setdefault(line[0], [])
            current.append(line[2:])
        elif current is not None:
            # A further line of the file, with its own indentation.
            current.append(line)
        else:
            raise InvalidList(f"{promise}: a line before its text")
    if not path or set(fields) - {"="} != {"-", "+"}:
        raise InvalidList(f"{promise}: needs a file, a text (-) and its replacement (+)")
    joined = {sign: "\n".join(found) for sign, found in fields.items()}
    return Mutant(
        area=area,
        path=path,
        promise=promise.removeprefix("* ").strip(),
        anchor=joined["-"],
        replacement=joined["+"],
        equivalent=joined.get("=", ""),
    )


def source_of(mutant: Mutant) -> str:
    """The file with the change. Raises InvalidList: it cannot be made."""
    file = ROOT / mutant.path
    text = file.read_text() if file.is_file() else ""
    times = text.count(mutant.anchor)
    if times != 1:
        raise InvalidList(f"{mutant.path}: occurs {times} times, not once: {mutant.anchor!r}")
    changed = text.replace(mutant.anchor, mutant.replacement)
    if changed == text:
        raise InvalidList(f"{mutant.path}: changes nothing: {mutant.anchor!r}")
    try:
        compile(changed, mutant.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise InvalidList(f"{mutant.path}: is no Python: {mutant.anchor!r}: {error}") from None
    return changed
