import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.spreading import LONGEST, TOGETHER, rank, unit_of

ROOT: Final = Path(__file__).parents[2]


def test_files_that_share_a_control_plane_stay_together() -> None:
    assert unit_of("tests/seeds/test_a.py::test_x[a::b/c]") == "tests/seeds"
    assert unit_of("tests/seeds/deeper/test_b.py::test_y") == "tests/seeds"
    assert unit_of("tests/bench/test_a.py::test_x") == "tests/bench/test_a.py"


def test_every_folder_with_a_control_plane_of_its_own_stays_together() -> None:
    """Else each process that gets one of its files starts one."""
    owners = [
        str(file.parent.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("conftest.py")
        if re.search(r'scope="package"|^    control_plane,$', file.read_text(), re.MULTILINE)
    ]
    assert sorted(owners) == sorted(TOGETHER)


@pytest.mark.parametrize("unit", [*TOGETHER, *LONGEST])
def test_what_is_named_exists_and_is_one_unit(unit: str) -> None:
    assert (ROOT / unit).exists()
    inside = f"{unit}/test_a.py::test_x" if (ROOT / unit).is_dir() else f"{unit}::test_x"
    assert unit_of(inside) == unit


def test_the_longest_come_first_and_the_others_as_they_stand() -> None:
    longest = [f"{unit}/test_a.py" if "." not in unit else unit for unit in LONGEST]
    found = sorted(["tests/a/test_a.py", *reversed(longest), "tests/a/test_b.py"], key=rank)
    assert found == [*longest, "tests/a/test_a.py", "tests/a/test_b.py"]


@pytest.mark.certify
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_process_collects_the_same_tests_in_the_same_order() -> None:
    """A name drawn by chance in one test alone keeps xdist from playing any."""
    first, second = _collected(hash_seed=7), _collected(hash_seed=8)
    assert len(first) > 1_000
    assert second == first


def _collected(hash_seed: int) -> list[str]:
    """The tests of `make test` as a process with this hash seed collects them."""
    # What `make certify` alone plays would have programs built for it.
    flags = ("--collect-only", "-q", "-p", "no:cacheprovider", "-m", "not certify")
    done = subprocess.run(
        (sys.executable, "-m", "pytest", *flags),
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=440,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]
