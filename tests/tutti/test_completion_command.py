import asyncio
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from tests.api_suite.client import Client
from tests.tutti.job.test_command import JOBS, manifest
from tutti.cli import main
from tutti.kubectl_completion import kubectl_complete
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
    ],
    ids=["here", "elsewhere", "vcctl", "no cluster"],
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
