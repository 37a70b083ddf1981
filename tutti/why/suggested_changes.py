"""What would help waiting gangs to start, as Tutti's API answers it, and in words."""

from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec.structs import replace

from shared.contracts.visibility_suggestions import SuggestionStatus
from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from tutti.api.fetches import at_once
from tutti.client.asynchronous import AsyncClient
from tutti.why.explanation import Answer, GangAnswer

#: Waiting gangs of one object that are asked about: each takes the planner some seconds.
ASKED_MAX: Final = 5
_OTHER_GANG: Final = "the API has another gang of this name"

_Result: TypeAlias = SuggestionStatus | KubeError


async def with_suggestions(client: KubeClient, answer: Answer) -> tuple[Answer, KubeError | None]:
    """The answer with what would help its first waiting gangs, and the first failure; a gang that
    the API gave no answer about is unchanged.
    """
    asked = {gang.gang: gang for gang in _waiting(answer)[:ASKED_MAX]}
    api = AsyncClient(kube=client)
    results = await at_once(asked, lambda name: _ask(api, asked[name]))
    gangs = tuple(_with_result(gang, results.get(gang.gang)) for gang in answer.gangs)
    failures = (result for result in results.values() if isinstance(result, KubeError))
    return replace(answer, gangs=gangs), next(failures, None)


async def _ask(api: AsyncClient, gang: GangAnswer) -> _Result:
    namespace, _, name = gang.gang.partition("/")
    try:
        served = await api.gang(name, namespace=namespace)
        # A group of another API may have the same name.
        if gang.uid not in {"", served.metadata.uid}:
            return SuggestionStatus(sentence=_OTHER_GANG)
        return await api.what_would_help(name, namespace=namespace)
    except KubeError as error:
        return error


def _with_result(gang: GangAnswer, result: _Result | None) -> GangAnswer:
    if gang.state != "waiting" or not isinstance(result, SuggestionStatus):
        return gang
    return replace(gang, what_would_help=result)


def suggestion_lines(answer: Answer) -> Iterable[str]:
    """What would help, in lines, with the gang's name if there are several."""
    waiting = _waiting(answer)
    if not waiting:
        yield "no gang waits, so no change was tried"
    for gang in waiting:
        if gang.what_would_help is not None:
            name = (gang.name or gang.gang) if len(answer.gangs) > 1 else ""
            yield from _lines(gang.what_would_help, name)
    if len(waiting) > ASKED_MAX:
        yield f"changes were tried for the first {ASKED_MAX} of {len(waiting)} waiting gangs"


def _lines(status: SuggestionStatus, name: str) -> Iterable[str]:
    if status.suggestions:
        yield f"{name or 'it'} would start"
        yield from (f"  {each.change}" for each in status.suggestions)
    else:
        yield f"{name}: {status.sentence}" if name else status.sentence


def _waiting(answer: Answer) -> list[GangAnswer]:
    return [gang for gang in answer.gangs if gang.state == "waiting"]
