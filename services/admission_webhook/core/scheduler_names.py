"""Scheduler names that are one slip away from one of ours: mostly no scheduler serves them, and a
pod waits for its scheduler in silence.

A digit too many is no slip: such names distinguish schedulers of one kind.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from services.admission_webhook.core.case import Case, job_scheduler
from services.admission_webhook.core.parts import text_at

#: Any one character that may stand in the place of another, or between two.
_ANY: Final = "[^0-9]"
#: Of shorter names too many others are one slip away.
_LENGTH_MIN: Final = 4


def slips(names: Iterable[str]) -> str:
    """A regular expression, of Python's and of CEL's kind, that matches all of a name which is one
    letter more, less or other, or two letters swapped, away from one of these; "" for no names.
    """
    found = [f"^({'|'.join(_slips(name))})$" for name in names if len(name) >= _LENGTH_MIN]
    return "|".join(found)


def meant(name: str, names: tuple[str, ...]) -> str:
    """Which of the names was meant; "" when `name` is one of them, or like none."""
    if name in names:
        return ""
    return next((one for one in names if (rule := _compiled(one)) and rule.match(name)), "")


def of_pod(case: Case) -> tuple[str, ...]:
    """What is said of a pod's scheduler name."""
    return of_name(text_at(case.candidate, "spec", "schedulerName"), case)


def of_job(case: Case) -> tuple[str, ...]:
    """The same for a Volcano Job that is created."""
    return of_name(job_scheduler(case.candidate), case) if case.operation == "CREATE" else ()


def of_name(name: str, case: Case) -> tuple[str, ...]:
    """What is said of a scheduler name."""
    wanted = meant(name, case.known.scheduler_names)
    if not wanted:
        return ()
    said = f'tutti: schedulerName "{name[:63]}" is not served by Tutti (did you mean "{wanted}"?)'
    return (f"{said}; if no other scheduler has that name, the pods stay Pending",)


def _slips(name: str) -> Iterator[str]:
    parts = [re.escape(letter) for letter in name]
    for at in range(len(parts) + 1):
        before, after = "".join(parts[:at]), "".join(parts[at:])
        yield f"{before}{_ANY}{after}"
        if at < len(parts):
            yield f"{before}{_ANY}?{''.join(parts[at + 1 :])}"
        if at + 1 < len(parts):
            yield f"{before}{parts[at + 1]}{parts[at]}{''.join(parts[at + 2 :])}"


@cache
def _compiled(name: str) -> re.Pattern[str] | None:
    rule = slips([name])
    return re.compile(rule) if rule else None
