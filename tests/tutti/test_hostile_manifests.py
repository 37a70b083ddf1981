"""A short text that stands for a large one, in each command that reads manifests: refused at once,
with line and rule, before anything is asked.
"""

import time
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from shared.kube.credentials import load
from shared.kube.errors import KubeError
from tutti.api.failures import Refusal
from tutti.cli import main
from tutti.client.submission import read_manifests

#: 306 bytes that stand for 400 million values.
BOMB: Final = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)
_RULE: Final = "line 6: aliases must stand for at most 100000 values"


_COMMANDS: Final = (
    ["explain-dialect", "-f"],
    ["convert", "queues", "-f"],
    ["fits", "-f"],
    ["job", "run", "-f"],
    ["cronjob", "create", "-f"],
    ["jobflow", "create", "-f"],
    ["podgroup", "create", "-f"],
)


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_a_text_with_aliases_of_aliases_is_refused_by_each_command(
    words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(BOMB)
    began_s = time.process_time()
    done = CliRunner(env={"KUBECONFIG": str(tmp_path / "none")}).invoke(main, [*words, str(file)])
    assert done.exit_code not in {0, None}, done.output
    assert _RULE in done.output
    assert "Traceback" not in done.output
    assert time.process_time() - began_s < 5.0


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_each_command_reads_the_encodings_of_yaml(words: list[str], tmp_path: Path) -> None:
    """PowerShell writes UTF-16."""
    said: set[str] = set()
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        file = tmp_path / "manifest.yaml"
        file.write_text("kind: Unknown\nmetadata: {name: é}\n", encoding=encoding)
        done = CliRunner(env={"KUBECONFIG": str(tmp_path / "none")}).invoke(
            main, [*words, str(file)]
        )
        assert isinstance(done.exception, SystemExit | None), encoding
        assert "YAML" not in done.output
        assert "read:" not in done.output
        said.add(done.output)
    assert len(said) == 1


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_no_command_reads_a_file_without_end(words: list[str], tmp_path: Path) -> None:
    done = CliRunner(env={"KUBECONFIG": str(tmp_path / "none")}).invoke(main, [*words, "/dev/zero"])
    assert done.exit_code not in {0, None}
    assert "must have at most 67108864 characters" in done.output


def test_the_client_refuses_it_and_so_do_the_tools_for_assistants_that_use_it() -> None:
    with pytest.raises(Refusal, match=f"not YAML: {_RULE}"):
        read_manifests(BOMB)


async def test_a_kubeconfig_that_is_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(BOMB)
    with pytest.raises(KubeError, match=_RULE):
        await load(str(file), "")
