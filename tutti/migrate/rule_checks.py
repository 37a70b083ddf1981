"""Runs the services' own rules, each in a process of its own: commands never import services."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from shared.kube.resources import Resource
from tutti.api.failures import Refusal
from tutti.api.objects import Object, name_of, namespace_of
from tutti.migrate.cluster_facts import PolicyText, Refused

_ADMISSION: Final = "services.admission_webhook.checking"
_PLANNER: Final = "services.gang_planner.checking"


class _RefusedObject(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    errors: tuple[str, ...]


class _CheckedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    error: str
    warnings: tuple[str, ...]


async def find_refused(
    objects: Sequence[tuple[Resource, Object]], scheduler_names: tuple[str, ...]
) -> tuple[Refused, ...]:
    """The objects that the webhook's rules would refuse if they were created now."""
    if not objects:
        return ()
    stored = [
        {"group": resource.group, "plural": resource.plural, "body": one}
        for resource, one in objects
    ]
    question = {"scheduler_names": scheduler_names, "objects": stored}
    answer = await _ask(_ADMISSION, msgspec.json.encode(question))
    found = msgspec.json.decode(answer, type=list[_RefusedObject])
    return tuple(
        Refused(
            kind=objects[one.index][0].kind, name=_name(objects[one.index][1]), errors=one.errors
        )
        for one in found
    )


async def check_policy(policy: PolicyText) -> PolicyText:
    """The configuration with the planner's error and warnings."""
    answer = await _ask(_PLANNER, policy.text.encode())
    found = msgspec.json.decode(answer, type=_CheckedPolicy)
    return msgspec.structs.replace(policy, error=found.error, warnings=found.warnings)


async def _ask(module: str, question: bytes) -> bytes:
    """Raises Refusal when the process ends with an error, which is a bug."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate(question)
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise Refusal(f"{module} ended with status {process.returncode}: {' '.join(last)}")
    return out


def _name(one: Object) -> str:
    namespace = namespace_of(one)
    return f"{namespace}/{name_of(one)}" if namespace else name_of(one)
