"""A new dialect is one file: added to a copy of the product, its pods become a gang there."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import shared
from tests.documents.blocks import blocks

ROOT: Final = Path(shared.__path__[0]).parent

PAGE: Final = "docs/contributing/dialect.md"
#: A dialect by annotations: membership, size, role, rank, queue, precedence and scheduler name.
BY_ANNOTATIONS: Final = next(
    block.text
    for block in blocks(PAGE, (ROOT / PAGE).read_text())
    if block.detail == "shared/dialects/example.py"
)

#: A dialect with an API of its own, and a name for the gang that no key holds.
BY_OBJECTS: Final = '''
"""Teams of Example: one object for each gang."""

from shared.dialects.protocol import (
    Dialect, FieldError, GroupReference, Kind, Membership, Status
)
from shared.kube.objects import KubeStruct, ObjectMeta
from shared.kube.resources import Resource
from shared.model.objects import PodGroup

TEAMS = Resource("example.com", "v1", "teams", "Team")

class TeamSpec(KubeStruct, frozen=True, kw_only=True):
    size: int = 1

class Team(KubeStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: TeamSpec = TeamSpec()

def read(found):
    metadata = found.metadata
    return PodGroup(
        uid=metadata.uid, dialect="team", namespace=metadata.namespace, name=metadata.name,
        resource_version=metadata.version, min_member=found.spec.size,
    )

def membership(metadata):
    name, _, _ = metadata.labels["example.com/team"].partition(".")
    return Membership(group_name=name)

DIALECT = Dialect(
    name="team",
    checks={"Team": lambda team: (
        [FieldError(path="spec.size", message="is 0")] if team["spec"]["size"] == 0 else []
    )},
    kinds=(
        Kind(
            resource=TEAMS, neutral="podgroup", decoded=Team, read=read,
            status=Status(body=lambda verdict: {"phase": verdict.phase}),
        ),
    ),
    membership=membership,
    references=(GroupReference(place="label", key="example.com/team", declared_by="Example"),),
)
'''

#: What follows a pod from the API server's JSON through the watcher's state into a decision.
STAGE: Final = '''
import msgspec
from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.watcher.config import WatcherSettings
from services.watcher.state import WatcherState
from shared.contracts.cluster import (
    NodeChanges, PodChanges, PodGroupChanges, SnapshotPage, Synced
)
from shared.contracts.decisions import GangDecision
from shared.dialects.discovery import by_precedence, dialect, readers
from shared.dialects.rights import rights
from shared.kube.decoding import KindDecoder
from shared.kube.resources import NODES, PODS

(names,) = (
    one.default for one in msgspec.structs.fields(WatcherSettings) if one.name == "scheduler_name"
)
state = WatcherState(names, podgroup_controller=False)

def listed(resource, *manifests):
    kinds = readers()[resource]
    decoder = KindDecoder(kinds[0].decoded)
    decoded = [decoder.object(msgspec.json.encode(one)) for one in manifests]
    state.listed(kinds, state.read(kinds, decoded), 1)

def pod(name, **meta):
    scheduler = meta.pop("scheduler", "tutti")
    return {
        "metadata": {"name": name, "namespace": "t", "uid": name, "resourceVersion": "1", **meta},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}]},
        "status": {"phase": "Pending"},
    }

def observed(neutral):
    state.cluster_state.take(epoch=1, at_ms=1000)
    objects = state.cluster_state.freeze().objects
    return {one.name: one for one in objects[neutral]}

def decided():
    """The gangs that the planner places, with the number of their pods."""
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    listed(NODES, {
        "metadata": {"name": "n", "uid": "n", "resourceVersion": "1"},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    })
    planner = Planner(parse_configuration(""))
    records = (
        NodeChanges(epoch=1, at_ms=1000, changed=tuple(observed("node").values())),
        PodChanges(epoch=1, at_ms=1000, changed=tuple(observed("pod").values())),
        PodGroupChanges(epoch=1, at_ms=1000, changed=tuple(observed("podgroup").values())),
    )
    synced = Synced(epoch=1, at_ms=1000, watcher="w")
    planner.load_snapshot([SnapshotPage(
        snapshot="s", page=0, pages=1, cluster_seq=1, epoch=1, synced=synced, records=records
    )])
    planner.lead(1)
    step = planner.step(2000)
    return {
        one.gang: len(one.bindings) for one in step.decisions if isinstance(one, GangDecision)
    }
'''


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the product's packages."""
    copy = tmp_path_factory.mktemp("product")
    for package in ("services", "shared", "tutti"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("*.pyc"))
    return copy


def run(product: Path, name: str, text: str, script: str) -> None:
    """Add one file to the dialects of the copy, and run the script there."""
    added = product / "shared" / "dialects" / f"{name}.py"
    added.write_text(text.lstrip())
    try:
        # -P keeps the folder of this test out of the path, the environment names the copy.
        done = subprocess.run(
            [sys.executable, "-P", "-c", STAGE + script],
            cwd=product,
            env={"PYTHONPATH": str(product)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        added.unlink()
    assert done.returncode == 0, done.stderr


def test_pods_of_a_dialect_by_annotations_become_a_gang(product: Path) -> None:
    script = """
assert names == ("tutti", "example-scheduler", "kube-batch", "volcano"), names
pods = [
    pod(
        f"p{index}",
        scheduler="example-scheduler",
        annotations={
            "example.com/gang": "train", "example.com/size": "2", "example.com/queue": "default",
        },
        labels={
            "example.com/role": "worker", "example.com/rank": str(index), "spark-role": "driver",
        },
    )
    for index in range(2)
]
# Without its second pod, a gang of two is not placed.
alone = pod("alone", annotations={
    "godel.bytedance.com/pod-group-name": "half", "example.com/size": "2"
})
twice = pod("twice", annotations={
    "example.com/gang": "train", "scheduling.k8s.io/group-name": "other"
})
listed(PODS, *pods, alone, twice)
read = observed("pod")["p1"]
assert (read.ours, read.group_name, read.group_min_member) == (True, "train", 2)
assert (read.role, read.index, read.queue) == ("worker", 1, "default")
assert b"name two gangs" in observed("pod")["twice"].shape
assert decided() == {"t/train": 2}, decided()
refused = {"metadata": {"annotations": {"example.com/size": "0"}}}
assert [error.path for each in by_precedence() for error in each.validate("Pod", refused)]
"""
    run(product, "example", BY_ANNOTATIONS, script)


def test_a_dialect_with_an_api_of_its_own_brings_its_kinds(product: Path) -> None:
    script = """
from shared.admission.kinds import BY_RESOURCE
from shared.admission.rules import Case, ReferenceObjects
from shared.dialects.team import TEAMS
members = [pod(f"p{index}", labels={"example.com/team": f"train.{index}"}) for index in range(3)]
listed(PODS, *members)
assert b"declares a gang of Example" in observed("pod")["p0"].shape, "the kind is not served yet"
listed(TEAMS, {
    "metadata": {"name": "train", "namespace": "t", "uid": "g", "resourceVersion": "1"},
    "spec": {"size": 3},
})
listed(PODS, *members)
assert state.served_dialects() == ("native", "team"), state.served_dialects()
assert observed("podgroup")["train"].min_member == 3
assert decided() == {"t/train": 3}, decided()
known = ReferenceObjects(scheduler_names=names)
case = Case(
    operation="CREATE", namespace="t", name="x", candidate={"spec": {"size": 0}}, old={},
    known=known,
)
(error,) = BY_RESOURCE["example.com", "teams"].violations(case)
assert error.text == "spec.size: is 0"
verbs = {(one.service, one.resource): one.verbs for one in rights() if one.group == TEAMS.group}
assert verbs == {
    ("admission-webhook", "teams"): ("get", "list"),
    ("controller", "teams"): ("get", "patch"),
    ("controller", "teams/status"): ("patch",),
    ("watcher", "teams"): ("list", "watch"),
}, verbs
"""
    run(product, "team", BY_OBJECTS, script)
