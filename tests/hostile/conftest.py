"""A cluster with the services for tests in which one tenant attacks another."""

from tests.integration.conftest import (
    audit,
    control_plane,
    namespace,
    stage,
    suite,
)

__all__ = ["audit", "control_plane", "namespace", "stage", "suite"]
