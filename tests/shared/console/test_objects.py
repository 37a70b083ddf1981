"""The console's types have the names of the API's OpenAPI document."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.api.core.openapi import openapi_document

OBJECTS = Path(__file__).parents[3] / "console" / "src" / "objects.ts"


def _properties(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for one in schema.values():
            yield from _properties(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _properties(one)


def test_every_field_of_the_consoles_types_is_in_the_document() -> None:
    fields = set(re.findall(r"^ +(\w+)\??:", OBJECTS.read_text(), re.MULTILINE))
    assert len(fields) > 50
    assert fields - set(_properties(openapi_document()["components"])) == set()
