"""Finds a gang among the verdicts and reads its records from the logs, by subject: records of other
gangs are not read.
"""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from shared.bus.connection import Bus
from shared.bus.jetstream_api import StoredMessage
from shared.contracts import codec, subjects
from shared.contracts.foreign_messages import is_foreign, unless_foreign
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from tutti.api.failures import Refusal
from tutti.client.gangs import is_named, is_uuid
from tutti.trace.timeline import GangRecords

_decode_outcome: Final = unless_foreign(subjects.OUTCOMES, codec.decode_outcome)
_decode_verdict: Final = unless_foreign(subjects.VERDICTS, codec.decode_verdict)


class Wanted(NamedTuple):
    """A reference to a gang: an id, or a namespace and a name."""

    gang_id: str
    namespace: str
    name: str
    #: The same reference as a gang's title, "job/train", in the namespace `place`; "": it is none.
    title: str = ""
    place: str = ""

    def names(self, verdict: Verdict) -> bool:
        """Whether it refers to this gang, by its name or by the name of the Job that owns it."""
        of_job = self.title.startswith("job/") and verdict.namespace == self.place
        return (of_job or verdict.namespace == self.namespace) and self.is_named(verdict.name)

    def is_named(self, gang: str) -> bool:
        """Whether a gang of this name, in its namespace, is meant."""
        return is_named(gang, self.name)


def read_reference(reference: str, namespace: str) -> Wanted:
    """`NAMESPACE/NAME`, `NAME` or `KIND/NAME` in the namespace given, or a gang's id."""
    if "/" in reference:
        first, _, name = reference.partition("/")
        return Wanted("", first, name, title=reference, place=namespace)
    gang_id = reference if is_uuid(reference) else ""
    return Wanted(gang_id, namespace, reference)


async def read_gang(bus: Bus, wanted: Wanted) -> GangRecords:
    """The records of a gang.

    Of several gangs with the name it is one that still exists, and the one with the newest verdict.
    Raises BusError, and Refusal when none has a verdict.
    """
    verdict = await _find(bus, wanted)
    gang_id = verdict.gang_id
    records = [
        (found.seq, codec.decode_decision_record(found.payload))
        for subject in (subjects.act(gang_id), subjects.note(gang_id))
        async for found in _records(bus, subjects.DECISIONS, subject)
        if not is_foreign(subjects.DECISIONS, found.payload)
    ]
    outcomes: dict[int, Outcome] = {}
    async for found in _records(bus, subjects.OUTCOMES, f"outcomes.{gang_id}.*"):
        outcome = _decode_outcome(found.payload)
        if isinstance(outcome, Outcome):
            outcomes[outcome.decision_seq] = outcome
    return GangRecords(verdict, sorted(records, key=lambda each: each[0]), outcomes)


async def _find(bus: Bus, wanted: Wanted) -> Verdict:
    if wanted.gang_id:
        found = await bus.get_last(subjects.VERDICTS, subjects.verdict(wanted.gang_id))
        verdict = _decode_verdict(found.payload) if found is not None else None
        if verdict is None:
            raise Refusal(f"no gang {wanted.gang_id} is known")
        return verdict
    known: list[Verdict] = []
    async for found in _records(bus, subjects.VERDICTS, subjects.VERDICTS_SUBJECTS):
        verdict = _decode_verdict(found.payload)
        if verdict is not None and wanted.names(verdict):
            known.append(verdict)
    if not known:
        raise Refusal(
            f"no gang {wanted.namespace}/{wanted.name} is known: no PodGroup of that name, and no "
            "Job of that name (deleted gangs are kept for an hour)"
        )
    return max(known, key=lambda each: (each.phase != "Gone", each.at_ms))


async def _records(bus: Bus, stream: str, subject: str) -> AsyncIterator[StoredMessage]:
    seq = 1
    while (found := await bus.get_next(stream, subject, seq)) is not None:
        yield found
        seq = found.seq + 1
