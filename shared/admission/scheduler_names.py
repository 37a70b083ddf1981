"""Warnings about scheduler names that differ from one of ours by a single typing error.

Mostly no scheduler serves such a name, and its pods wait without any message. An added or changed
digit is no typing error: digits distinguish schedulers of one kind.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from shared.admission.parts import text_at
from shared.admission.rules import Case
from shared.dialects.protocol import JsonObject

#: Volcano's own scheduler name, which a Volcano Job without a name gets.
VOLCANO: Final = "volcano"

#: One added or replacing character.
_ANY: Final = "[^0-9]"
#: Too many valid names are within one typing error of a shorter name.
_LENGTH_MIN: Final = 4


def misspellings(names: Iterable[str]) -> str:
    """A regular expression for Python and CEL that matches the misspellings of these names: one
    letter added, missing or replaced, or two neighbouring letters swapped; "" for no names.
    """
    rules = [f"^({'|'.join(_misspellings(name))})$" for name in names if len(name) >= _LENGTH_MIN]
    return "|".join(rules)


def _nearest(name: str, names: tuple[str, ...]) -> str:
    """The name that `name` misspells; "" when it is one of the names, or resembles none."""
    if name in names:
        return ""
    return next((known for known in names if (rule := _compiled(known)) and rule.match(name)), "")


def of_pod(case: Case) -> tuple[str, ...]:
    """The warning about a pod's scheduler name."""
    return of_name(text_at(case.candidate, "spec", "schedulerName"), case)


def of_job(case: Case) -> tuple[str, ...]:
    """The warning about the scheduler name of a Volcano Job that is created."""
    return of_name(job_scheduler(case.candidate), case) if case.operation == "CREATE" else ()


def of_name(name: str, case: Case) -> tuple[str, ...]:
    """The warning about a scheduler name; () unless it misspells one of ours."""
    nearest = _nearest(name, case.known.scheduler_names)
    if not nearest:
        return ()
    warning = (
        f'tutti: schedulerName "{name[:63]}" is not served by Tutti (did you mean "{nearest}"?); '
        "if no other scheduler has that name, the pods stay Pending"
    )
    return (warning,)


def job_scheduler(job: JsonObject) -> str:
    """The scheduler of a Volcano Job, given or by default."""
    return text_at(job, "spec", "schedulerName") or VOLCANO


def _misspellings(name: str) -> Iterator[str]:
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
    rule = misspellings([name])
    return re.compile(rule) if rule else None
