import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from tests.api_suite.client import Client
from tests.tutti.job.test_command import JOBS, manifest
from tutti.cli import main
from tutti.completion_command import kubectl_complete
from tutti.vcctl.command import vcctl


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_completes_the_programs_that_are_named(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell, "tutti", "vcctl"])
    assert done.exit_code == 0
    assert f"_TUTTI_COMPLETE={shell}_complete" in done.output
    assert f"_VCCTL_COMPLETE={shell}_complete" in done.output


def test_kubectl_completes_the_plugin_with_what_each_word_means(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-tutti", "job", "su"])
    kubectl_complete()
    line, directive = capsys.readouterr().out.splitlines()
    assert line.startswith("suspend\tAbort Jobs")
    assert directive == ":4"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("program", "words", "found"),
    [
        (main, ["job", "view"], ["train-a", "train-b"]),
        (main, ["job", "view", "-n", "kube-system"], []),
        (vcctl, ["job", "delete"], ["train-a", "train-b"]),
        (main, ["job", "view", "-k", "/none"], []),
        (main, ["why"], ["train-a", "train-b"]),
        (main, ["trace"], ["train-a", "train-b"]),
        (main, ["explain-dialect"], ["train-a", "train-b"]),
    ],
    ids=["here", "elsewhere", "vcctl", "no cluster", "why", "trace", "explain-dialect"],
)
async def test_names_of_jobs_are_completed(
    kubeconfig: Path, cluster_api: Client, monkeypatch: pytest.MonkeyPatch,
    program: click.Command, words: list[str], found: list[str],
) -> None:  # fmt: skip
    for name in ("train-a", "train-b", "test"):
        await cluster_api.create(JOBS, manifest(name))
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    asking = ShellComplete(program, {}, "program", "_PROGRAM_COMPLETE")
    # In a thread, as it has a loop of its own.
    items = await asyncio.to_thread(asking.get_completions, words, "tr")
    assert [item.value for item in items] == found


@pytest.mark.integration
@pytest.mark.parametrize(
    ("words", "begun", "found"),
    [
        (["why"], "vcjob/tr", ["vcjob/train"]),
        (["explain-dialect"], "vcjob/", ["vcjob/train"]),
        (["why"], "nothing/", []),
        (["queues"], "re", ["research"]),
        (["why", "--namespace"], "kube-s", ["kube-system"]),
        (["job", "list", "-n"], "def", ["default"]),
    ],
)
async def test_kinds_queues_and_namespaces_are_completed(
    kubeconfig: Path, cluster_api: Client, monkeypatch: pytest.MonkeyPatch,
    words: list[str], begun: str, found: list[str],
) -> None:  # fmt: skip
    await cluster_api.create(JOBS, manifest("train"))
    await cluster_api.create(
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        | {"metadata": {"name": "research"}, "spec": {"weight": 1}},
    )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    asking = ShellComplete(main, {}, "tutti", "_TUTTI_COMPLETE")
    items = await asyncio.to_thread(asking.get_completions, words, begun)
    assert [item.value for item in items] == found


def test_every_command_that_takes_names_completes_them() -> None:
    """Files and words of other programs aside."""
    others = {"bundle file", "replay arguments", "bench arguments", "nats-reload folders"}
    others.add("simulate trace")
    found = {*_without_completion(main, ""), *_without_completion(vcctl, "")}
    assert found - others == {"help words"}


def _without_completion(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _without_completion(inner, f"{path} {name}".strip())
        return
    for one in command.params:
        is_choice = isinstance(one.type, click.Choice)
        if isinstance(one, click.Argument) and not is_choice and not one._custom_shell_complete:
            yield f"{path} {one.name}"
