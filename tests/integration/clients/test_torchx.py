"""TorchX with its scheduler `kubernetes`, which submits Volcano Jobs, on a real cluster."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.nodes import GPU
from tests.documents.blocks import blocks
from tests.documents.links import ROOT
from tests.documents.playing import matches
from tests.integration.clients.programs import Programs, shown
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(300)]

SUITE_FLAGS: Final = ()
MEMBERS: Final = 4
_PAGE: Final = ROOT / "docs" / "operators" / "torchx.md"
#: Its states follow the Job's phase; it is asked again until the controller has written it.
_SEEN_S: Final = 60.0


class TorchX:
    """The command `torchx` of a user of the stage's namespace."""

    def __init__(self, stage: Stage, home: Path) -> None:
        self._namespace = stage.namespace
        self._programs = Programs(stage, home)

    async def said(self, *arguments: str) -> str:
        """What the command prints."""
        return await self._programs.said("-m", "torchx.cli.main", *arguments)

    async def run(self) -> str:
        """Submit the page's job; its handle."""
        (typed,) = [
            command.typed
            for block in blocks(_PAGE.name, _PAGE.read_text())
            for command in (block.commands() if block.typed else ())
            if command.typed.startswith("torchx run")
        ]
        words = typed.replace("namespace=default", f"namespace={self._namespace}").split()
        output = await self.said(*words[1:])
        return next(word for word in output.split() if word.startswith("kubernetes://"))

    async def is_in(self, handle: str, state: str) -> None:
        """Wait until `torchx status` says this state."""

        async def reported() -> bool:
            said = await self.said("status", handle)
            assert f"State: {state}" in said, said
            return True

        await eventually(reported, timeout_s=_SEEN_S, poll_s=1.0, because=f"it is {state}")


@pytest.fixture
def torchx(stage: Stage, tmp_path: Path) -> TorchX:
    return TorchX(stage, tmp_path)


async def test_of_two_jobs_the_second_waits_whole_until_the_first_is_cancelled(
    stage: Stage, torchx: TorchX
) -> None:
    await stage.nodes(MEMBERS, extended={GPU: 1})
    first = await torchx.run()
    await stage.bound("", MEMBERS)
    await torchx.is_in(first, "RUNNING")
    second = await torchx.run()
    name = second.rpartition(":")[2]
    await torchx.is_in(second, "PENDING")
    expected = re.sub(r"job/train-r\w+", "job/…", shown("torchx", "tutti why"))
    expected = re.sub(r"train-c\w+", name, expected)

    async def explained() -> bool:
        said = await stage.why(f"vcjob/{name}", "waits: ")
        assert matches(expected, said), said
        return True

    await eventually(explained, timeout_s=_SEEN_S, because="it is explained as on the page")
    assert len(await stage.placed()) == MEMBERS
    # It deletes the Job.
    await torchx.said("cancel", first)

    async def is_whole() -> bool:
        placed = await stage.placed()
        assert sum(pod.startswith(name) for pod in placed) == MEMBERS, placed
        return True

    await eventually(is_whole, timeout_s=_SEEN_S, because="the second job is whole")
    await torchx.is_in(second, "RUNNING")
    for pod in await stage.pods():
        if pod["metadata"]["name"].startswith(name):
            stage.kubelet.finish(pod["metadata"]["uid"])
    await torchx.is_in(second, "SUCCEEDED")
