"""Settings: from flags and variables, refused with name and rule."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from shared.runtime.settings import (
    CommonSettings,
    KubeSettings,
    SettingsError,
    describe,
    load,
    parse,
    unknown_variables,
)


class Sample(CommonSettings, frozen=True, kw_only=True):
    """A service's settings."""

    limit: Annotated[int, Meta(ge=1, le=10, description="how many")] = 3
    rate: Annotated[float, Meta(gt=0)] = 1.5
    fast: bool = False
    mode: Literal["a", "b"] = "a"
    names: tuple[str, ...] = ("tutti", "volcano")
    ports: tuple[int, ...] = ()


class Demanding(msgspec.Struct, frozen=True, kw_only=True):
    """One without a default."""

    token: str


def test_without_flags_and_variables_the_defaults_hold() -> None:
    settings = parse(Sample, [], {})
    assert settings == Sample()
    assert settings.nats_url == "nats://127.0.0.1:4222"


@pytest.mark.parametrize(
    ("argv", "environ", "name", "value"),
    [
        pytest.param(["--limit", "7"], {}, "limit", 7, id="a flag"),
        pytest.param(["--limit=7"], {}, "limit", 7, id="a flag with an equals sign"),
        pytest.param([], {"TUTTI_LIMIT": "7"}, "limit", 7, id="a variable"),
        pytest.param(["--limit", "7"], {"TUTTI_LIMIT": "5"}, "limit", 7, id="the flag wins"),
        pytest.param(["--fast"], {}, "fast", True, id="a switch on"),
        pytest.param(["--no-fast"], {"TUTTI_FAST": "true"}, "fast", False, id="a switch off wins"),
        pytest.param([], {"TUTTI_FAST": "1"}, "fast", True, id="a switch by number"),
        pytest.param([], {"TUTTI_FAST": "false"}, "fast", False, id="a switch by word"),
        pytest.param(["--names", "x"], {}, "names", ("x",), id="a list of one"),
        pytest.param(["--names", "x,y"], {}, "names", ("x", "y"), id="a list by commas"),
        pytest.param(
            ["--names", "x", "--names", "y, z"], {}, "names", ("x", "y", "z"), id="a list repeated"
        ),
        pytest.param([], {"TUTTI_NAMES": "x,y"}, "names", ("x", "y"), id="a list in a variable"),
        pytest.param([], {"TUTTI_NAMES": ""}, "names", (), id="an empty list"),
        pytest.param(["--ports", "1,2"], {}, "ports", (1, 2), id="a list of numbers"),
        pytest.param(["--rate", "2"], {}, "rate", 2.0, id="a fraction given whole"),
        pytest.param(["--http-port", "0"], {}, "http_port", 0, id="an inherited one"),
    ],
)
def test_a_setting_is_read(
    argv: list[str], environ: dict[str, str], name: str, value: object
) -> None:
    assert getattr(parse(Sample, argv, environ), name) == value


@pytest.mark.parametrize(
    ("argv", "environ", "said"),
    [
        pytest.param(["--limit", "0"], {}, ["--limit", ">= 1", "'0'"], id="below its bound"),
        pytest.param(["--limit", "x"], {}, ["--limit", "int", "'x'"], id="not a number"),
        pytest.param([], {"TUTTI_LIMIT": "99"}, ["TUTTI_LIMIT", "<= 10"], id="by a variable"),
        pytest.param(["--mode", "c"], {}, ["--mode", "'c'"], id="not among the choices"),
        pytest.param(["--ports", "1,x"], {}, ["--ports", "int"], id="in a list"),
        pytest.param([], {"TUTTI_FAST": "maybe"}, ["TUTTI_FAST", "bool", "maybe"], id="a switch"),
        pytest.param(["--nats-url", ""], {}, ["--nats-url", "length >= 1"], id="empty"),
        pytest.param(["--limits", "3"], {}, ["--limits"], id="an unknown flag"),
        pytest.param(["--lim", "3"], {}, ["--lim"], id="an abbreviated flag"),
        pytest.param(["unexpected"], {}, ["unexpected"], id="an unexpected word"),
    ],
)
def test_a_wrong_setting_is_refused_by_name_and_rule(
    argv: list[str], environ: dict[str, str], said: list[str]
) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(Sample, argv, environ)
    for part in said:
        assert part in str(refused.value)


def test_a_setting_without_default_is_required() -> None:
    with pytest.raises(SettingsError, match=r"--token \(or TUTTI_TOKEN\) is required"):
        parse(Demanding, [], {})


def test_an_unknown_variable_is_named_with_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is no error: another service may be meant by it."""
    environ = {"TUTTI_LIMITS": "3", "TUTTI_LIMIT": "4", "PATH": "x"}
    assert unknown_variables(Sample, environ) == {"TUTTI_LIMITS": "TUTTI_LIMIT"}
    assert load(Sample, [], environ, "prog").limit == 4
    assert "prog: TUTTI_LIMITS is no setting" in capsys.readouterr().err


def test_a_command_ends_with_status_2_on_a_wrong_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        load(Sample, ["--limit", "0"], {}, "prog")
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("prog: --limit: ")


def test_help_shows_rule_default_and_description(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        load(Sample, ["--help"], {}, "prog")
    assert end.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "how many [int >= 1, <= 10; default: 3]" in shown


def test_the_documentation_lists_every_setting() -> None:
    listed = {setting.flag: setting for setting in describe(Sample)}
    assert set(listed) >= {"--nats-url", "--limit", "--fast", "--names"}
    assert listed["--limit"].variable == "TUTTI_LIMIT"
    assert listed["--mode"].rule == "a | b"
    assert listed["--names"].default == "tutti,volcano"
    assert {"--kubeconfig", "--context"} <= {setting.flag for setting in describe(KubeSettings)}
