"""The commands that every kind has, with JobFlows and CronJobs for all of them."""

import json
from pathlib import Path

import pytest
import yaml

from tests.api_suite.client import Client, Obj
from tests.support.golden import Golden
from tests.tutti.conftest import Typed

FLOWS = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows"
CRONJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs"

pytestmark = pytest.mark.integration


def flow(name: str) -> Obj:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": name},
        "spec": {"jobRetainPolicy": "retain", "flows": [{"name": "a"}]},
    }


async def test_flows_are_created_listed_described_and_deleted_by_their_manifests(
    typed: Typed, cluster_api: Client, tmp_path: Path, golden: Golden
) -> None:
    path = tmp_path / "flows.yaml"
    path.write_text(yaml.safe_dump_all([flow("one"), flow("two")]))
    done = await typed("jobflow", "create", "-f", str(path))
    golden(done.output)
    again = await typed("jobflow", "create", "-f", str(path))
    assert again.exit_code == 2
    assert again.stderr.count("already exists") == 2, "the first failure does not end it"
    await cluster_api.patch(f"{FLOWS}/one/status", {"status": {"state": {"phase": "Running"}}})
    head, one, two = (await typed("jobflow", "list")).output.splitlines()
    assert head.split() == ["Name", "Namespace", "Phase", "Age"]
    assert one.split()[:3] == ["one", "default", "Running"]
    assert two.split()[:2] == ["two", "default"]
    described = await typed("jobflow", "describe", "-N", "one", "-o", "json")
    assert json.loads(described.output)["spec"]["jobRetainPolicy"] == "retain"
    both = (await typed("jobflow", "describe")).output
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(both.replace("-" * 33, "---"))]
    assert (
        await typed("jobflow", "delete", "-N", "one")
    ).output == "Deleted JobFlow: default/one\n"
    done = await typed("jobflow", "delete", "-f", str(path))
    assert done.exit_code == 2
    assert "delete JobFlow default/one: there is no jobflow 'one'" in done.stderr
    assert await cluster_api.names(FLOWS) == []


async def test_a_cronjob_is_suspended_and_resumed(typed: Typed, cluster_api: Client) -> None:
    template: Obj = {"spec": {"tasks": [{"replicas": 1, "template": {"spec": {"containers": []}}}]}}
    cronjob = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": template},
    }
    await cluster_api.create(CRONJOBS, cronjob)
    for verb, suspended in [("suspend", True), ("resume", False)]:
        assert (await typed("cronjob", verb, "nightly")).exit_code == 0
        found = (await cluster_api.get(f"{CRONJOBS}/nightly")).body
        assert found["spec"]["suspend"] is suspended
    listed = (await typed("cronjob", "list")).output.splitlines()[1]
    assert listed.split("    ")[:2] == ["nightly", "0 3 * * *"]
