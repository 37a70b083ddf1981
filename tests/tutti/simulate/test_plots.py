"""The page with plots."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.tutti.simulate.test_simulate import TABLE, ran

SVG = re.compile("<svg.*?</svg>", re.DOTALL)


@pytest.mark.slow
def test_a_page_has_the_same_plots_of_each_configuration_and_refers_to_nothing(
    tmp_path: Path,
) -> None:
    confs = []
    for name in ("first", "second"):
        (tmp_path / name).write_text("actions: allocate\ntiers: [{plugins: [{name: gang}]}]")
        confs += ["--conf", str(tmp_path / name)]
    file = tmp_path / "page.html"
    hostile = TABLE.replace("\nb,", "\n<script>&b,")
    assert ran(tmp_path, *confs, "--queue-by", "user", "--html", str(file), trace=hostile).stdout
    page = file.read_text()
    assert page.count('<div class="name">') == 2
    # Used, waiting, waits, and shares by user and by queue.
    plots = [ET.fromstring(plot) for plot in SVG.findall(page)]
    assert len(plots) == 2 * 5
    assert not re.search(r"<script|src=|href=|url\(|@import", page)
    assert "&lt;script&gt;&amp;b" in page
    heights = [plot.get("viewBox") for plot in plots]
    assert heights[::2] == heights[1::2]


def test_a_page_that_cannot_be_written_is_refused_before_the_simulation(tmp_path: Path) -> None:
    result = ran(tmp_path, "--html", str(tmp_path / "absent" / "page.html"))
    assert result.exit_code == 2
    assert "No such file or directory" in result.stderr
