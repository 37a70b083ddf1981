"""Would these manifests fit? Each interface is asked the same table, and gives the same answer."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest

from shared.contracts.visibility import FitStatus
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import Invalid
from tests.controlplane.client import ApiError as RawApiError
from tests.controlplane.client import Object
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually
from tests.tutti.up.running import tutti
from tutti.client.asynchronous import AsyncClient
from tutti.console_command import ConsoleServer

SUITE_FLAGS = ("--api",)
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

_GROUP = "visibility.tutti.dev/v1alpha1"
_PATIENCE_S = 90.0


class Answer(NamedTuple):
    """What one interface answers."""

    #: The errors of a refusal.
    refused: tuple[str, ...] = ()
    #: Name, `fits`, `ever` and message of each gang.
    gangs: tuple[tuple[str, bool, bool, str], ...] = ()
    warnings: tuple[str, ...] = ()


class Row(NamedTuple):
    manifests: list[Object]
    #: Words of a refusal; "": it is answered.
    refused: str = ""
    #: Whether each gang fits.
    fits: tuple[bool, ...] = ()
    #: Words of the only warning; "": there is none.
    warned: str = ""
    #: Whether the webhook refuses the objects too, and `explain-dialect` names it.
    admission_refuses: bool = True


def job(name: str = "train", *, cpu: Any = "1", replicas: Any = 2, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    fields = {"schedulerName": "volcano", "minAvailable": 2, "tasks": [task], **spec}
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return {**kind, "metadata": {"name": name}, "spec": fields}


def batch_job(**spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    kind = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}}
    return {**kind, "spec": {"parallelism": 2, "template": template, **spec}}


def pod_group(*, minimum: int, pods: int) -> list[Object]:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    group = {**kind, "metadata": {"name": "few"}, "spec": {"minMember": minimum}}
    marks = {"annotations": {"scheduling.k8s.io/group-name": "few"}}
    spec = {"schedulerName": "tutti", "containers": [{"name": "c", "image": "i"}]}
    of_it = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"few-{n}", **marks}, "spec": spec}
        for n in range(pods)
    ]
    return [group, *of_it]


#: Of pods that name the group of `pod_group`.
NAMING_TEMPLATE: Object = {
    "metadata": {"annotations": {"scheduling.k8s.io/group-name": "few"}},
    "spec": {
        "schedulerName": "tutti",
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}],
    },
}
CONFIG_MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings"},
    "data": {"a": "b"},
}
QUEUE: Object = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "of-the-file"},
    "spec": {"weight": 1},
}
SMALL_QUEUE: Object = {
    **QUEUE,
    "metadata": {"name": "small-of-the-file"},
    "spec": {"weight": 1, "capability": {"cpu": "1"}},
}

#: On two nodes of four CPUs.
TABLE = {
    "fits": Row([job()], fits=(True,)),
    "waits for ever": Row([job(cpu="400")], fits=(False,)),
    "two that fit alone": Row([job("a", cpu="3"), job("b", cpu="3")], fits=(True, False)),
    "a group alone": Row(pod_group(minimum=2, pods=0), fits=(False,)),
    "a group of too few pods": Row(pod_group(minimum=2, pods=1), fits=(False,)),
    "a group of enough pods": Row(pod_group(minimum=2, pods=2), fits=(True,)),
    "a group of pods of a Job": Row(
        [*pod_group(minimum=2, pods=0), batch_job(template=NAMING_TEMPLATE)], fits=(True,)
    ),
    "a Job of a group that does not exist": Row(
        [batch_job(template=NAMING_TEMPLATE)], fits=(False,)
    ),
    "in a namespace that does not exist": Row(
        [{**job(), "metadata": {"name": "train", "namespace": "nowhere"}}],
        refused="namespace nowhere does not exist",
    ),
    "in the queue of a namespace of the file": Row(
        [
            SMALL_QUEUE,
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": "made",
                    "annotations": {"scheduling.volcano.sh/queue-name": "small-of-the-file"},
                },
            },
            {**job(), "metadata": {"name": "train", "namespace": "made"}},
        ],
        fits=(False,),
    ),
    "beside a ConfigMap": Row([CONFIG_MAP, job()], fits=(True,)),
    "in a queue of the file": Row([QUEUE, job(queue="of-the-file")], fits=(True,)),
    "above its replicas": Row([job(minAvailable=5)], refused="minAvailable"),
    "unknown queue": Row([job(queue="nowhere")], refused="nowhere"),
    "unknown field": Row([job(minAvailableX=2)], refused='unknown field "spec.minAvailableX"'),
    "words for a number": Row([job(replicas="three")], refused="spec.tasks[0].replicas"),
    "a misspelt field of the metadata": Row(
        [{**job(), "metadata": {"name": "train", "label": {"a": "b"}}}],
        refused='unknown field "metadata.label"',
    ),
    "no name": Row([{**job(), "metadata": {}}], refused="metadata.name: Required value"),
    "a name that is none": Row([job("Train_1")], refused='metadata.name: Invalid value: "Train_1"'),
    "a version that is not served": Row(
        [{**job(), "apiVersion": "batch.volcano.sh/v1beta1"}], refused="apiVersion: Unsupported"
    ),
    "twice": Row([job(), job()], refused="document 2, Job train: metadata.name: Duplicate value"),
    "a null is left out": Row([job(plugins=None, queue=None)], fits=(True,)),
    "an amount of a fraction": Row([job(cpu=0.5)], fits=(True,)),
    "unserved": Row(
        [job(schedulerName="volcanoo")], refused="not served by Tutti", admission_refuses=False
    ),
    "an annotation that is misspelt": Row(
        [{**batch_job(), "metadata": {"name": "plain", "annotations": {"tutti.dev/gang": "All"}}}],
        fits=(True,),
        warned='tutti.dev/gang of Job plain has no effect: "All" is neither "all" nor "none"',
    ),
    "a field of Kubernetes": Row([batch_job(parallelismX=3)], refused='field "spec.parallelismX"'),
    "nothing": Row([CONFIG_MAP], refused="declares no gang", admission_refuses=False),
}


def answered(status: FitStatus) -> Answer:
    gangs = tuple((one.name, one.fits, one.ever, one.message) for one in status.gangs)
    return Answer(gangs=gangs, warnings=status.warnings)


class Interfaces:
    """All of them, for one namespace."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self._stage = stage
        self._folder = folder
        self._kubeconfig = stage.suite.kubeconfig

    async def by_client(self, manifests: list[Object]) -> Answer:
        async with AsyncClient(kubeconfig=self._kubeconfig) as client:
            try:
                return answered(await client.fits(manifests, namespace=self._stage.namespace))
            except Invalid as error:
                return Answer(refused=tuple(one.message for one in error.details.causes))

    async def by_command(self, manifests: list[Object], *flags: str) -> Answer:
        path = self._folder / f"manifests-{len(flags)}-{abs(hash(flags))}.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
        status, out, err = await tutti(
            "fits", "-f", str(path), f"--namespace={self._stage.namespace}", "-o", "json", *flags
        )
        if status == 2:
            first, *errors = err.splitlines()
            assert first == "tutti: these manifests would be refused:", err
            return Answer(refused=tuple(line.removeprefix("  ") for line in errors))
        answer = answered(msgspec.convert(json.loads(out)["status"], FitStatus))
        assert status == (0 if all(fits for _, fits, *_ in answer.gangs) else 1)
        return answer

    async def by_console(self, manifests: list[Object]) -> Answer:
        async with KubeClient(await load(str(self._kubeconfig))) as kube:
            server = ConsoleServer(kube)
            async with server.serving(0), aiohttp.ClientSession() as session:
                address, _, token = server.url.partition("/console/#token=")
                path = f"/apis/{_GROUP}/namespaces/{self._stage.namespace}/fits"
                async with session.post(
                    f"{address}{path}",
                    data=json.dumps(a_fit(manifests)),
                    headers={"Authorization": f"Bearer {token}"},
                ) as response:
                    found = await response.json(content_type=None)
        if response.status == 422:
            return Answer(refused=tuple(one["message"] for one in found["details"]["causes"]))
        assert response.status == 201, found
        return answered(msgspec.convert(found["status"], FitStatus))

    async def by_kubectl(self, manifests: list[Object]) -> tuple[int, str, str]:
        path = self._folder / "fit.json"
        path.write_text(json.dumps(a_fit(manifests)))
        return await self._kubectl("create", "-f", str(path), "-o", "json")

    async def by_webhook(self, manifests: list[Object]) -> bool:
        """Whether a dry run of the objects is refused."""
        path = self._folder / "objects.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
        status, _, _ = await self._kubectl("create", "--dry-run=server", "-f", str(path))
        return status != 0

    async def by_explanation(self, manifests: list[Object]) -> bool:
        """Whether `explain-dialect` says that admission refuses an object."""
        path = self._folder / "explained.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
        _, out, _ = await tutti("explain-dialect", "-f", str(path))
        return "admission refuses it" in out

    async def _kubectl(self, *arguments: str) -> tuple[int, str, str]:
        command = [str(self._stage.control_plane.binaries.kubectl)]
        command += [f"--kubeconfig={self._kubeconfig}", f"--namespace={self._stage.namespace}"]
        done = await asyncio.to_thread(
            subprocess.run,
            [*command, *arguments],
            env={"HOME": str(self._folder), "PATH": ""},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


def a_fit(manifests: list[Object]) -> Object:
    kind = {"apiVersion": _GROUP, "kind": "Fit", "metadata": {"name": "question"}}
    return {**kind, "spec": {"manifests": manifests}}


async def served(stage: Stage) -> None:
    """Wait until the API answers, and sees both nodes."""

    async def answers() -> bool:
        path = f"/apis/{_GROUP}/namespaces/{stage.namespace}/fits"
        try:
            found = await stage.api.create(path, a_fit([job(cpu="4")]))
        except RawApiError as error:
            raise AssertionError(str(error)) from error
        assert found["status"]["fits"], found
        return True

    await eventually(answers, timeout_s=_PATIENCE_S, because="the API and the planner are ready")


@pytest.fixture
async def interfaces(stage: Stage, tmp_path: Path) -> Interfaces:
    await stage.nodes(2)
    await served(stage)
    return Interfaces(stage, tmp_path)


@pytest.mark.parametrize("title", TABLE)
async def test_every_interface_gives_the_same_answer_to_the_same_manifests(
    interfaces: Interfaces, stage: Stage, title: str
) -> None:
    row = TABLE[title]
    kubeconfig = f"--kubeconfig={stage.suite.kubeconfig}"
    found, by_command, by_console, (status, out, err) = await asyncio.gather(
        interfaces.by_client(row.manifests),
        interfaces.by_command(row.manifests, kubeconfig),
        interfaces.by_console(row.manifests),
        interfaces.by_kubectl(row.manifests),
    )
    assert row.refused in "\n".join(found.refused)
    assert bool(found.refused) == bool(row.refused), found
    assert tuple(fits for _, fits, *_ in found.gangs) == row.fits, found
    assert len(found.warnings) == bool(row.warned)
    assert row.warned in "".join(found.warnings)
    assert by_command == by_console == found
    assert bool(status) == bool(found.refused), err
    if found.refused:
        assert all(error in err for error in found.refused), err
    else:
        assert answered(msgspec.convert(json.loads(out)["status"], FitStatus)) == found
    if len(row.manifests) == 1:
        await refused_likewise(interfaces, title)


async def refused_likewise(interfaces: Interfaces, title: str) -> None:
    """Webhook and explanation refuse an object that the other interfaces refuse, and no other."""
    row = TABLE[title]
    refuses = bool(row.refused) and row.admission_refuses

    async def as_expected() -> bool:
        assert await interfaces.by_webhook(row.manifests) == refuses
        return True

    await eventually(as_expected, timeout_s=SEEN_S, because="the webhook is registered")
    if title not in {"unknown queue", "in a namespace that does not exist"}:
        # It knows no cluster.
        assert await interfaces.by_explanation(row.manifests) == refuses
