"""Volcano's programs at an embedded API server."""

import click
import pytest
import yaml

from shared.runtime.program_version import program_version
from tests.api_suite.client import Client
from tests.tutti.conftest import Typed
from tests.tutti.job.test_command import COMMANDS, JOBS, manifest
from tutti.vcctl import slurm
from tutti.vcctl.command import vcctl

pytestmark = pytest.mark.integration


async def test_vcctl_finds_jobs_by_a_part_of_their_name_and_by_labels(
    typed: Typed, cluster_api: Client
) -> None:
    for name, team in [("train-a", "red"), ("train-b", "blue"), ("test", "red")]:
        await cluster_api.create(JOBS, manifest(name, labels={"team": team}))
    for selector, names in [("train", 2), ("team=red", 2), ("in-b", 1), ("none", 0)]:
        words = ["job", "list", "--selector", selector, "-o", "name"]
        done = await typed(*words, program=vcctl)
        assert done.output.count("job.batch.volcano.sh/") == names, selector


async def test_vcctl_prints_the_version_of_the_installed_programs(typed: Typed) -> None:
    done = await typed("version", program=vcctl)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1] == f"Version: {program_version()} (Tutti)"


async def test_vcctl_accepts_gos_flags_and_logs_requests_at_level_4(typed: Typed) -> None:
    words = ["--vmodule", "a=1", "-v=4", "job", "list", "--log-flush-frequency=1s"]
    done = await typed(*words, program=vcctl)
    assert (done.exit_code, done.stdout) == (0, "No resources found\n")
    assert "GET http" in done.stderr
    assert "GET http" not in (await typed("job", "list", program=vcctl)).stderr


async def test_vcctl_fails_on_standard_output_with_status_255(typed: Typed) -> None:
    done = await typed("job", "suspend", "-N", "none", program=vcctl)
    assert done.exit_code == 255
    assert done.stdout.startswith("Failed to suspend job: there is no job 'none'")


async def test_vsub_makes_a_job_from_flags_and_environment(
    typed: Typed, cluster_api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOLCANO_DEFAULT_IMAGE", "from/environment")
    monkeypatch.setenv("VOLCANO_SCHEDULER_NAME", "")
    done = await typed("-n", "train", "-N", "default", "-c", "sleep 1", program=slurm.vsub)
    assert (done.exit_code, done.output) == (0, "run job train successfully\n")
    spec = (await cluster_api.get(f"{JOBS}/train")).body["spec"]
    (container,) = spec["tasks"][0]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("from/environment", ["sleep", "1"])
    assert spec["schedulerName"] == "volcano"


@pytest.mark.parametrize(
    ("program", "action"), [(slurm.vsuspend, "AbortJob"), (slurm.vresume, "ResumeJob")]
)
async def test_vsuspend_and_vresume_write_commands(
    typed: Typed, cluster_api: Client, program: click.Command, action: str
) -> None:
    await cluster_api.create(JOBS, manifest("train"))
    assert (await typed("-n", "train", program=program)).exit_code == 0
    (command,) = (await cluster_api.get(COMMANDS)).body["items"]
    assert (command["action"], command["target"]["name"]) == (action, "train")


async def test_vjobs_lists_or_shows_one_and_vcancel_deletes(
    typed: Typed, cluster_api: Client
) -> None:
    for name in ("a", "b"):
        await cluster_api.create(JOBS, manifest(name))
    assert len((await typed(program=slurm.vjobs)).output.splitlines()) == 3
    one = await typed("-n", "a", "-o", "yaml", program=slurm.vjobs)
    assert yaml.safe_load(one.output)["metadata"]["name"] == "a"
    assert (await typed("-n", "a", program=slurm.vcancel)).output == "delete job a successfully\n"
    assert await cluster_api.names(JOBS) == ["b"]


async def test_vqueues_has_its_own_columns(typed: Typed) -> None:
    await typed("queue", "create", "-n", "q1")
    head, row = (await typed(program=slurm.vqueues)).output.splitlines()
    assert head.split() == ["Name", "Weight", "State", "Inqueue", "Pending", "Running", "Unknown"]
    assert row.split() == ["q1", "1", "0", "0", "0", "0"]
    assert (await typed("-n", "q1", program=slurm.vqueues)).output.splitlines() == [head, row]
