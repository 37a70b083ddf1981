"""Everything that parses input, each with what it may raise and how its input is made."""

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from services.admission_webhook.core import fit_advice
from services.admission_webhook.group_file import parsed_groups
from services.controller.core.hypernodes import ConfigurationError as BadDiscovery
from services.controller.core.hypernodes import counted, discover, topologies
from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.framework.arguments import ConfigurationError
from shared.admission import admission
from shared.admission.resource_groups import BadConfiguration
from shared.admission.review import BadReview, decode_review, encode_answer
from shared.contracts import annotations, codec
from shared.dialects.discovery import kinds
from shared.dialects.field_checks import natural
from shared.dialects.protocol import Kind, ReadingContext
from shared.kinds import cron_schedule
from shared.kinds.catalogue import CATALOGUE
from shared.kinds.durations import duration_ms
from shared.kinds.hypernode import HyperNode
from shared.kinds.patterns import Pattern, PatternError
from shared.kube.decoding import Bookmark, KindDecoder, Undecodable, shallow
from shared.kube.errors import ApiError, MalformedAnswer
from shared.kube.http1 import parse_answer
from shared.kube.objects import Pod
from shared.kube.quantities import INT64_MAX, QuantityError, amount, format_quantity
from shared.kube.resources import Resource
from shared.yaml_documents import InvalidYaml, read_document
from tests.fuzz.damaging import TooDeep, broken, damaged, lengthened
from tests.fuzz.shaping import WORDS, Shaper
from tests.services.admission_webhook.reviews import RESOURCES, reference_objects, volcano_queue
from tests.shared.contracts.samples import SAMPLES

#: Makes one input; the number multiplies how often something in it is repeated.
Make = Callable[[Random, int], bytes]


class Target(NamedTuple):
    """A parser under test."""

    name: str
    make: Make
    #: Parses; raises AssertionError when the result is not what it must be.
    feed: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...] = ()
    #: Read by PyYAML, which takes its time: files of administrators, tried small.
    is_yaml: bool = False


def _constants() -> Iterator[str]:
    """The keys of annotations; a constant may have several."""
    for name, value in vars(annotations).items():
        if name.isupper():
            yield from (value,) if isinstance(value, str) else value


NOTES: Final = (
    *sorted(_constants()),
    *("volcano.sh/hierarchy", "volcano.sh/preemptable", "volcano.sh/cooldown-time", "a.b/c"),
)
CONTEXT: Final = ReadingContext(scheduler_names=frozenset({"", "tutti", "volcano", "default"}))
KNOWN: Final = reference_objects(
    volcano_queue("a", state="Open"), volcano_queue("default", parent="root", state="Open")
)
_ZONES: Final = (UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Lord_Howe"))
_INSTANT: Final = datetime(2026, 3, 29, 0, 59, 30, tzinfo=UTC)
_CONFIGURATIONS: Final = (
    {"actions": "enqueue, allocate, preempt", "tiers": [{"plugins": [{"name": "gang"}]}]},
    {
        "actions": "allocate",
        "tiers": [
            {
                "plugins": [
                    {"name": "binpack", "arguments": {"binpack.cpu": 5, "binpack.weight": 2}}
                ]
            },
            {"plugins": [{"name": "nodeorder"}, {"name": "capacity", "enabledReclaimable": False}]},
        ],
        "configurations": [{"name": "enqueue", "arguments": {"overcommit-factor": "1.2"}}],
    },
)
_GROUPS: Final = {
    "resourceGroups": [
        {
            "resourceGroup": "cpu",
            "object": {"key": "namespace", "value": ["a"]},
            "schedulerName": "volcano",
            "tolerations": [{"key": "x"}],
            "labels": {"a": "b"},
            "affinity": '{"nodeAffinity":{}}',
        }
    ]
}
_DISCOVERY: Final = {
    "networkTopologyDiscovery": [
        {
            "source": "label",
            "enabled": True,
            "config": {"networkTopologyTypes": {"t": [{"nodeLabel": "a"}, {"nodeLabel": "b"}]}},
        }
    ]
}
_ANSWERS: Final = (
    b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
)


def targets() -> Iterator[Target]:
    """All of them."""
    yield from _reviews()
    yield from _watches()
    yield from _messages()
    yield from _texts()
    yield from _files()
    yield Target(
        "answers of the API server", _bytes_like(_ANSWERS), parse_answer, (MalformedAnswer,)
    )


# ---------------------------------------------------------------- what makes inputs


def _json_like(make: Callable[[Random], Any]) -> Make:
    """A value as JSON: now and then as it is, mostly damaged."""

    def made(random: Random, bulk: int) -> bytes:
        value = make(random)
        how = random.random()
        if how > 0.1:
            value = damaged(value, random, bulk=bulk)
        body = msgspec.json.encode(value, enc_hook=_deep_json)
        return broken(body, random) if how > 0.8 else body

    return made


def _msgpack_like(make: Callable[[Random], Any]) -> Make:
    """The same as MessagePack."""

    def made(random: Random, bulk: int) -> bytes:
        value = make(random)
        how = random.random()
        if how > 0.1:
            value = damaged(value, random, bulk=bulk)
        body = msgspec.msgpack.encode(value, enc_hook=_deep_msgpack)
        return broken(body, random) if how > 0.7 else body

    return made


def _text_like(*examples: str) -> Make:
    """Words, an example, or one grown long; any of them broken."""

    def made(random: Random, bulk: int) -> bytes:
        text = random.choice((*examples, *examples, *WORDS))
        if random.random() < 0.4:
            text = lengthened(text, random, bulk)
        body = text.encode("utf-8", "surrogatepass")
        return broken(body, random) if random.random() < 0.6 else body

    return made


def _bytes_like(examples: tuple[bytes, ...]) -> Make:
    def made(random: Random, bulk: int) -> bytes:
        del bulk
        return broken(random.choice(examples), random)

    return made


def _deep_json(value: object) -> object:
    return value.json() if isinstance(value, TooDeep) else _unknown(value)


def _deep_msgpack(value: object) -> object:
    return value.msgpack() if isinstance(value, TooDeep) else _unknown(value)


def _unknown(value: object) -> object:
    raise TypeError(f"nothing that a target makes: {type(value)}")


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


# ---------------------------------------------------------------- targets


def _reviews() -> Iterator[Target]:
    structs = {(one.resource.group, one.resource.plural): one.struct for one in CATALOGUE}
    for resource in RESOURCES.values():
        shape = structs.get((resource.group, resource.plural), Pod)
        yield Target(
            f"reviews of {resource.title}",
            _json_like(partial(_a_review, resource, shape, Shaper(NOTES))),
            _review,
            # `serving` answers all of these with 400.
            (BadReview, msgspec.DecodeError, UnicodeDecodeError),
        )


def _a_review(resource: Resource, shape: Any, shaper: Shaper, random: Random) -> Any:
    operation = random.choice(("CREATE", "CREATE", "UPDATE", "DELETE"))
    group, plural = resource.group, resource.plural
    return {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "u",
            "resource": {"group": group, "version": resource.version, "resource": plural},
            "name": random.choice(WORDS),
            "namespace": "a",
            "operation": operation,
            "object": shaper.of(shape, random),
            "oldObject": shaper.of(shape, random) if operation != "CREATE" else None,
            "dryRun": random.random() < 0.5,
        },
    }


def _review(body: bytes) -> object:
    try:
        return _answered(body)
    except RecursionError:
        return _answered(shallow(body))


def _answered(body: bytes) -> bytes:
    """What `serving` answers to both questions, without its waiting."""
    request = decode_review(body)
    asked = admission.subject_of(request, KNOWN)
    if asked is None:
        return b""
    verdict = admission.validate(asked)
    if verdict.allowed:
        question = fit_advice.fit_request(asked, request)
        assert question is None or codec.decode_fit_request(codec.encode(question)) == question
    answer = encode_answer(request.uid, verdict)
    return answer + encode_answer(request.uid, admission.apply_defaults(asked))


def _watches() -> Iterator[Target]:
    for kind in kinds():
        make = partial(_an_event, kind.decoded, Shaper(NOTES))
        feed = partial(_watched, KindDecoder(kind.decoded), kind)
        title = f"watch lines of {kind.resource.title} as {kind.neutral}"
        yield Target(title, _json_like(make), feed, (ApiError, msgspec.DecodeError))
    for one in CATALOGUE:
        make = partial(_an_event, one.struct, Shaper(NOTES))
        whole = KindDecoder(one.struct).change
        title = f"watch lines of {one.resource.title}, whole"
        yield Target(title, _json_like(make), whole, (ApiError, msgspec.DecodeError))


def _an_event(shape: Any, shaper: Shaper, random: Random) -> Any:
    kind = random.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"))
    found = shaper.of(shape, random)
    metadata = found.setdefault("metadata", {})
    metadata["uid"] = metadata.get("uid") or "u"
    metadata["resourceVersion"] = "17"
    return {"type": kind, "object": found}


def _watched(decoder: KindDecoder[Any], kind: Kind, line: bytes) -> object:
    change = decoder.change(line)
    if isinstance(change, Bookmark):
        return change
    found = change.object
    if found.metadata.resource_version != "17":
        return None  # The API server's own: no other client writes it.
    made = kind.neutral_object(found, CONTEXT)
    # What was read travels: it must be what CLUSTER's readers decode.
    kept = codec.encode(made)
    return None if made is None else msgspec.msgpack.decode(kept, type=type(made))


def _messages() -> Iterator[Target]:
    shaper = Shaper()
    for name in sorted(one for one in vars(codec) if one.startswith("decode_")):
        decode: Callable[[bytes], object] = getattr(codec, name)
        make = partial(_a_message, [one for one in SAMPLES if _reads(decode, one)], shaper)
        feed = partial(_decoded_again, decode)
        yield Target(f"messages, {name}", _msgpack_like(make), feed, (msgspec.DecodeError,))


def _reads(decode: Callable[[bytes], object], sample: msgspec.Struct) -> bool:
    """Whether a decoder is for messages such as this."""
    try:
        return decode(codec.encode(sample)) == sample
    except msgspec.DecodeError:
        return False


def _a_message(samples: list[msgspec.Struct], shaper: Shaper, random: Random) -> Any:
    sample = random.choice(samples or SAMPLES)
    if random.random() < 0.5:
        return msgspec.msgpack.decode(codec.encode(sample))
    return shaper.of(type(sample), random)


def _decoded_again(decode: Callable[[bytes], object], body: bytes) -> object:
    message = decode(body)
    assert decode(codec.encode(message)) == message, "what was read is not what would be written"
    return message


def _texts() -> Iterator[Target]:
    yield Target("quantities", _text_like("1.5Gi", "100m", "2e3"), _quantity, (QuantityError,))
    yield Target("durations", _text_like("1h30m", "300ms"), _duration)
    yield Target("numbers in annotations", _text_like("17"), lambda body: natural(_text(body)))
    yield Target(
        "schedules",
        _text_like("*/5 1-2,3 ? jan-mar mon", "@every 1h30m", "0 0 29 2 *"),
        _schedule,
        (cron_schedule.ScheduleError,),
    )
    yield Target("patterns", _text_like("^node-[0-9]+$", "(a|b)*c"), _pattern, (PatternError,))
    yield Target("HyperNodes that choose", _json_like(Shaper(NOTES).maker(HyperNode)), _hypernode)


def _quantity(body: bytes) -> object:
    text = _text(body)
    for resource in ("cpu", "memory", "nvidia.com/gpu"):
        found = amount(resource, text)
        assert 0 <= found <= INT64_MAX
        assert amount(resource, format_quantity(resource, found)) == found
    return None


def _duration(body: bytes) -> object:
    found = duration_ms(_text(body))
    assert found is None or found >= 0
    return found


def _schedule(body: bytes) -> object:
    schedule = cron_schedule.parse(_text(body))
    for zone in _ZONES:
        following = schedule.next_after(_INSTANT, zone)
        assert following is None or following > _INSTANT
    return None


def _pattern(body: bytes) -> object:
    return Pattern(_text(body)).among(WORDS)


def _hypernode(body: bytes) -> object:
    try:
        found = KindDecoder(HyperNode).object(body)
    except msgspec.DecodeError:
        return None
    labels = {word: dict.fromkeys(WORDS[:9], word) for word in WORDS}
    return None if isinstance(found, Undecodable) else counted([found], labels)


def _files() -> Iterator[Target]:
    yield Target(
        "volcano-scheduler.conf",
        _json_like(_one_of(_CONFIGURATIONS)),
        lambda body: parse_configuration(_text(body)),
        (ConfigurationError,),
        is_yaml=True,
    )
    yield Target(
        "admission.conf",
        _json_like(_one_of((_GROUPS,))),
        _groups,
        (BadConfiguration,),
        is_yaml=True,
    )
    yield Target(
        "volcano-controller.conf",
        _json_like(_one_of((_DISCOVERY,))),
        _discovery,
        (BadDiscovery,),
        is_yaml=True,
    )


def _one_of(examples: tuple[Any, ...]) -> Callable[[Random], Any]:
    return lambda random: copy.deepcopy(random.choice(examples))


def _groups(body: bytes) -> object:
    groups = parsed_groups(_text(body))
    return [one.holds("a", {"volcano.sh/resource-group": "cpu"}) for one in groups]


def _discovery(body: bytes) -> object:
    try:
        document: object = read_document(_text(body))
    except InvalidYaml:
        return None
    given = topologies(document)
    return None if given is None else discover(given, {"n": {"a": "1", "b": "n"}})
