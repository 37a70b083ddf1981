"""The chart tutti-crds has the files of deploy/crds, and kube-batch's on request."""

import subprocess
from pathlib import Path

import pytest

from tests.deploy.rendered import CHART

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_CHART = CHART.parent / "crds-chart"
_FILES = CHART.parent / "crds"


@pytest.mark.parametrize(
    ("flags", "pattern"), [((), "*.yaml"), (("--set=kubeBatch=true",), "**/*.yaml")]
)
def test_the_chart_renders_the_files_as_they_are(
    helm: Path, flags: tuple[str, ...], pattern: str
) -> None:
    command: list[str | Path] = [helm, "template", "crds", _CHART, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = {path.read_text("utf-8") for path in _FILES.glob(pattern)}
    assert len(expected) > 5
    for text in expected:
        # Helm keeps comments, and adds its own above each document.
        assert text.partition("\n")[2].strip() in done.stdout
    assert done.stdout.count("\nkind: CustomResourceDefinition") == len(expected)
    assert done.stdout.count("helm.sh/resource-policy: keep") == len(expected)


def test_an_unknown_value_is_refused_by_its_name(helm: Path) -> None:
    command: list[str | Path] = [helm, "template", "crds", _CHART, "--set=kubebatch=true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "kubebatch" in done.stderr
