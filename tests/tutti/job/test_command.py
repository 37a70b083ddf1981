"""`tutti job` at an embedded API server."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api_suite.client import Client, Obj
from tests.support.golden import Golden
from tests.tutti.conftest import Typed

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

pytestmark = pytest.mark.integration


def manifest(name: str, **changes: Any) -> Obj:
    container = {"name": "c", "image": "i"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": changes.pop("labels", {})},
        "spec": {
            "minAvailable": 2,
            "schedulerName": "volcano",
            "queue": "default",
            "tasks": [{"name": "w", "replicas": 2, "template": template}],
            **changes,
        },
    }


async def set_status(api: Client, name: str, **status: Any) -> None:
    done = await api.patch(f"{JOBS}/{name}/status", {"status": status})
    assert done.status == 200, done.body


async def test_the_list_has_volcanos_columns_byte_for_byte(
    typed: Typed, cluster_api: Client, golden: Golden
) -> None:
    made = await cluster_api.create(JOBS, manifest("train"))
    await set_status(cluster_api, "train", state={"phase": "Running"}, minAvailable=2, running=2)
    day = made["metadata"]["creationTimestamp"][:10]
    golden((await typed("job", "list")).output.replace(day, "YYYY-MM-DD"))


async def test_lists_are_filtered_by_queue_scheduler_and_labels(
    typed: Typed, cluster_api: Client
) -> None:
    await cluster_api.create(JOBS, manifest("a", queue="q1", labels={"team": "red"}))
    await cluster_api.create(JOBS, manifest("b", schedulerName="other"))
    for flags, names in [
        (["-q", "q1"], ["a"]),
        (["-S", "other"], ["b"]),
        (["-l", "team=red"], ["a"]),
        (["-l", "team!=red"], ["b"]),
        (["-l", "team"], ["a"]),
        (["-n", "kube-system"], []),
        (["--all-namespaces=true"], ["a", "b"]),
    ]:
        done = await typed("job", "list", "-o", "json", *flags)
        found = [each["metadata"]["name"] for each in json.loads(done.output)["items"]]
        assert found == names, flags
    assert (await typed("job", "list", "-q", "none")).output == "No resources found\n"
    assert (await typed("job", "list", "-o", "name", "-q", "q1")).output == (
        "job.batch.volcano.sh/a\n"
    )


async def test_a_job_from_flags_is_the_one_that_volcanos_tools_make(
    typed: Typed, cluster_api: Client, golden: Golden
) -> None:
    done = await typed(
        "job", "run", "-N", "train", "-i", "img", "-m", "2", "-r", "3", "-R", "cpu=1",
        "-L", "cpu=2,memory=1Gi", "-S", "kube-batch", "-c", "sh -c 'echo a b'",
    )  # fmt: skip
    assert done.exit_code == 0
    golden(done.output)
    spec = (await cluster_api.get(f"{JOBS}/train")).body["spec"]
    assert (spec["minAvailable"], spec["schedulerName"]) == (2, "kube-batch")
    (task,) = spec["tasks"]
    assert task["replicas"] == 3
    assert task["template"] == {
        "metadata": {"labels": {"job.volcano.sh": "train"}, "name": "train"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "train",
                    "image": "img",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", "echo a b"],
                    "resources": {
                        "requests": {"cpu": "1"},
                        "limits": {"cpu": "2", "memory": "1Gi"},
                    },
                }
            ],
        },
    }


async def test_a_manifest_wins_over_flags_and_may_come_by_standard_input(
    typed: Typed, cluster_api: Client, golden: Golden
) -> None:
    text = yaml.safe_dump_all([manifest("one"), manifest("two")])
    done = await typed("job", "run", "-f", "-", "-N", "ignored", stdin=text)
    assert done.exit_code == 0
    golden(done.output)
    assert await cluster_api.names(JOBS) == ["one", "two"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param([], "job name cannot be left blank", id="no name"),
        pytest.param(["-N", "a", "-m", "2"], "--min 2 is more than --replicas 1", id="minimum"),
        pytest.param(["-N", "a", "-R", "cpu"], "--requests cpu: must be RESOURCE", id="no amount"),
        pytest.param(["-N", "a", "-L", "cpu=x"], "--limits cpu=x: 'x' is no quantity", id="amount"),
        pytest.param(["-N", "a", "-c", "'"], "--command '", id="open quote"),
        pytest.param(["-N", "a", "--timeout", "5"], "'5' must be a duration", id="time"),
        pytest.param(["-N", "a", "--dry-run", "--wait"], "--dry-run stores nothing", id="dry wait"),
        pytest.param(["-f", "/none"], "/none: cannot be read", id="no file"),
        pytest.param(
            ["-f", "/proc/sys"], "/proc/sys: there is no .yaml, .yml or .json", id="a folder"
        ),
        pytest.param(["-N", "a", "-n", "none"], "there is no namespace 'none'", id="namespace"),
    ],
)
async def test_a_job_that_cannot_be_is_refused_with_the_flag_and_the_rule(
    typed: Typed, flags: list[str], words: str
) -> None:
    done = await typed("job", "run", *flags)
    assert done.exit_code == 2
    assert words in done.stderr


async def test_another_kind_in_the_manifest_is_refused_by_name(typed: Typed) -> None:
    done = await typed("job", "run", "-f", "-", stdin="apiVersion: batch/v1\nkind: Job\n")
    assert done.exit_code == 2
    assert "Job of batch/v1; expected Job of batch.volcano.sh/v1alpha1" in done.stderr


@pytest.mark.parametrize(("verb", "action"), [("suspend", "AbortJob"), ("resume", "ResumeJob")])
async def test_suspend_and_resume_write_the_command_that_controllers_take(
    typed: Typed, cluster_api: Client, verb: str, action: str
) -> None:
    made = await cluster_api.create(JOBS, manifest("train"))
    done = await typed("job", verb, "-N", "train")
    assert done.exit_code == 0, done.output
    (command,) = (await cluster_api.get(COMMANDS)).body["items"]
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert (command["action"], command["target"]) == (action, owner)
    assert command["metadata"]["generateName"] == f"train-{action.lower()}-"
    assert command["metadata"]["ownerReferences"] == [owner]


async def test_a_job_that_is_not_there_is_neither_suspended_nor_deleted(typed: Typed) -> None:
    for verb in ("suspend", "delete", "view", "logs"):
        done = await typed("job", verb, "none")
        assert done.exit_code == 2
        assert "there is no job 'none'" in done.stderr


async def test_several_jobs_are_deleted_with_one_command(
    typed: Typed, cluster_api: Client, golden: Golden
) -> None:
    for name in ("a", "b", "c"):
        await cluster_api.create(JOBS, manifest(name))
    done = await typed("job", "delete", "a", "b")
    golden(done.output)
    assert await cluster_api.names(JOBS) == ["c"]


async def test_view_shows_the_state_and_the_events_of_the_job_by_uid(
    typed: Typed, cluster_api: Client
) -> None:
    made = await cluster_api.create(JOBS, manifest("train", plugins={"env": [], "svc": ["--a=b"]}))
    state = {"phase": "Failed", "reason": "PodFailed", "message": "it broke"}
    await set_status(cluster_api, "train", state=state, failed=2, retryCount=3)
    for uid, message in [(made["metadata"]["uid"], "mine"), ("another", "of its predecessor")]:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "train."},
            "involvedObject": {"kind": "Job", "name": "train", "namespace": "default", "uid": uid},
            "reason": "Told",
            "message": message,
            "type": "Normal",
            "count": 1,
            "firstTimestamp": made["metadata"]["creationTimestamp"],
            "source": {"component": "vc-controller-manager"},
        }
        await cluster_api.create("/api/v1/namespaces/default/events", event)
    waits = {"type": "Unschedulable", "status": "True", "message": "for 2 GPUs"}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": f"train-{made['metadata']['uid']}"},
        "status": {"conditions": [waits]},
    }
    await cluster_api.create(GROUPS, group)
    reported = (await typed("job", "view", "train")).output
    assert "    Waits For:\tfor 2 GPUs" in reported
    assert "Svc:\t[--a=b]" in reported
    assert "Phase:\tFailed\n    Reason:\tPodFailed\n    Message:\tit broke" in reported
    assert "RetryCount:   \t3" in reported
    assert "mine" in reported
    assert "predecessor" not in reported
    done = await typed("job", "view", "-N", "train", "-o", "yaml")
    whole = yaml.safe_load(done.output)
    assert whole["status"]["state"] == state


async def test_an_empty_list_is_reported_on_standard_error(
    typed: Typed, cluster_api: Client
) -> None:
    for flags in (["-o", "name"], [], ["-o", "wide"]):
        done = await typed("job", "list", *flags)
        assert (done.stdout, done.stderr) == ("", "No resources found\n"), flags
    assert json.loads((await typed("job", "list", "-o", "json")).stdout)["items"] == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("job", manifest("train", minAvailableX=2)),
        (
            "podgroup",
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "train"},
                "spec": {"minAvailableX": 2},
            },
        ),
    ],
)
async def test_a_field_that_the_kind_does_not_have_is_refused(
    typed: Typed, cluster_api: Client, tmp_path: Path, kind: str, body: Obj
) -> None:
    path = tmp_path / "it.json"
    path.write_text(json.dumps(body))
    verb = "run" if kind == "job" else "create"
    done = await typed(kind, verb, "-f", str(path))
    assert done.exit_code == 2, done.output
    assert 'unknown field "spec.minAvailableX"' in done.stderr
    assert (await cluster_api.call("GET", JOBS)).body["items"] == []


async def test_pods_of_simulated_nodes_have_a_log_that_says_so(
    typed: Typed, cluster_api: Client
) -> None:
    await cluster_api.create(JOBS, manifest("train"))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-w-0", "labels": {"volcano.sh/job-name": "train"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await cluster_api.create("/api/v1/namespaces/default/pods", pod)
    done = await typed("job", "logs", "train")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("This node is simulated: no program runs in the pod")
