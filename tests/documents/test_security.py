"""The threat model promises nothing that no test tries."""

import re
from typing import Final

from tests.documents.links import ROOT

_NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_each_test_that_the_threat_model_names_exists() -> None:
    named = _NAMED.findall((ROOT / "docs" / "security.md").read_text())
    assert len(named) > 20
    for path, test in named:
        source = (ROOT / path).read_text()
        assert not test or f"def {test}(" in source, f"{path} has no {test}"
