"""From the answers of services to a report. Pure.

Rates are differences of the counters of two rounds, over the processes that answered both.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shared.contracts.questions import ServiceStatus

#: Services without which no gang is bound.
NEEDED: Final = ("watcher", "gang-planner", "binder")
#: Services of which exactly one instance is active.
_ONE_ACTIVE: Final = frozenset({"watcher", "gang-planner"})
_GANGS: Final = re.compile(r'gangs\{phase="([^"]*)"\}')


class ServiceLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    service: str
    instance: str
    ready: bool
    active: bool
    version: str
    started_ms: int
    pid: int
    http_port: int
    not_ready: tuple[str, ...] = ()
    notes: dict[str, str] = {}


class StreamLine(msgspec.Struct, frozen=True, kw_only=True):
    stream: str
    messages: int
    first_seq: int
    last_seq: int


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    #: Whether all required services answer and are ready, and the reasons why not.
    ready: bool
    problems: tuple[str, ...]
    #: Every instance that answered, sorted.
    services: tuple[ServiceLine, ...]
    #: Gangs by phase; those that are repaired or released count as Repairing and Releasing.
    gangs: dict[str, int]
    #: Lost members with a replacement reservation, or waiting for one.
    holds: int
    decisions_per_s: float
    pods_bound_per_s: float
    #: None if no webhook answered.
    webhook_registered: bool | None = None
    streams: tuple[StreamLine, ...] = ()


def report(
    first: Sequence[ServiceStatus],
    second: Sequence[ServiceStatus],
    seconds: float,
    streams: Iterable[StreamLine],
    store_problem: str = "",
) -> Report:
    """The report of two rounds of answers, some seconds apart; all values but the rates come from
    the second. `store_problem`: why NATS cannot store; "" if it can, or if that is unknown.
    """
    problems = _problems(second)
    if store_problem:
        problems.insert(0, f"NATS stores nothing: {store_problem}")
    webhooks = [each for each in second if each.service == "admission-webhook"]
    return Report(
        ready=not problems,
        problems=tuple(problems),
        services=tuple(
            sorted(
                msgspec.convert(second, list[ServiceLine], from_attributes=True),
                key=lambda line: (line.service, line.instance, line.pid),
            )
        ),
        gangs=_gangs(second),
        holds=_holds(second),
        decisions_per_s=_rate(first, second, seconds, "gang-planner", "decisions_total"),
        pods_bound_per_s=_rate(first, second, seconds, "binder", "pods_bound_total"),
        webhook_registered=(
            any(each.figures.get("webhook_registered") == 1.0 for each in webhooks)
            if webhooks
            else None
        ),
        streams=tuple(streams),
    )


def _problems(answers: Sequence[ServiceStatus]) -> list[str]:
    problems: list[str] = []
    for service in NEEDED:
        of_service = [each for each in answers if each.service == service]
        if not of_service:
            problems.append(f"no {service} answers")
        elif service in _ONE_ACTIVE and not any(each.active for each in of_service):
            problems.append(f"no {service} is active")
    problems += [
        f"{each.instance}: {', '.join(each.not_ready) or 'not ready'}"
        for each in answers
        if not each.ready
    ]
    return problems


def _gangs(answers: Iterable[ServiceStatus]) -> dict[str, int]:
    gangs: dict[str, int] = {}
    for answer in answers:
        if answer.service != "gang-planner" or not answer.active:
            continue
        for name, value in answer.figures.items():
            match = _GANGS.fullmatch(name)
            if match is not None and value:
                gangs[match[1]] = gangs.get(match[1], 0) + int(value)
    return dict(sorted(gangs.items()))


def _holds(answers: Iterable[ServiceStatus]) -> int:
    writing = (each for each in answers if each.service == "gang-planner" and each.active)
    return int(sum(each.figures.get("holds_open", 0.0) for each in writing))


def _rate(
    first: Sequence[ServiceStatus],
    second: Sequence[ServiceStatus],
    seconds: float,
    service: str,
    figure: str,
) -> float:
    before = {(each.instance, each.pid): _total(each.figures, figure) for each in first}
    gained = sum(
        _total(each.figures, figure) - before[each.instance, each.pid]
        for each in second
        if each.service == service and (each.instance, each.pid) in before
    )
    return round(max(0.0, gained) / seconds, 2) if seconds > 0 else 0.0


def _total(figures: Mapping[str, float], figure: str) -> float:
    return sum(
        value for name, value in figures.items() if name == figure or name.startswith(f"{figure}{{")
    )
