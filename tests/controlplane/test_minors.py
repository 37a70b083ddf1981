"""What Tutti asks of an API server is answered by the oldest and the newest that it supports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.binaries import MODULE_DIR, kubernetes_version
from tests.controlplane.minors import MINORS, ensure_minor

ROOT = Path(__file__).parents[2]
UNPINNED = "not embedded and not says_what_it_serves"
#: What a minor does not do yet: 1.34 takes any integer, whatever its format says. (A gang that
#: needs two billion pods waits for ever, nothing else.)
NOT_YET = {"1.34": "test_crds and format"}
#: A feature gate of the tests' API server that a minor does not know: it would not start.
UNKNOWN_GATE = {"1.34": "--feature-gates=DRADeviceTaintRules=true"}
#: The API as it is used, lists and watches, and Tutti itself: gangs bound, reported, kept.
TRIED = ("tests/api_suite", "tests/controlplane/test_crds.py", "tests/integration/test_gangs.py")


def test_the_pinned_minor_is_one_of_four_between_the_oldest_and_the_newest() -> None:
    def number(minor: str) -> int:
        return int(minor.split(".")[1])

    oldest, newest = map(number, MINORS)
    assert newest - oldest == 3
    assert oldest <= number(kubernetes_version().removeprefix("v")) <= newest


@pytest.mark.parametrize("minor", MINORS)
def test_the_folder_of_a_minor_pins_that_minor(minor: str) -> None:
    version = kubernetes_version(MODULE_DIR / "apiservers" / minor)
    assert version.startswith(f"v{minor}.")


@pytest.mark.certify
@pytest.mark.integration
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("minor", MINORS)
def test_the_api_is_on_a_minor_what_it_is_on_the_pinned_one(minor: str, tmp_path: Path) -> None:
    assets = ensure_minor(minor)
    if minor in UNKNOWN_GATE:
        assets = without_flag(assets, UNKNOWN_GATE[minor], tmp_path)
    said = subprocess.run(
        [assets / "kube-apiserver", "--version"], capture_output=True, text=True, check=True
    )
    assert f" v{minor}." in said.stdout
    chosen = f"{UNPINNED} and not ({NOT_YET[minor]})" if minor in NOT_YET else UNPINNED
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not certify"]
    done = subprocess.run(
        [*command, "-k", chosen, *TRIED],
        cwd=ROOT,
        env={**os.environ, "KUBEBUILDER_ASSETS": str(assets)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]


def without_flag(assets: Path, flag: str, folder: Path) -> Path:
    """Fill a folder with the control plane's programs; its API server never gets the flag."""
    for program in assets.iterdir():
        (folder / program.name).symlink_to(program)
    apiserver = folder / "kube-apiserver"
    apiserver.unlink()
    apiserver.write_text(
        "#!/bin/bash\n"
        f'for flag in "$@"; do [[ $flag == "{flag}" ]] || flags+=("$flag"); done\n'
        f'exec {assets / "kube-apiserver"} "${{flags[@]}}"\n',
        encoding="utf-8",
    )
    apiserver.chmod(0o755)
    return folder
