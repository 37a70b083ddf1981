"""Prints the report as text: each object, then each gang, one line per detail."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from shared.explanation.report import GangReport, ObjectReport, Report

_OBJECT_WIDTH = 9
_GANG_WIDTH = 11


def show(report: Report, console: Console) -> None:
    """Print it; in colour where the console has colours."""
    for one in report.objects:
        _line(console, Text(f"{one.place}: {one.title}", style="bold"))
        _rows(console, _of_object(one), _OBJECT_WIDTH)
    for gang in report.gangs:
        colour = "green" if gang.scheduled else "yellow"
        words = "Tutti schedules it" if gang.scheduled else "Tutti does not schedule all of it"
        _line(console, Text(f"\ngang {gang.title}: {words}", style=f"bold {colour}"))
        _rows(console, _of_gang(gang), _GANG_WIDTH)


def _rows(console: Console, rows: Iterator[tuple[str, str]], width: int) -> None:
    for label, value in rows:
        style = "yellow" if label == "missing" else ""
        _line(console, Text.assemble("  ", (label.ljust(width), "dim"), "  ", (value, style)))


def _of_object(one: ObjectReport) -> Iterator[tuple[str, str]]:
    yield from (("gang", title) for title in one.gangs)
    yield from (("read", fact) for fact in one.facts)
    for place in one.declared:
        by = f" (dialect {place.dialect})" if place.dialect else ""
        yield "declares", f"{place.place}: {place.value}{by}: {place.sentence}"
    yield from (("scheduler", f"{name.scheduler}: {name.sentence}") for name in one.scheduling)
    yield from (("missing", text) for text in one.missing)
    yield from (("ignored", text) for text in one.ignored)


def _of_gang(gang: GangReport) -> Iterator[tuple[str, str]]:
    yield "declared by", gang.declared_by
    minimum = "not known" if gang.minimum is None else str(gang.minimum)
    yield "members", f"{gang.members} in these files, minimum {minimum}"
    for role in gang.roles:
        least = f", minimum {role.minimum}" if role.minimum else ""
        yield "role", f"{role.role}: {role.members}{least}"
    for part in gang.parts:
        where = f", {part.topology}" if part.topology else ""
        name = f"{'  ' * (part.level - 1)}{part.name}"
        yield "group", f"{name}: {part.count} {part.of}, minimum {part.minimum}{where}"
    yield "queue", gang.queue
    if gang.priority_class:
        yield "priority", gang.priority_class
    if gang.topology:
        yield "topology", gang.topology
    yield from (("missing", text) for text in gang.missing)
    yield from (("ignored", text) for text in gang.ignored)


def _line(console: Console, text: Text) -> None:
    """Print without breaking lines, for grep."""
    console.print(text, soft_wrap=True)
