"""What a deleted workload may not leave: objects of its namespace, and verdicts on its gangs."""

from typing import Final

from shared.bus.connection import Bus
from shared.bus.permissions import PEOPLES_API, READER
from shared.contracts import codec, subjects
from tests.integration.stage import INCUBATOR, SIGS, VOLCANO, Stage
from tests.integration.suite import RunningSuite
from tests.support.waiting import eventually

#: Collections that operators, controllers and Tutti fill for a workload.
_COLLECTIONS: Final = (
    ("pods", "v1"),
    ("services", "v1"),
    ("configmaps", "v1"),
    ("secrets", "v1"),
    ("persistentvolumeclaims", "v1"),
    ("jobs", "batch/v1"),
    ("statefulsets", "apps/v1"),
    ("resourceclaims", "resource.k8s.io/v1"),
    ("podgroups", VOLCANO),
    ("podgroups", INCUBATOR),
    ("podgroups", SIGS),
)
_GONE_S: Final = 60.0


async def nothing_remains(stage: Stage, *more: tuple[str, str]) -> None:
    """Wait until the namespace has no such object, and no verdict on a gang of it.

    Args:
        stage: The namespace.
        more: Further collections that must be empty: plural and version.
    """

    async def nothing() -> bool:
        found = [name for each in (*_COLLECTIONS, *more) for name in await _names(stage, *each)]
        found += [f"verdict {name}" for name in await verdicts(stage.suite, stage.namespace)]
        assert not found, found
        return True

    await eventually(nothing, timeout_s=_GONE_S, because="nothing remains of the workloads")


async def verdicts(suite: RunningSuite, namespace: str) -> list[str]:
    """Names of the namespace's gangs that have a verdict. A deleted gang's is Gone, and expires."""
    ready = suite.ready
    bus = await Bus.connect(
        ready.nats_url, name="test", user=READER, credentials=ready.nats_credentials, patience_s=5
    )
    bus.api_prefix = PEOPLES_API
    found = []
    seq = 1
    try:
        while stored := await bus.get_next(subjects.VERDICTS, subjects.VERDICTS_SUBJECTS, seq):
            verdict = codec.decode_verdict(stored.payload)
            if verdict.namespace == namespace and verdict.phase != "Gone":
                found.append(verdict.name)
            seq = stored.seq + 1
    finally:
        await bus.close()
    return found


async def _names(stage: Stage, plural: str, version: str) -> list[str]:
    listed = await stage.api.get(stage.path(plural, version=version))
    return [f"{plural} {each['metadata']['name']}" for each in listed["items"]]
