"""When a waiting gang is expected to start, as Tutti's API has it, if the cluster serves it."""

import asyncio
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from shared.contracts.visibility import GROUP, VERSION, ExpectedStart, Gang
from shared.contracts.visibility_resources import GANGS
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.resources import Resource
from tutti.api.fetches import at_once
from tutti.why.explanation import Answer, GangAnswer

_GANGS: Final = Resource(GROUP, VERSION, GANGS.plural, GANGS.kind, namespaced=True)
#: Waiting gangs of one object that are read.
_READ_MAX: Final = 20
#: The answer without it is complete, so a slow service does not delay it for long.
_TIMEOUT_S: Final = 2.0
_ORDINALS: Final = {1: "1st", 2: "2nd", 3: "3rd"}


async def with_expected_starts(client: KubeClient, answer: Answer) -> Answer:
    """The answer with the expected starts of its waiting gangs, as far as the API has them."""
    waiting = [gang.gang for gang in answer.gangs if gang.state == "waiting"][:_READ_MAX]
    served = await at_once(dict.fromkeys(waiting), lambda name: _read(client, name))
    gangs = tuple(_with_start(gang, served.get(gang.gang)) for gang in answer.gangs)
    return replace(answer, gangs=gangs)


async def _read(client: KubeClient, title: str) -> Gang | None:
    """The gang of a title ("namespace/name"); None: the API has none, or does not answer."""
    namespace, _, name = title.partition("/")
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await client.get(_GANGS, name, Gang, namespace=namespace)
    except (KubeError, TimeoutError):
        return None


def _with_start(gang: GangAnswer, served: Gang | None) -> GangAnswer:
    # A group of another API may have the same name.
    if served is None or gang.state != "waiting" or gang.uid not in {"", served.metadata.uid}:
        return gang
    status = served.status
    return replace(
        gang,
        # The group has it; of pods without a group only the API does.
        queue=gang.queue or status.queue,
        position=status.position,
        expected_start=status.expected_start,
    )


def expected_words(start: ExpectedStart, position: int | None, queue: str) -> str:
    """When a gang is expected to start, as a clause. Instants are UTC, with the date if it is not
    that of the estimate.
    """
    place = "" if position is None else f"{_ordinal(position)} in queue {queue}"
    day = start.as_of
    if start.earliest is None or start.latest is None:
        return "; ".join(filter(None, (f"no estimate: {start.basis}", place)))
    earliest, latest = _clock(start.earliest, day), _clock(start.latest, day)
    when = f"at {earliest}" if earliest == latest else f"between {earliest} and {latest}"
    basis = f" ({start.basis})" if start.basis else ""
    as_of = "" if day is None else f"as of {_clock(day, day)}"
    return ", ".join(filter(None, (f"expected to start {when} UTC{basis}", place, as_of)))


def _clock(instant: datetime, day: datetime | None) -> str:
    today = day is not None and instant.date() == day.date()
    return f"{instant:%H:%M}" if today else f"{instant:%Y-%m-%d %H:%M}"


def _ordinal(number: int) -> str:
    tens, digit = divmod(number, 10)
    if tens % 10 == 1 or digit not in _ORDINALS:
        return f"{number}th"
    return f"{tens or ''}{_ORDINALS[digit]}"
