"""Terms about other pods on a real API server, which merges label keys and fills in defaults.

Every case has the same form: nodes in zones, pods that run there already, a gang, and how many of
it each zone and each node must end with, or the words by which its group says that it cannot.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(90)]

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
WEB: Final = {"matchLabels": {"app": "web"}}


def term(key: str, selector: Object | None = None, **more: Any) -> Object:
    return {"topologyKey": key, "labelSelector": selector or WEB, **more}


def apart(*terms: Object) -> Object:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def together(*terms: Object) -> Object:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def spread(key: str, **more: Any) -> Object:
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term(key), **more}
    return {"topologySpreadConstraints": [constraint]}


@dataclass(frozen=True)
class Runs:
    """A pod of another scheduler, on a node."""

    node: str
    labels: dict[str, str]
    spec: Object


@dataclass(frozen=True)
class Case:
    """A gang of `count` pods with the label app=web and this spec."""

    spec: Object
    count: int
    #: By zone: how many nodes, named after it.
    zones: dict[str, int]
    runs: tuple[Runs, ...] = ()
    #: Members by zone; empty: they wait.
    placed: dict[str, int] | None = None
    per_node_max: int = 9
    words: str = ""
    #: CPUs of each node.
    cpus: int = 4


CASES: Final = {
    "members that want nodes of their own get them": Case(
        apart(term(HOST)), 3, {"a": 3}, placed={"a": 3}, per_node_max=1
    ),
    "a gang is not placed in part when one member would have no node of its own": Case(
        apart(term(HOST)), 3, {"a": 2}, words="anti-affinity"
    ),
    "members that want each other's zone are placed in one that holds all": Case(
        together(term(ZONE)), 6, {"a": 1, "b": 2}, placed={"b": 6}
    ),
    "members that want a zone with a certain pod go there": Case(
        together(term(ZONE, {"matchLabels": {"app": "db"}})),
        2,
        {"a": 1, "b": 1},
        runs=(Runs("b-0", {"app": "db"}, {}),),
        placed={"b": 2},
    ),
    "members that want the zone of a pod that runs nowhere wait": Case(
        together(term(ZONE, {"matchLabels": {"app": "nobody"}})), 2, {"a": 1}, words="affinity"
    ),
    "a running pod may refuse the gang its zone": Case(
        {},
        2,
        {"a": 1, "b": 1},
        runs=(Runs("a-0", {"app": "db"}, apart(term(ZONE))),),
        placed={"b": 2},
    ),
    "members are spread over the zones": Case(
        spread(ZONE), 4, {"a": 1, "b": 2}, placed={"a": 2, "b": 2}
    ),
    "a zone that is full ends the spread and so the gang": Case(
        spread(ZONE), 6, {"a": 1, "b": 2}, cpus=2, words="topology spread"
    ),
    "pods that run already count for the spread": Case(
        spread(ZONE),
        2,
        {"a": 1, "b": 1},
        runs=(Runs("a-0", {"app": "web"}, {}), Runs("a-0", {"app": "web"}, {})),
        placed={"b": 2},
        cpus=8,
    ),
}


async def _run(stage: Stage, number: int, one: Runs) -> None:
    manifest = pod_manifest(
        f"runs-{number}",
        requests={"cpu": "1m"},
        scheduler_name="nobody",
        labels=one.labels,
        spec={"nodeName": one.node, **one.spec},
    )
    await stage.bare_pods(manifest)


async def _placed(stage: Stage, gang: str, count: int) -> tuple[Counter[str], int]:
    nodes = (await stage.bound(gang, count)).values()
    return Counter(node.partition("-")[0] for node in nodes), max(Counter(nodes).values())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_gang_goes_where_its_terms_and_those_of_others_allow(
    stage: Stage, case: Case
) -> None:
    for zone, count in case.zones.items():
        labels = {ZONE: zone}
        await stage.nodes(count, prefix=f"{zone}-", labels=labels, cpu_milli=case.cpus * 1000)
    for number, one in enumerate(case.runs):
        await _run(stage, number, one)
    await stage.gang("web", case.count, labels={"app": "web"}, spec=case.spec)
    if case.placed is None:
        await stage.waits("web", "NotEnoughResources", case.words)
        await stage.stays_unbound("web")
        return
    zones, most = await _placed(stage, "web", case.count)
    assert zones == Counter(case.placed)
    assert most <= case.per_node_max


async def test_the_api_server_merges_label_keys_so_that_two_jobs_share_nodes(stage: Stage) -> None:
    await stage.nodes(2, prefix="a-")
    spec = apart(term(HOST, WEB, matchLabelKeys=["job"]))
    for job in ("one", "two"):
        await stage.gang(job, 2, labels={"app": "web", "job": job}, spec=spec)
    for job in ("one", "two"):
        assert len(set((await stage.bound(job, 2)).values())) == 2


async def test_a_preferred_term_is_followed_where_that_costs_nothing(stage: Stage) -> None:
    for zone in ("a", "b", "c"):
        await stage.nodes(1, prefix=f"{zone}-", labels={ZONE: zone})
    await _run(stage, 0, Runs("b-0", {"app": "db"}, {}))
    preference = {"weight": 100, "podAffinityTerm": term(ZONE, {"matchLabels": {"app": "db"}})}
    spec = {"affinity": {"podAffinity": {PREFERRED: [preference]}}}
    await stage.gang("web", 2, labels={"app": "web"}, spec=spec)
    assert (await _placed(stage, "web", 2))[0] == Counter({"b": 2})
