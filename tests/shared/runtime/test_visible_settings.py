"""Settings as they are visible_settings to operators."""

import msgspec

from services.binder.config import BinderSettings
from shared.runtime.logs import HIDDEN
from shared.runtime.settings import visible_settings


class _Settings(msgspec.Struct):
    nats_url: str = "nats://me:hunter2@one:4222,nats://you:hunter3@two:4222"
    names: tuple[str, ...] = ("a", "b")
    password: str = "hunter4"
    api_token: str = ""
    secret_file: str = "/run/secrets/key"
    seconds: float = 1.5


def test_visible_settings_contain_no_secrets() -> None:
    found = visible_settings(_Settings())
    assert "hunter" not in str(found)
    assert found == {
        "nats_url": f"nats://{HIDDEN}@one:4222,nats://{HIDDEN}@two:4222",
        "names": "a,b",
        "password": HIDDEN,
        "api_token": "",
        "secret_file": "/run/secrets/key",
        "seconds": "1.5",
    }


def test_every_setting_of_a_service_is_visible() -> None:
    found = visible_settings(BinderSettings(nats_url="nats://user:pass@host:1"))
    assert set(found) == set(BinderSettings.__struct_fields__)
    assert found["nats_url"] == f"nats://{HIDDEN}@host:1"
    assert found["posts_max"] == "32"
