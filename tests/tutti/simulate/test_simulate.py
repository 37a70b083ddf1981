"""The command on small traces whose waits can be computed by hand, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import click.testing
import pytest

from tests.support.golden import Golden
from tutti.simulate.command import simulate
from tutti.simulate.figures import percentile
from tutti.simulate.machine import InvalidCluster, machine_of_file, machine_of_header

NODES = "nodes: [{count: 10, allocatable: {cpu: 4, nvidia.com/gpu: 8}}]"
# Ten nodes. The second job needs all, so it waits for the first one, until 100.
TABLE = (
    "user,node_num,gpu_num,interval,run_time,wall_time\n"
    "a,6,0,0,100,100\nb,10,0,40,50,60\na,2,0,10,20,30\na,11,0,50,5,9\n"
)


def ran(tmp_path: Path, *arguments: str, trace: str = TABLE, nodes: str = NODES) -> Any:
    (tmp_path / "jobs.csv").write_text(trace)
    (tmp_path / "nodes.yaml").write_text(nodes)
    given = [str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "nodes.yaml"), *arguments]
    return click.testing.CliRunner().invoke(simulate, given)


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["yes", "no"])
def test_figures(tmp_path: Path, pool: str) -> None:
    report = json.loads(ran(tmp_path, "--pool", pool, "-o", "json").stdout)
    assert report["leftOut"] == {"larger than the cluster": 1}
    assert (report["jobs"], report["capacity"], report["unit"]) == (3, 10, "node")
    (figures,) = report["configurations"]
    assert (figures["finished"], figures["evictedRuns"], figures["neverStarted"]) == (3, 0, 0)
    assert figures["waits"]["maxSeconds"] == 60
    assert figures["waits"]["meanSeconds"] == 20
    assert figures["waits"]["p50Seconds"] == 0
    # From 0 to 50, six of ten nodes.
    assert figures["utilisation"] == 0.6
    assert [each["jobs"] for each in figures["bySize"]] == [0, 0, 1, 2]
    assert figures["starvation"] == {
        "job": "3",
        "user": "b",
        "size": 10,
        "waitSeconds": 60.0,
        "started": True,
        "passedBy": 1,
    }


@pytest.mark.slow
def test_the_table(tmp_path: Path, golden: Golden) -> None:
    golden(ran(tmp_path).stdout)


@pytest.mark.slow
def test_configurations_differ_in_their_reservations_and_limits_end_jobs(tmp_path: Path) -> None:
    # `c` would delay `b`, which needs all nodes, waits for `a`, and runs beyond its limit.
    trace = (
        "user,node_num,interval,run_time,wall_time\n"
        "a,5,0,1000,1000\nb,10,10,500,100\nc,5,10,1980,1980\n"
    )
    confs = []
    for reservations in (0, 1):
        confs += ["--conf", str(tmp_path / f"{reservations}")]
        (tmp_path / f"{reservations}").write_text(
            "actions: enqueue, allocate, reserve\ntiers: [{plugins: [{name: gang}]}]\n"
            f"configurations: [{{name: reserve, arguments: {{reservations: {reservations}}}}}]\n"
        )
    report = json.loads(ran(tmp_path, *confs, "-o", "json", trace=trace).stdout)
    waits = [
        {each["name"]: each["maxSeconds"] for each in figures["byUser"]}
        for figures in report["configurations"]
    ]
    assert waits == [{"a": 0, "b": 1990, "c": 0}, {"a": 0, "b": 990, "c": 1080}]
    assert [each["endedAtLimit"] for each in report["configurations"]] == [1, 1]
    assert [each["finished"] for each in report["configurations"]] == [2, 2]


@pytest.mark.slow
def test_gpus_need_nodes_that_have_enough_free(tmp_path: Path) -> None:
    trace = "user,gpu_num,interval,run_time\na,6,0,100\na,6,0,100\na,6,1,50\n"
    nodes = "nodes: [{count: 2, allocatable: {cpu: 4, nvidia.com/gpu: 9}}]"
    split = json.loads(ran(tmp_path, "-o", "json", trace=trace, nodes=nodes).stdout)
    merged = json.loads(ran(tmp_path, "-o", "json", "--pool=yes", trace=trace, nodes=nodes).stdout)
    waits = [each["configurations"][0]["waits"]["maxSeconds"] for each in (split, merged)]
    assert waits == [99, 0]


@pytest.mark.parametrize(
    ("arguments", "trace", "nodes", "rule"),
    [
        (["--strict"], TABLE, NODES, "job 5: must have at most the 10 nodes of the cluster"),
        ([], "user\na\n", NODES, "line 1: must have a column run_time"),
        ([], TABLE, "nodes: []", "nodes: must be a list"),
        (["--size-by", "gpu"], TABLE, NODES, "must have a job that can be simulated"),
        (
            ["--load", "0.5"],
            TABLE.replace(",40,", ",0,").replace(",10,2", ",0,2").replace("11,0,50", "11,0,0"),
            NODES,
            "two instants",
        ),
        (["--conf", "CONF"], TABLE, NODES, "unknown key"),
        (["--live"], TABLE, NODES, "exclude each other"),
    ],
)
def test_refusals(tmp_path: Path, arguments: list[str], trace: str, nodes: str, rule: str) -> None:
    (tmp_path / "conf").write_text("action: allocate")
    given = [str(tmp_path / "conf") if each == "CONF" else each for each in arguments]
    result = ran(tmp_path, *given, trace=trace, nodes=nodes)
    assert result.exit_code == 2
    assert rule in result.stderr


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must have the list `nodes`"),
        (": :", "must be YAML"),
        ("3", "must be an object with a kind"),
        ("nodes: [{count: 0, allocatable: {cpu: 1}}]", "nodes[0].count"),
        ("nodes: [{count: 1e9, allocatable: {cpu: 1}}]", "nodes[0].count"),
        ("nodes: [{size: 1}]", "must have only the keys"),
        ("nodes: [{allocatable: {cpu: x}}]", "nodes[0].allocatable.cpu"),
        ("nodes: [{allocatable: []}, {}]", "must have a resource"),
        ("nodes: [{allocatable: 3}]", "must be a mapping"),
        ("{apiVersion: v1, kind: Node}", "Node: must have a name"),
        ("{apiVersion: v1, kind: Node, metadata: {name: n}, status: 3}", "Node n:"),
    ],
)
def test_invalid_clusters(text: str, rule: str) -> None:
    with pytest.raises(InvalidCluster) as refused:
        machine_of_file(text.encode())
    assert rule in str(refused.value)


def test_manifests() -> None:
    machine = machine_of_file(
        b"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: n},"
        b" status: {allocatable: {cpu: 4}}}, {apiVersion: scheduling.volcano.sh/v1beta1,"
        b" kind: Queue, metadata: {name: q}, spec: {weight: 3}}, {apiVersion: v1, kind: Pod}]}"
    )
    assert [(node.name, node.allocatable) for node in machine.nodes] == [("n", (("cpu", 4000),))]
    assert [(queue.name, queue.weight) for queue in machine.queues] == [("q", 3)]


def test_the_machine_of_a_header() -> None:
    assert len(machine_of_header(128, 16).nodes) == 16
    assert len(machine_of_header(128, 0).nodes) == 128
    assert dict(machine_of_header(128, 16).nodes[0].allocatable)["cpu"] == 8000


def test_percentiles_are_values_that_occur() -> None:
    assert [percentile([1.0, 2.0, 3.0, 4.0], each) for each in (0, 25, 50, 95)] == [1, 1, 2, 4]
    assert percentile([], 50) == 0
