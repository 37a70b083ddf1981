"""Whether an answer is what the OpenAPI document says, by the embedded API server's schemas."""

from typing import Any, Final

from tutti.cluster.crds import fit
from tutti.cluster.objects import clone

Json = dict[str, Any]
_REF: Final = "#/components/schemas/"


def violations(document: Json, kind: str, answer: Json) -> list[str]:
    """Fields of an answer that the document does not have, and broken rules; in words."""
    schemas: Json = document["components"]["schemas"]
    named = [name for name in schemas if name.endswith(f".{kind}")]
    assert len(named) == 1, f"{kind} is in the document: {named}"
    schema = _inlined(schemas[named[0]], schemas)
    # Inside a field: the root's own fields are checked, too.
    whole: Json = {"answer": clone(answer)}
    unknown, broken = fit({"type": "object", "properties": {"answer": schema}}, whole)
    return [*unknown, *(str(one) for one in broken)]


def _inlined(schema: Any, schemas: Json) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, schemas) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(schemas[schema["$ref"].removeprefix(_REF)], schemas)
    found = {key: _inlined(value, schemas) for key, value in schema.items()}
    if found.get("additionalProperties") == {}:
        found["additionalProperties"] = True
    if found == {"type": "object"}:
        found["x-kubernetes-preserve-unknown-fields"] = True
    return found
