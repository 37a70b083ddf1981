"""The simulated API server keeps the promises of a real one, whatever its faults."""

from typing import Any

import pytest

from shared.kube.errors import Conflict, Gone, KubeError, NotFound
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch
from shared.kube.objects import Pod
from shared.kube.resources import PODS
from tests.simulation.kube_api import ApiServer, KubeRates, Refusal, delete
from tests.simulation.kube_client import SimKubeClient
from tests.simulation.kube_server import Etcd, Obj, with_
from tests.simulation.loop import Dice, Generation, SimLoop


class Scene:
    """A server, a client of it, and a loop to run them."""

    def __init__(self, seed: int = 1) -> None:
        self.loop = SimLoop(Dice(seed))
        self.etcd = Etcd(self.loop, [PODS])
        self.faults: list[str] = []
        self.server = ApiServer(self.etcd, on_fault=self.faults.append)
        self.generation = Generation(self.loop, "binder-0")
        self.client = SimKubeClient(self.server, self.generation)

    def pod(self, name: str) -> Obj:
        manifest: Obj = {"metadata": {"name": name, "namespace": "work"}, "spec": {}, "status": {}}
        made = self.etcd.create(PODS, manifest, by="user")
        assert made is not None
        return made

    def run(self, work: Any, *, limit_s: float = 60.0) -> Any:
        task = self.loop.spawn(self.generation, work)
        assert self.loop.run_until(task.done, limit_s=limit_s), "it never ended"
        return task.result()


def test_a_pod_is_bound_once_and_only_under_its_uid() -> None:
    scene = Scene()
    uid = scene.pod("a")["metadata"]["uid"]

    async def bind(uid: str, node: str, *, dry_run: bool = False) -> int:
        reply = await scene.client.bind("work", "a", uid, node, {"k": "v"}, dry_run=dry_run)
        return reply.status

    assert scene.run(bind("another", "n1")) == 409
    assert scene.run(bind(uid, "n1", dry_run=True)) == 201
    assert scene.etcd.get(PODS, "work", "a") == scene.etcd.all(PODS)[0]
    assert "nodeName" not in scene.etcd.all(PODS)[0]["spec"]
    assert scene.run(bind(uid, "n1")) == 201
    assert scene.run(bind(uid, "n2")) == 409
    assert scene.etcd.all(PODS)[0]["spec"]["nodeName"] == "n1"
    assert scene.etcd.all(PODS)[0]["metadata"]["annotations"] == {"k": "v"}


def test_a_policy_refuses_dry_runs_too() -> None:
    scene = Scene()
    uid = scene.pod("a")["metadata"]["uid"]
    scene.server.policies.append(lambda _, node: Refusal(403, "Forbidden", f"not {node}"))
    for dry_run in (True, False):
        reply = scene.run(scene.client.bind("work", "a", uid, "n1", {}, dry_run=dry_run))
        assert reply.status == 403
    assert "nodeName" not in scene.etcd.all(PODS)[0]["spec"]


def test_a_pod_on_a_node_is_only_marked_when_it_is_deleted() -> None:
    scene = Scene()
    pod = scene.pod("a")
    scene.etcd.change(PODS, pod, lambda now: with_(now, spec={"nodeName": "n1"}), by="other")
    with pytest.raises(Conflict):
        scene.run(scene.client.delete(PODS, "a", namespace="work", uid="another"))
    scene.run(scene.client.delete(PODS, "a", namespace="work", uid=pod["metadata"]["uid"]))
    assert scene.etcd.all(PODS)[0]["metadata"]["deletionTimestamp"]
    with pytest.raises(NotFound):
        scene.run(scene.client.delete(PODS, "b", namespace="work"))


def test_what_was_carried_out_and_never_answered_is_carried_out() -> None:
    scene = Scene()
    uid = scene.pod("a")["metadata"]["uid"]
    scene.server.rates = KubeRates(lost_reply=1.0)
    with pytest.raises(KubeError):
        scene.run(scene.client.bind("work", "a", uid, "n1", {}, timeout_s=2.0))
    assert scene.etcd.all(PODS)[0]["spec"]["nodeName"] == "n1"
    assert scene.faults == ["api.lost_reply"]


def test_a_version_that_is_compacted_is_gone() -> None:
    scene = Scene()
    scene.pod("a")
    old = scene.etcd.version - 1
    scene.etcd.compact()

    async def watch() -> None:
        params = {"watch": "true", "resourceVersion": str(old)}
        async with scene.client.stream("/api/v1/pods", params, silence_s=1.0):
            pass

    with pytest.raises(Gone):
        scene.run(watch())


class ClusterState:
    """What a list-watch has read: the version of each pod by name."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    async def take(self, batch: Listed[Pod] | Changes[Pod] | Absent) -> None:
        if isinstance(batch, Listed):
            self.seen.clear()
            for one in batch.objects:
                self.seen[one.metadata.name] = one.metadata.resource_version
        elif isinstance(batch, Changes):
            for change in batch.changes:
                metadata = change.object.metadata
                self.seen[metadata.name] = metadata.resource_version
                if change.type == "DELETED":
                    del self.seen[metadata.name]


def churn(scene: Scene) -> None:
    """One change of the truth, now and then a compaction or a restart of the server."""
    rng, etcd = scene.loop.dice.rng("test"), scene.etcd
    pods = etcd.all(PODS)
    roll = rng.random()
    if pods and roll < 0.3:
        delete(etcd, PODS, rng.choice(pods), by="user")
    elif pods and roll < 0.6:
        etcd.change(PODS, rng.choice(pods), lambda now: with_(now, spec={"x": roll}), by="user")
    else:
        scene.pod(f"pod-{roll}")
    if rng.random() < 0.02:
        etcd.compact()
    if rng.random() < 0.02:
        scene.server.cut_watches()


@pytest.mark.parametrize("seed", range(6))
def test_a_list_watch_ends_with_the_truth_whatever_goes_wrong(seed: int) -> None:
    scene = Scene(seed)
    loop, etcd, state = scene.loop, scene.etcd, ClusterState()
    scene.server.rates = KubeRates(
        lost_request=0.04, lost_reply=0.04, throttled=0.04, broken=0.04, slow=0.04,
        watch_late=0.2, watch_cut=0.05,
    )  # fmt: skip
    watch = ListWatch(scene.client, PODS, Pod, page_limit=30, random=loop.dice.rng("jitter"))
    watching = loop.spawn(scene.generation, watch.run(state.take))
    backup = etcd.backup()
    for step in range(1200):
        loop.at(step * 0.1, churn, scene)
    loop.at(60.0, etcd.restore, backup)
    loop.run_for(121.0)
    scene.server.rates = KubeRates()
    loop.run_for(120.0)
    assert state.seen == {
        pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in etcd.all(PODS)
    }
    assert len(set(scene.faults)) >= 4
    assert not watching.done()
    loop.discard()


def test_a_killed_client_never_sees_its_answer() -> None:
    scene = Scene()
    uid = scene.pod("a")["metadata"]["uid"]
    came: list[int] = []

    async def bind() -> None:
        reply = await scene.client.bind("work", "a", uid, "n1", {})
        came.append(reply.status)

    scene.generation.kill_at_effect = 1
    task = scene.loop.spawn(scene.generation, bind())
    scene.loop.run_for(5.0)
    assert not task.done()
    assert scene.etcd.all(PODS)[0]["spec"]["nodeName"] == "n1"
    assert not came
    assert not scene.generation.alive
    scene.loop.discard()
