"""No line of log holds a secret, whichever library wrote it there."""

import logging

import pytest

from shared.runtime.logs import HIDDEN, configure, without_secrets

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"
SECRETS = {
    "nats://ann:hunter2@nats:4222": "hunter2",
    'the server "nats://s3cr3t@nats:4222" is gone': "s3cr3t",
    "Authorization: Bearer c2VjcmV0LXRva2Vu": "c2VjcmV0",
    f"401 for token {TOKEN}": TOKEN,
    f"credentials {SEED} are refused": SEED,
    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----": "MHcCAQEE",
    "    client-key-data: LS0tLS1CRUdJTg==": "LS0tLS1",
}
HARMLESS = (
    "decided default/train: 3 bindings, attempt 1",
    "https://127.0.0.1:6443/api/v1/pods?limit=500",
    "the bearer of bad news",
    "mail ann@example.org",
    "SUITE and SUBSTITUTE are words",
)


@pytest.mark.parametrize(("text", "secret"), SECRETS.items())
def test_a_secret_is_hidden_and_the_rest_stays(text: str, secret: str) -> None:
    shown = without_secrets(text)
    assert secret not in shown
    assert HIDDEN in shown
    assert shown.split(HIDDEN)[0] == text[: len(shown.split(HIDDEN)[0])]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_lines_fields_and_exceptions_are_written_without_secrets(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(
        "s",
        "i",
        log_format="json" if log_format == "json" else "text",
        level="info",
    )
    log = logging.getLogger("a")
    for text in SECRETS:
        log.info("%s", text, extra={"field": text})
        log.error("it failed", exc_info=ValueError(text))
    written = capsys.readouterr().err
    assert written.count("it failed") == len(SECRETS)
    for secret in SECRETS.values():
        assert secret not in written
