"""`tutti migrate check` on a cluster with everything in it that a switch must know."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api_suite.client import Client
from tests.tutti.conftest import Typed

pytestmark = pytest.mark.integration

VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"
CRDS = Path(__file__).parents[2] / "dialects" / "crds"
CONF = 'actions: "allocate, backfill, shuffle"\ntiers:\n- plugins:\n  - name: tdm\n'


def pod(name: str, group: str = "", *, node: str = "", **requests: str) -> dict[str, Any]:
    resources = {"requests": requests, "limits": {k: v for k, v in requests.items() if "/" in k}}
    notes = {"scheduling.k8s.io/group-name": group} if group else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": notes},
        "spec": {
            "schedulerName": "volcano",
            "containers": [
                {"name": "main", "image": "registry.example/none", "resources": resources}
            ],
            **({"nodeName": node} if node else {}),
        },
    }


def group(name: str, least: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least},
    }


async def checked(typed: Typed, *words: str, status: int) -> list[tuple[str, str, str, str]]:
    found = await typed("migrate", "check", "-o", "json", *words)
    assert found.exit_code == status, found.output
    return [
        (one["level"], one["topic"], one["what"], one["message"])
        for one in json.loads(found.stdout)["findings"]
    ]


async def test_an_empty_cluster_has_nothing_that_blocks_and_says_so(typed: Typed) -> None:
    found = await typed("migrate", "check")
    assert found.exit_code == 0, found.output
    assert "checked 0 pods, 0 groups, 0 Jobs and" in found.output
    assert found.output.rstrip().endswith(": nothing blocks a switch")


async def test_devices_that_are_shared_block_before_all_else(
    typed: Typed, cluster_api: Client
) -> None:
    pods = "/api/v1/namespaces/default/pods"
    await cluster_api.create(pods, pod("slice", "shared", **{"volcano.sh/vgpu-number": "1"}))
    await cluster_api.create(pods, pod("plain", "whole", cpu="1"))
    findings = await checked(typed, status=1)
    assert findings[0][:3] == ("blocks", "devices", "gang default/shared")
    assert "volcano.sh/vgpu-number" in findings[0][3]
    assert [one for one in findings if one[0] == "blocks"] == findings[:1]
    text = await typed("migrate", "check")
    assert text.output.startswith("does not work with Tutti as it is (1)\n  devices  gang")
    assert text.output.rstrip().endswith("1 finding blocks a switch")


async def test_a_gang_bound_in_part_is_reported_with_the_effect_of_a_switch(
    typed: Typed, cluster_api: Client
) -> None:
    groups = f"{VOLCANO}/namespaces/default/podgroups"
    pods = "/api/v1/namespaces/default/pods"
    for name in ("half", "whole"):
        await cluster_api.create(groups, group(name, 2))
    for one in (pod("h0", "half", node="n"), pod("h1", "half")):
        await cluster_api.create(pods, one)
    for one in (pod("w0", "whole", node="n"), pod("w1", "whole", node="n")):
        await cluster_api.create(pods, one)
    partial = [one for one in await checked(typed, status=0) if one[1] == "gang"]
    assert [one[:3] for one in partial] == [("changes", "gang", "gang default/half")]
    assert "1 of the 2 members that it needs" in partial[0][3]


async def test_another_scheduler_is_reported_with_its_configuration_and_settings_without_effect(
    typed: Typed, cluster_api: Client
) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    await cluster_api.create(
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "volcano"},
            "spec": {"holderIdentity": "vc-scheduler-0", "renewTime": now},
        },
    )
    await cluster_api.create(
        "/api/v1/namespaces/default/configmaps",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "theirs"},
            "data": {"volcano-scheduler.conf": CONF},
        },
    )
    container = {"name": "c", "image": "registry.example/vc-scheduler:v1"}
    volume = {"name": "v", "configMap": {"name": "theirs"}}
    labels = {"app": "volcano-scheduler"}
    await cluster_api.create(
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "volcano-scheduler"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [container], "volumes": [volume]},
                },
            },
        },
    )
    findings = await checked(typed, status=0)
    (other,) = [one for one in findings if one[1] == "rival"]
    assert other[0] == "step"
    assert "Lease default/volcano (held by vc-scheduler-0" in other[3]
    where = "ConfigMap default/theirs, volcano-scheduler.conf"
    reported = [one for one in findings if one[2] == where]
    assert [one[0] for one in reported] == ["step", "changes", "changes"]
    assert any("action shuffle" in one[3] for one in reported)
    assert any("tdm" in one[3] for one in reported)


async def test_a_configuration_that_tutti_refuses_blocks(typed: Typed, tmp_path: Any) -> None:
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text("actions: allocate, dance\n")
    findings = await checked(typed, f"--scheduler-conf={conf}", status=1)
    assert findings[0][:3] == ("blocks", "configuration", str(conf))
    assert "dance" in findings[0][3]


async def test_stored_objects_that_would_be_refused_are_reported_with_the_webhooks_errors(
    typed: Typed, cluster_api: Client
) -> None:
    await cluster_api.create(
        f"{VOLCANO}/queues",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "odd"},
            "spec": {"weight": 1, "parent": "nowhere"},
        },
    )
    stored = [one for one in await checked(typed, status=0) if one[1] == "stored object"]
    assert [one[:3] for one in stored] == [("changes", "stored object", "Queue odd")]
    assert "nowhere" in stored[0][3]


async def test_groups_of_kai_and_grove_are_listed_with_their_status_and_what_differs(
    typed: Typed, cluster_api: Client
) -> None:
    for name in ("scheduling.run.ai_podgroups", "scheduler.grove.io_podgangs"):
        manifest = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
        await cluster_api.create(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest
        )
    kai = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups"
    group_of_kai = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
    spec = {"minMember": 2, "queue": "research"}
    await cluster_api.create(kai, {**group_of_kai, "metadata": {"name": "half"}, "spec": spec})
    wrong = {"subGroups": [{"name": "a", "parent": "none", "minMember": 1}]}
    await cluster_api.create(kai, {**group_of_kai, "metadata": {"name": "wrong"}, "spec": wrong})
    await cluster_api.create(
        "/apis/scheduler.grove.io/v1alpha1/namespaces/default/podgangs",
        {
            "apiVersion": "scheduler.grove.io/v1alpha1",
            "kind": "PodGang",
            "metadata": {"name": "serve"},
            "spec": {"podgroups": [{"name": "a", "minReplicas": 1, "podReferences": []}]},
        },
    )
    one = pod("h0", node="n")
    one["metadata"]["annotations"] = {"pod-group-name": "half"}
    fraction = pod("h1")
    fraction["metadata"]["annotations"] = {"pod-group-name": "half", "gpu-memory": "2000"}
    for each in (one, fraction):
        each["spec"]["schedulerName"] = "kai-scheduler"
        await cluster_api.create("/api/v1/namespaces/default/pods", each)
    findings = await checked(typed, "--scheduler-name=kai-scheduler", status=1)
    found = {found[:3]: found[3] for found in findings}
    assert found["blocks", "gang", "gang default/wrong"].endswith("there is no sub-group none")
    assert "gpu-memory (annotation)" in found["blocks", "devices", "gang default/half"]
    assert "1 of the 2 members" in found["changes", "gang", "gang default/half"]
    assert found["step", "queue", "queue research"].startswith("1 group names it")
    assert found["tells", "dialect", "podgroups.scheduling.run.ai"].startswith(
        "groups: 2 (without a phase: 2); Tutti reads them"
    )
    assert found["tells", "dialect", "podgangs.scheduler.grove.io"].startswith("groups: 1 (")


async def test_a_cluster_that_cannot_be_reached_ends_with_status_2(
    typed: Typed, tmp_path: Any
) -> None:
    found = await typed("migrate", "check", f"--kubeconfig={tmp_path / 'none'}")
    assert found.exit_code == 2
    assert found.output.startswith("tutti: ")
