"""Kubeflow's Spark operator on a real cluster: the group of the whole application gates its driver.

`spark-submit` is played: it makes the driver's pod as the operator's arguments say. So is the
driver, which makes the executors' pods once it runs.
"""

import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods
from tests.controlplane.operators.building import BuiltOperator, Recipe, ensure_operator
from tests.controlplane.processes import Component, ReservedPort
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.operators.remains import nothing_remains
from tests.integration.stage import Stage
from tests.support.waiting import eventually

#: The operator is built once, within the first test's time.
pytestmark = [pytest.mark.certify, pytest.mark.timeout(1500)]

VERSION: Final = "sparkoperator.k8s.io/v1beta2"
RECIPE: Final = Recipe(
    name="spark-operator",
    module="github.com/kubeflow/spark-operator/v2",
    version="v2.4.0",
    main="cmd/operator",
    crds="config/crd/bases",
    crd_files=(
        "sparkoperator.k8s.io_sparkapplications.yaml",
        "sparkoperator.k8s.io_scheduledsparkapplications.yaml",
        "sparkoperator.k8s.io_sparkconnects.yaml",
    ),
)
KIND: Final = ManagedKind(
    word="sparkapplication",
    plural="sparkapplications",
    version=VERSION,
    name_label="sparkoperator.k8s.io/app-name",
)
#: Executors of an application; with its driver it needs one CPU more.
EXECUTORS: Final = 3
MEMBERS: Final = EXECUTORS + 1
#: What spark-submit does in cluster mode, as far as scheduling sees it. The driver's pod carries
#: the configuration, which the driver reads.
SPARK_SUBMIT: Final = """\
#!{python}
import json, subprocess, sys
import yaml
conf = dict(text.split("=", 1) for flag, text in zip(sys.argv, sys.argv[1:]) if flag == "--conf")
KUBE = "spark.kubernetes."
def part(prefix):
    return {{key[len(prefix):]: conf[key] for key in conf if key.startswith(prefix)}}
with open(conf[KUBE + "driver.podTemplateFile"]) as file:
    template = yaml.safe_load(file)
pod = {{
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {{
        "name": conf[KUBE + "driver.pod.name"],
        "labels": {{**part(KUBE + "driver.label."), "spark-role": "driver"}},
        "annotations": part(KUBE + "driver.annotation."),
        "ownerReferences": template["metadata"]["ownerReferences"],
    }},
    "spec": {{
        "restartPolicy": "Never",
        "schedulerName": conf[KUBE + "scheduler.name"],
        "terminationGracePeriodSeconds": 0,
        "containers": [{{
            "name": "spark-kubernetes-driver",
            "image": conf[KUBE + "container.image"],
            "args": ["driver", json.dumps(conf)],
            "resources": {{"requests": {{"cpu": conf["spark.driver.cores"]}}}},
        }}],
    }},
}}
command = ["{kubectl}", "--kubeconfig={kubeconfig}", "create", "-f", "-"]
command += ["--namespace=" + conf[KUBE + "namespace"]]
done = subprocess.run(command, input=json.dumps(pod), text=True)
sys.exit(done.returncode)
"""


@pytest.fixture(scope="module")
def built(control_plane: ControlPlane) -> BuiltOperator:
    """The operator; its kinds are served before Tutti starts."""
    operator = ensure_operator(RECIPE)
    control_plane.install_crds(operator.crds)
    return operator


@pytest.fixture
async def operator(
    built: BuiltOperator, control_plane: ControlPlane, api: RawClient, stage: Stage, tmp_path: Path
) -> AsyncIterator[None]:
    """The operator and all drivers at work; its applications are gone before it is."""
    async with _running(built, control_plane, tmp_path):
        drivers = asyncio.create_task(_play_drivers(stage), name="drivers")
        yield
        drivers.cancel()
        await api.delete(stage.path("sparkapplications", version=VERSION))
        await eventually(lambda: _gone(stage), timeout_s=60, because="all pods are gone")


async def test_of_two_applications_that_need_all_nodes_one_runs_whole_and_then_the_other(
    stage: Stage, operator: None
) -> None:
    """Both groups state minMember 1 and the resources of driver and executors."""
    await stage.nodes(MEMBERS, cpu_milli=1000)
    for name in ("first", "second"):
        await stage.api.create(stage.path("sparkapplications", version=VERSION), _application(name))
    whole = await eventually(lambda: _whole(stage), timeout_s=60, because="one runs whole")
    (other,) = {"first", "second"} - {whole}
    group = await stage.seen_group(f"spark-{other}-pg")
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["minResources"]["cpu"] == str(MEMBERS)
    await stage.stays_unbound(f"spark-{other}-pg")
    assert len(await stage.pods(f"spark-{other}-pg")) == 1, "its driver exists and waits"
    await stage.why(f"spark-{other}-pg", "cpu")
    await stage.api.delete(
        stage.path("sparkapplications", whole, VERSION), {"propagationPolicy": "Foreground"}
    )
    await stage.bound(f"spark-{other}-pg", MEMBERS, timeout_s=60)


async def test_an_application_is_one_gang_by_its_annotation_without_a_batch_scheduler(
    stage: Stage, operator: None
) -> None:
    """Its driver and executors are in the group that Tutti makes of the application."""
    await stage.nodes(MEMBERS, cpu_milli=1000)
    sets = ManagedSets(stage, KIND)
    for name in ("first", "second"):
        await sets.create(_whole_application(name))

    async def one_is_placed() -> str:
        counts = {name: await sets.placed(name) for name in ("first", "second")}
        assert 0 in counts.values(), counts
        return next((name for name, count in counts.items() if count == MEMBERS), "")

    whole = await eventually(one_is_placed, timeout_s=60, because="one runs whole")
    (other,) = {"first", "second"} - {whole}
    await stage.why(f"sparkapplication/{other}", f"sparkapplication/{other} waits: ")
    found = await sets.read(other)
    assert found is not None
    group = await stage.seen_group(f"podgroup-{found['metadata']['uid']}")
    assert group["spec"]["minMember"] == 1
    assert group["spec"]["minResources"]["cpu"] == str(MEMBERS)
    await _lose_an_executor(stage, sets, whole)
    assert not await sets.placed(other)
    await sets.delete(whole, "Foreground")
    await sets.wait_bound(other, MEMBERS)
    await sets.delete(other, "Foreground")
    await nothing_remains(stage, ("sparkapplications", VERSION))


async def _lose_an_executor(stage: Stage, sets: ManagedSets, name: str) -> None:
    """Delete an executor, and wait until its driver has another one in its place."""
    before = await sets.places(name)
    lost = next(
        pod for pod in await sets.pods(name) if pod["metadata"]["labels"].get("spark-exec-id")
    )
    await stage.delete(stage.path(name=lost["metadata"]["name"]))

    async def is_back() -> bool:
        places = await sets.places(name)
        return lost["metadata"]["uid"] not in places and sorted(places.values()) == sorted(
            before.values()
        )

    await eventually(is_back, timeout_s=60, because="the application is whole again")


@asynccontextmanager
async def _running(
    built: BuiltOperator, control_plane: ControlPlane, folder: Path
) -> AsyncIterator[None]:
    submit = folder / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(
        SPARK_SUBMIT.format(
            python=sys.executable,
            kubectl=control_plane.binaries.kubectl,
            kubeconfig=control_plane.admin_kubeconfig,
        )
    )
    submit.chmod(0o755)
    health, address = ReservedPort(), urlsplit(control_plane.server)
    log = folder / "operator.log"
    component = Component(
        RECIPE.name,
        [
            shutil.which("env") or "env",
            f"SPARK_HOME={folder}",
            f"KUBERNETES_SERVICE_HOST={address.hostname}",
            f"KUBERNETES_SERVICE_PORT={address.port}",
            *(str(built.program), "controller", "start"),
            f"--kubeconfig={control_plane.admin_kubeconfig}",
            "--enable-batch-scheduler",
            "--enable-ui-service=false",
            f"--health-probe-bind-address=127.0.0.1:{health.number}",
        ],
        log,
    )
    health.release()
    try:
        await asyncio.to_thread(component.start)
        await eventually(
            lambda: "Starting workers" in log.read_text(),
            timeout_s=60,
            because="the operator's controllers work",
        )
        yield
    finally:
        await asyncio.to_thread(component.stop)


def _application(name: str) -> Object:
    role = {"cores": 1, "memory": "512m"}
    return {
        "apiVersion": VERSION,
        "kind": "SparkApplication",
        "metadata": {"name": name},
        "spec": {
            "type": "Scala",
            "mode": "cluster",
            "sparkVersion": "3.5.0",
            "image": "example/spark",
            "mainClass": "Pi",
            "mainApplicationFile": "local:///pi.jar",
            "batchScheduler": "volcano",
            "sparkConf": {"spark.kubernetes.scheduler.name": "volcano"},
            "driver": role,
            "executor": {**role, "instances": EXECUTORS},
        },
    }


async def _play_drivers(stage: Stage) -> None:
    """While a driver runs, it makes the executors that it lacks; when it is deleted, garbage
    collection takes them.
    """
    #: UID of a driver -> the number of executors that it has made.
    made: Counter[str] = Counter()
    while True:
        pods = await stage.pods()
        for pod in pods:
            uid = pod["metadata"]["uid"]
            driver = pod["metadata"].get("labels", {}).get("spark-role") == "driver"
            if not driver or pod["status"].get("phase") != "Running":
                continue
            owned = [one for one in pods if _owner_uid(one) == uid]
            missing = range(made[uid] + 1, made[uid] + 1 + EXECUTORS - len(owned))
            made[uid] += len(missing)
            await create_pods(stage.api, stage.namespace, _executors(pod, missing))
        await asyncio.sleep(0.1)


def _owner_uid(pod: Object) -> str:
    return next((str(one["uid"]) for one in pod["metadata"].get("ownerReferences", ())), "")


def _executors(driver: Object, indices: Iterable[int]) -> list[Object]:
    conf: dict[str, str] = json.loads(driver["spec"]["containers"][0]["args"][1])

    def part(prefix: str) -> dict[str, str]:
        prefix = f"spark.kubernetes.executor.{prefix}."
        return {key.removeprefix(prefix): conf[key] for key in conf if key.startswith(prefix)}

    container = {
        "name": "spark-kubernetes-executor",
        "image": conf["spark.kubernetes.container.image"],
        "resources": {"requests": {"cpu": conf["spark.executor.cores"]}},
    }
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": driver["metadata"]["name"],
        "uid": driver["metadata"]["uid"],
        "controller": True,
    }
    return [
        {
            "metadata": {
                "name": f"{driver['metadata']['name']}-exec-{index}",
                "labels": {**part("label"), "spark-role": "executor", "spark-exec-id": str(index)},
                "annotations": part("annotation"),
                "ownerReferences": [owner],
            },
            "spec": {
                "restartPolicy": "Never",
                "schedulerName": conf["spark.kubernetes.scheduler.name"],
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
            },
        }
        for index in indices
    ]


def _whole_application(name: str) -> Object:
    """The same without groups of the operator: all its pods are one gang by its annotation."""
    found = _application(name)
    found["metadata"]["annotations"] = {"tutti.dev/gang": "all"}
    del found["spec"]["batchScheduler"]
    return found


async def _whole(stage: Stage) -> str:
    counts = {name: len(await stage.placed(f"spark-{name}-pg")) for name in ("first", "second")}
    assert 0 in counts.values(), counts
    return next((name for name, count in counts.items() if count == MEMBERS), "")


async def _gone(stage: Stage) -> bool:
    return not await stage.pods()
