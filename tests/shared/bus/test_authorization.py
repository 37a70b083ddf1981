"""Keys of users, and what the server knows of them."""

import pytest

from shared.bus.authorization import BadSeed, authorization, new_seed, public_key
from shared.bus.permissions import User


def test_every_seed_is_different_and_yields_its_public_key() -> None:
    one, other = new_seed(), new_seed()

    assert one.startswith("SU")
    assert public_key(one) != public_key(other)
    assert public_key(f"{one}\n") == public_key(one)
    assert public_key(one).startswith("U")


@pytest.mark.parametrize(
    "text",
    ["", "SU", "no seed at all", "SUAöö", pytest.param(new_seed()[:-1], id="one letter short")],
)
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(BadSeed):
        public_key(text)


def test_the_servers_file_holds_public_keys_and_no_seed() -> None:
    seed = new_seed()
    user = User(name="one", publish=("a",), subscribe=(), answers=False)

    text = authorization([user], {"one": public_key(seed)})

    assert public_key(seed) in text
    assert seed not in text
    assert "allow_responses" not in text
