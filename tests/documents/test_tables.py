"""The documents list every setting, metric, policy, value and right, and no other."""

import re

import pytest

from services.gang_planner.core.configuration import unsupported
from services.gang_planner.core.policies import discovered
from tests.documents.device_features import FEATURES, ROOT, DeviceFeature
from tests.documents.reference import FOLDER, pages
from tests.documents.tables import DOCUMENTS, SETTINGS, named_in, tables, with_tables

HOW = "run `.venv/bin/python -m tests.documents.tables` and look at what it changed"


#: Volcano's plugins, as its documentation of scheduler.conf names them.
VOLCANO = """
gang priority conformance proportion capacity drf predicates nodeorder binpack overcommit sla
deviceshare network-topology-aware nodegroup resourcequota usage rescheduling tdm task-topology
numa-aware cdp pdb resource-strategy-fit extender
"""


def test_every_table_exists_once_and_is_current() -> None:
    texts = [document.read_text() for document in DOCUMENTS]
    named = [name for text in texts for name in named_in(text)]
    assert sorted(named) == sorted(tables()), "a table is missing, or there twice"
    assert texts == [with_tables(text) for text in texts], HOW


@pytest.mark.parametrize("name", VOLCANO.split())
def test_every_plugin_of_volcanos_is_a_policy_or_left_out_with_a_reason(name: str) -> None:
    assert (name in discovered()) != (name in unsupported.PLUGINS)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.title)
def test_a_feature_of_devices_is_supported_if_tests_prove_it(feature: DeviceFeature) -> None:
    assert feature.support.startswith("no") == (not feature.proofs)
    for proof in feature.proofs:
        path, _, name = proof.partition("::")
        text = (ROOT / path).read_text()
        assert re.search(rf"^ *(?:class|(?:async )?def) {name}\b", text, re.MULTILINE), proof


def test_a_table_out_of_date_is_noticed() -> None:
    text = SETTINGS.read_text()
    stale = text.replace("`--posts-max`", "`--posts-most`")
    assert stale != text
    assert with_tables(stale) == with_tables(text)


def test_the_reference_is_current() -> None:
    stale = [page.name for page, text in pages().items() if page.read_text() != text]
    assert stale == [], HOW


def test_a_messages_fields_are_described_by_the_comments_above_them() -> None:
    comment = "Prove all bindings by dryRun=All before the first is sent."
    assert f"| `preflight` | `bool` | {comment} |" in pages()[FOLDER / "messages.md"]
    kinds = pages()[FOLDER / "kinds.md"]
    assert (
        "| `spec.minMember` | int32 | The minimum number of pods that are placed together;" in kinds
    )
    assert "| `-N, --name NAME` | Name of the Job. |" in pages()[FOLDER / "commands.md"]
