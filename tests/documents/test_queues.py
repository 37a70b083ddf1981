"""What the page about queues says of configurations is so."""

import re

from services.gang_planner.core.configuration.configuration import parse_configuration
from tests.documents.links import ROOT

PAGE = (ROOT / "docs/queues.md").read_text()


def test_the_default_actions_are_those_that_the_page_names() -> None:
    (named,) = re.findall(r"The default actions are `([^`]+)`", PAGE)
    assert tuple(named.split(", ")) == parse_configuration("").actions


def test_the_configuration_of_the_page_reclaims_and_has_no_entry_without_effect() -> None:
    (text,) = re.findall(r"```yaml\n# volcano-scheduler.conf.*?\n(.*?)```", PAGE, re.DOTALL)
    found = parse_configuration(text)
    assert "reclaim" in found.actions
    assert found.warnings == ()
    assert {one.name for one in found.plugins} >= {"capacity", "gang"}
