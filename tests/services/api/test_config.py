"""The API service's settings: what they accept, and what they refuse."""

import pytest

from services.api.config import ApiSettings
from shared.runtime.settings import SettingsError, parse


@pytest.mark.parametrize(
    "url", ["", "http://jaeger:16686", "https://jaeger.example/", "https://ops.example/jaeger"]
)
def test_jaegers_address_is_one_of_the_web_or_empty(url: str) -> None:
    assert parse(ApiSettings, [f"--jaeger-url={url}"], {}).jaeger_url == url


@pytest.mark.parametrize(
    "url",
    [
        "jaeger:16686",
        "javascript:alert(1)",
        "ftp://jaeger",
        "http://",
        "http:///trace",
        "https://user:word@jaeger",
        "https://jaeger/?a=b",
        "https://jaeger/#a",
        "https://jaeger/ ",
        "https://jaeger\n",
        " https://jaeger",
    ],
)
def test_other_addresses_of_jaeger_are_refused_with_the_setting(url: str) -> None:
    with pytest.raises(SettingsError, match="--jaeger-url"):
        parse(ApiSettings, [f"--jaeger-url={url}"], {})
