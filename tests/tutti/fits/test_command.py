"""What `tutti fits` prints, and what it refuses without asking; `tests/tutti/over_api` asks."""

import io
import pathlib
from typing import Literal

import click.testing
import pytest
from rich.console import Console

from shared.contracts.visibility import (
    API_VERSION,
    Displacement,
    Fit,
    FitStatus,
    GangFit,
    ManifestsSpec,
    NamedGangs,
    ObjectMeta,
)
from tests.support.golden import Golden
from tutti.fits_command import fits, show


@pytest.mark.parametrize(
    ("action", "gangs", "words"),
    [
        (
            "preempt",
            NamedGangs(count=2, names=("team/a", "x/b")),
            "once created, 4 pods would be preempted for it, of team/a, x/b",
        ),
        (
            "reclaim",
            NamedGangs(count=3, names=("team/a",)),
            "4 pods would be reclaimed from other queues for it, of team/a, 2 other gangs",
        ),
    ],
)
def test_gangs_whose_pods_would_be_evicted_are_reported(
    action: Literal["preempt", "reclaim"], gangs: NamedGangs, words: str, golden: Golden
) -> None:
    one = GangFit(
        name="train",
        members=2,
        fits=False,
        ever=True,
        message="no room",
        displaces=Displacement(action=action, members=4, gangs=gangs),
    )
    fit = Fit(
        api_version=API_VERSION,
        kind="Fit",
        metadata=ObjectMeta(name="question", namespace="team"),
        spec=ManifestsSpec(manifests=()),
        status=FitStatus(fits=False, gangs=(one,), warnings=("document 1, Job a: words",)),
    )
    console = Console(file=io.StringIO(), width=1_000)
    show(fit, console)
    assert isinstance(console.file, io.StringIO)
    warning, first, second = console.file.getvalue().splitlines()
    golden(warning)
    golden(first)
    assert words in second


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there must be an object in the files"),
        (bytes(range(256)), "not YAML: it must be text"),
        (b"\x00\x01", "not YAML: it must be text"),
        (b"a: b: c", "not YAML: line 1, column 5: mapping values are not allowed"),
        (b"[]", "document 1: must be an object with a kind"),
    ],
    ids=["empty", "binary", "control characters", "no YAML", "a list"],
)
def test_a_file_that_is_no_manifest_is_refused_with_status_2(
    tmp_path: pathlib.Path, content: bytes, words: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(content)
    done = click.testing.CliRunner().invoke(fits, ["-f", str(path)])
    assert done.exit_code == 2, done.output
    assert words in done.output
    assert "unicode string" not in done.output
    assert isinstance(done.exception, SystemExit)
