"""deploy/tutti.yaml: the chart with its defaults, for users without Helm.

To bring it up to date: `make chart`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.programs import ensure_helm

_DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CHART: Final = _DEPLOY / "chart"
FILE: Final = _DEPLOY / "tutti.yaml"
RELEASE: Final = "tutti"
NAMESPACE: Final = "kube-system"
#: The name of the image, which has no default.
IMAGE: Final = "--set=image.repository=tutti"
_HEAD: Final = (
    "# The chart as it is by default, for users without Helm. No image of Tutti is published: "
    "replace its name first.\n"
    "#   sed 's#image: tutti:#image: REGISTRY/tutti:#' tutti.yaml | kubectl apply -f -\n"
    "# Made by `make chart`: change deploy/chart instead.\n"
)


def rendered(helm: Path, *flags: str, release: str = RELEASE, namespace: str = NAMESPACE) -> str:
    """What Helm makes of the chart.

    Raises:
        CalledProcessError: Helm refuses the values; its `stderr` says why.
    """
    command = [str(helm), "template", release, str(CHART), f"--namespace={namespace}"]
    command += [IMAGE, *flags]
    done = subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, check=True)
    return done.stdout


def file_content(helm: Path) -> str:
    """What the file should hold."""
    return _HEAD + rendered(helm)


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The objects of a rendered file, read by libyaml: the pure parser takes seconds."""
    return (one for one in yaml.load_all(text, yaml.CSafeLoader) if one)


def main() -> None:
    """Write the file again."""
    FILE.write_text(file_content(ensure_helm()), "utf-8")


if __name__ == "__main__":
    main()
