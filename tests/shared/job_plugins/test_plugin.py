"""Flags of plugins are read as far as they can be read."""

import pytest

from shared.job_plugins.plugin import Flags


@pytest.mark.parametrize("text", ["-7", "8080", "0"])
def test_a_number_is_read(text: str) -> None:
    assert Flags([f"--port={text}"], port=1).number("port") == int(text)


@pytest.mark.parametrize("text", ["", "-", "--1", "1.5", "²", "9" * 30, "9" * 5000])
def test_what_is_no_number_that_anything_takes_leaves_the_default(text: str) -> None:
    flags = Flags(["--port", text, "--host=b"], port=1, host="a")
    assert flags.number("port") == 1
    assert flags.text("host") == "a"  # parsing has stopped
