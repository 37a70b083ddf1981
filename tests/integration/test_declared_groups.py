"""`tutti why` about gangs that their pods declare completely: no group object exists.

Their placement is in tests/dialects.
"""

from typing import Final

import pytest

from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import Stage

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

PREFIX: Final = "gang.scheduling.koordinator.sh"


async def test_why_finds_a_gang_without_an_object_by_its_pods(stage: Stage) -> None:
    await stage.nodes(1)
    notes = {f"{PREFIX}/name": "pair", f"{PREFIX}/min-available": "2"}
    await stage.bare_pods(
        pod_manifest("koord-0", requests={"cpu": "4"}, scheduler_name="tutti", annotations=notes)
    )
    await stage.why("pod/koord-0", "gang/pair waits", "1 of 2 members exist")
