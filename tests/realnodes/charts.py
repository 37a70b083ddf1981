"""A release's charts on a real cluster: what an operator types to install, upgrade and go back."""

import re
from typing import Final

from tests.realnodes.cluster import RealCluster
from tests.realnodes.releases import Release
from tests.realnodes.workload import NAMESPACE, RELEASE

WAIT: Final = ("--wait", "--timeout=800s")
CRDS_RELEASE: Final = "tutti-crds"
_WHERE: Final = f"--namespace={NAMESPACE}"


def install(cluster: RealCluster, *values: str, release: Release | None = None) -> None:
    """Install the chart, by default of the cluster's release, and wait for it. Raises ToolError."""
    chart = (release or cluster.release).chart
    cluster.helm("install", RELEASE, str(chart), _WHERE, *values, *WAIT)


def upgrade(cluster: RealCluster, *values: str, release: Release | None = None) -> None:
    """Upgrade to the chart, by default of the cluster's release, and wait. Raises ToolError."""
    chart = (release or cluster.release).chart
    cluster.helm("upgrade", RELEASE, str(chart), _WHERE, *values, *WAIT)


def roll_back(cluster: RealCluster, revision: int) -> None:
    """Go back to a revision and wait. Raises ToolError."""
    cluster.helm("rollback", RELEASE, str(revision), _WHERE, *WAIT)


def uninstall(cluster: RealCluster) -> None:
    """Remove the release and wait. Raises ToolError."""
    cluster.helm("uninstall", RELEASE, _WHERE, *WAIT)


def install_crds(cluster: RealCluster) -> None:
    """Install the chart of the CRDs; `crds.install=false` belongs to it. Raises ToolError."""
    cluster.helm("install", CRDS_RELEASE, str(cluster.release.crds_chart), *WAIT)


def uninstall_crds(cluster: RealCluster) -> None:
    """Remove the chart of the CRDs, which keeps them. Raises ToolError."""
    cluster.helm("uninstall", CRDS_RELEASE, *WAIT)


def highly_available(release: Release) -> str:
    """The flag for the release's own values with three servers of NATS."""
    return f"--values={release.highly_available}"


def image_of(cluster: RealCluster, release: Release) -> str:
    """The image that the release's chart names, with its digest. Raises ToolError."""
    values = cluster.helm("show", "values", str(release.chart))
    registry, repository, digest = (
        re.search(rf'(?m)^image:\n(?:  .*\n)*?  {name}: "(.+)"$', values)
        for name in ("registry", "repository", "digest")
    )
    assert registry is not None
    assert repository is not None
    assert digest is not None
    return f"{registry[1]}/{repository[1]}@{digest[1]}"
