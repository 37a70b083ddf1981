"""Fixtures: Karpenter beside the module's `tutti up`, one for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.autoscalers.karpenter import running_karpenter
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.integration.autoscalers.purchases import Purchases
from tests.integration.stage import Stage


@pytest.fixture
async def purchases(
    karpenter_program: BuiltOperator, control_plane: ControlPlane, stage: Stage, tmp_path: Path
) -> AsyncIterator[Purchases]:
    """Karpenter, which may buy nothing yet; at the end the auditor judges, and all is removed."""
    async with running_karpenter(karpenter_program, control_plane, tmp_path) as component:
        found = Purchases(stage, component)
        yield found
        await stage.audit.verdict()
        await found.clear()
