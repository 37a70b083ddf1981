"""Ids and subjects are safe whatever users write."""

import pytest

from shared.contracts import subjects
from shared.contracts.identity import id_of_key, nameless_gang_id, safe_token
from shared.model.gang_keys import UNNAMED
from shared.model.objects import GROUP_NAME_SCOPE

UUID = "5f0e8d5e-9d0b-4c8b-8f5e-0a6f1f4f2b11"
HOSTILE = (
    *("", " ", "a b", ".", "..", "a.b", "a.*", "*", ">", "a>", "\n", "a\r\nPUB x 0\r\n", "\0"),
    *("-", "-a", "a-", "A", "ü", "\ud800", "x" * 64, "x" * 100_000, "a/b", "a,b", "a=b", "%2e"),
)
BUILDERS = (
    subjects.act,
    subjects.note,
    subjects.verdict,
    subjects.wanted,
    subjects.provisioning,
    lambda gang_id: subjects.outcome(gang_id, 7),
)


@pytest.mark.parametrize("text", [UUID, "a" * 32, "owner-31", "7"])
def test_a_safe_text_is_its_own_token(text: str) -> None:
    assert safe_token(text) == text


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
@pytest.mark.parametrize("scope", [GROUP_NAME_SCOPE, "koordinator", *sorted(UNNAMED)])
def test_every_subject_of_a_gang_is_valid_whatever_its_key(scope: str, text: str) -> None:
    for gang_id in (id_of_key((scope, "ns", text)), safe_token(text)):
        for build in BUILDERS:
            assert subjects.is_valid(build(gang_id))
            assert f".{gang_id}" in build(gang_id), "an id is a token as it is"


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:20]))
def test_an_id_in_an_old_log_that_is_no_token_has_a_valid_subject(text: str) -> None:
    """Older versions stored records under `a.*`, which the server takes for a name."""
    if text:
        assert all(subjects.is_valid(build(text)) for build in BUILDERS)


def test_gangs_of_different_keys_have_different_ids() -> None:
    keys = [
        (scope, namespace, text)
        for scope in (GROUP_NAME_SCOPE, "koordinator", "owner")
        for namespace in ("prod", "evil")
        for text in (*HOSTILE, UUID, nameless_gang_id("owner", "prod", UUID))
    ]
    assert len({id_of_key(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    "subject", ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "a\r\nb", "ü", "x" * 513]
)
def test_what_nats_would_refuse_or_misunderstand_is_no_subject(subject: str) -> None:
    assert not subjects.is_valid(subject)
