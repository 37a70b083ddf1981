"""`tutti fits` asks the process that answers for the planner, over a real nats-server."""

import asyncio
import io
import pathlib
from typing import Literal

import click.testing
import msgspec
import pytest
from rich.console import Console

from services.api.core.openapi import openapi_document
from shared.bus.connection import Bus
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest, LedgerAnswer, LedgerRequest
from shared.contracts.visibility import (
    API_VERSION,
    Displacement,
    Fit,
    FitStatus,
    GangFit,
    ManifestsSpec,
    NamedGangs,
    ObjectMeta,
)
from tests.services.api.conformity import violations
from tests.services.gang_planner.core.scene import Scene, make_node
from tutti.fits_command import fits, show
from tutti.nats_server import NatsServer

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec:
  parallelism: PODS
  template:
    spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
"""


@pytest.mark.integration
async def test_a_gang_that_fits_is_reported_with_its_nodes_and_another_with_the_reason(
    nats_server: NatsServer, tmp_path: pathlib.Path
) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    bus = await Bus.connect(nats_server.url, name="planner")

    async def answer(question: FitRequest) -> FitAnswer:
        return scene.planner.would_fit(question)

    async def ledger(_: LedgerRequest) -> LedgerAnswer:
        return LedgerAnswer(queues=())

    await serve(bus, subjects.ASK_FIT, codec.decode_fit_request, answer)
    await serve(bus, subjects.ASK_LEDGER, codec.decode_ledger_request, ledger)

    async def asked(pods: int, *flags: str) -> click.testing.Result:
        path = tmp_path / "job.yaml"
        path.write_text(JOB.replace("PODS", str(pods)))
        command = ["-f", str(path), "--nats", nats_server.url, *flags]
        return await asyncio.to_thread(click.testing.CliRunner().invoke, fits, command)

    try:
        done = await asked(2)
        assert (done.exit_code, done.stdout) == (
            0,
            "team/train: would fit now\n  1 on n0, 1 on n1\n",
        )
        done = await asked(3, "-o", "json")
        assert done.exit_code == 1
        fit = msgspec.json.decode(done.stdout)
        assert violations(openapi_document(), "Fit", fit) == []
        assert fit["metadata"]["namespace"] == "team"
        (found,) = fit["status"]["gangs"]
        assert found["members"] == 3
        assert "2 of 3 pods fit" in found["message"]
    finally:
        await bus.close()
    done = await asked(1)
    assert done.exit_code == 2
    assert "no standby planner answers" in done.output


@pytest.mark.parametrize(
    ("action", "gangs", "words"),
    [
        (
            "preempt",
            NamedGangs(count=2, names=("team/a", "x/b")),
            "once created, 4 pods would be preempted for it, of team/a, x/b",
        ),
        (
            "reclaim",
            NamedGangs(count=3, names=("team/a",)),
            "4 pods would be reclaimed from other queues for it, of team/a, 2 other gangs",
        ),
    ],
)
def test_gangs_whose_pods_would_be_evicted_are_reported(
    action: Literal["preempt", "reclaim"], gangs: NamedGangs, words: str
) -> None:
    one = GangFit(
        name="train",
        members=2,
        fits=False,
        ever=True,
        message="no room",
        displaces=Displacement(action=action, members=4, gangs=gangs),
    )
    fit = Fit(
        api_version=API_VERSION,
        kind="Fit",
        metadata=ObjectMeta(name="question", namespace="team"),
        spec=ManifestsSpec(manifests=()),
        status=FitStatus(fits=False, gangs=(one,), warnings=("document 1, Job a: words",)),
    )
    console = Console(file=io.StringIO(), width=1_000)
    show(fit, console)
    assert isinstance(console.file, io.StringIO)
    warning, first, second = console.file.getvalue().splitlines()
    assert warning == "Warning: document 1, Job a: words"
    assert first == "team/train: would have to wait: no room"
    assert words in second


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there must be an object in the files"),
        (bytes(range(256)), "not YAML: it must be text"),
        (b"\x00\x01", "not YAML: it must be text"),
        (b"a: b: c", "not YAML: line 1, column 5: mapping values are not allowed"),
        (b"[]", "document 1: must be an object with a kind"),
    ],
    ids=["empty", "binary", "control characters", "no YAML", "a list"],
)
@pytest.mark.integration
async def test_a_file_that_is_no_manifest_is_refused_with_status_2(
    nats_server: NatsServer, tmp_path: pathlib.Path, content: bytes, words: str
) -> None:
    bus = await Bus.connect(nats_server.url, name="planner")

    async def ledger(_: LedgerRequest) -> LedgerAnswer:
        return LedgerAnswer(queues=())

    await serve(bus, subjects.ASK_LEDGER, codec.decode_ledger_request, ledger)
    path = tmp_path / "job.yaml"
    path.write_bytes(content)
    command = ["-f", str(path), "--nats", nats_server.url]
    done = await asyncio.to_thread(click.testing.CliRunner().invoke, fits, command)
    await bus.close()
    assert done.exit_code == 2, done.output
    assert words in done.output
    assert "unicode string" not in done.output
    assert isinstance(done.exception, SystemExit)
