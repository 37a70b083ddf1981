"""Quantities, against answers of k8s.io/apimachinery v0.36.3 and against exact fractions."""

from contextlib import suppress
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.kube.objects import Quantity
from shared.kube.quantities import INT64_MAX, QuantityError, amount, cpu_milli, format_quantity

# Text, Value() and MilliValue() as apimachinery's ParseQuantity gave them.
GOLDEN = [
    ("1", 1, 1000),
    ("100m", 1, 100),
    ("1.5Gi", 1610612736, 1610612736000),
    ("1e3", 1000, 1000000),
    ("1E3", 1000, 1000000),
    ("0.5", 1, 500),
    (".5", 1, 500),
    ("5.", 5, 5000),
    ("1n", 1, 1),
    ("1u", 1, 1),
    ("999999999n", 1, 1000),
    ("1.0000000001", 2, 1001),
    ("0.1Ki", 103, 102400),
    ("12e-2", 1, 120),
    ("+3", 3, 3000),
    ("-0", 0, 0),
    ("16Gi", 17179869184, 17179869184000),
    ("1k", 1000, 1000000),
    ("1M", 1000000, 1000000000),
    ("1G", 1000000000, 1000000000000),
    ("1T", 1000000000000, 1000000000000000),
    ("1P", 1000000000000000, 1000000000000000000),
    ("0.0009", 1, 1),
    ("1e-9", 1, 1),
    ("2.5Mi", 2621440, 2621440000),
    ("1500000u", 2, 1500),
    ("3.3333", 4, 3334),
    ("007", 7, 7000),
    ("1e-400", 1, 1),
]

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
EXPONENTS = {"e3": 3, "E-2": -2, "e+1": 1}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
SUFFIXES = {suffix: Fraction(10) ** power for suffix, power in (DECIMAL | EXPONENTS).items()}
SUFFIXES |= {suffix: Fraction(2) ** power for suffix, power in BINARY.items()}


@pytest.mark.parametrize(("text", "value", "milli"), GOLDEN)
def test_a_quantity_means_what_apimachinery_says(text: str, value: int, milli: int) -> None:
    assert amount("memory", text) == value
    assert amount("cpu", text) == milli
    assert cpu_milli(text) == milli


@pytest.mark.parametrize(
    ("number", "value"), [(4, 4), (0.5, 1), (2.0, 2), (1e20, None), (0, 0), (-1, None)]
)
def test_a_json_number_is_read_as_its_text(number: Quantity, value: int | None) -> None:
    if value is None:
        with pytest.raises(QuantityError):
            amount("memory", number)
    else:
        assert amount("memory", number) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", "1 ", " 1", "1.1.M", "1+1", "0.1mi", "1i", "aoeu", ".5i", "3e", "1e+", "--1", "+",
     "Gi", ".", "1,5", "1_000", "0x10", "٣", "NaN", "inf", "1K", "1" * 129, "1\n"],
)  # fmt: skip
def test_garbage_is_refused_with_the_text_and_the_rule(text: str) -> None:
    with pytest.raises(QuantityError, match="is no quantity") as refusal:
        amount("memory", text)
    assert repr(text[:128]) in str(refusal.value)


@pytest.mark.parametrize("text", ["-1", "-100m", "-1Gi", "-0.000000001"])
def test_a_negative_amount_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="is negative"):
        amount("memory", text)


@pytest.mark.parametrize(
    "text", ["8Ei", "9223372036854775808", "1e19", "1e999999999999", "9" * 100, "10E"]
)
def test_what_does_not_fit_in_63_bits_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="too large"):
        amount("memory", text)


def test_the_largest_amount_fits_and_its_milli_do_not() -> None:
    assert amount("memory", str(INT64_MAX)) == INT64_MAX
    with pytest.raises(QuantityError, match="too large"):
        amount("cpu", str(INT64_MAX))


@given(
    whole=st.integers(0, 10**20),
    part=st.text("0123456789", max_size=12),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    milli=st.booleans(),
)
def test_every_quantity_is_its_exact_value_rounded_up(
    whole: int, part: str, suffix: str, milli: bool
) -> None:
    exact = (Fraction(whole) + Fraction(int(part or "0"), 10 ** len(part))) * SUFFIXES[suffix]
    expected = ceil(exact * (1000 if milli else 1))
    text = f"{whole}.{part}{suffix}"
    if expected > INT64_MAX:
        with pytest.raises(QuantityError, match="too large"):
            amount("cpu" if milli else "memory", text)
    else:
        assert amount("cpu" if milli else "memory", text) == expected


@given(text=st.text(max_size=40))
def test_any_text_is_an_amount_or_a_quantity_error(text: str) -> None:
    with suppress(QuantityError):
        assert 0 <= amount("memory", text) <= INT64_MAX


@given(
    resource=st.sampled_from(
        ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "pods", "x/y"]
    ),
    value=st.integers(0, INT64_MAX),
    power=st.integers(0, 62),
)
def test_what_is_formatted_reads_back_as_the_same_amount(
    resource: str, value: int, power: int
) -> None:
    for number in (value, value >> power << power):
        assert amount(resource, format_quantity(resource, number)) == number


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("cpu", 0, "0"),
        ("memory", 16 * 2**30, "16Gi"),
        ("memory", 2**30 + 1, "1073741825"),
        ("memory", 0, "0"),
        ("ephemeral-storage", 2**20, "1Mi"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amounts_are_spelt_as_people_spell_them(resource: str, value: int, text: str) -> None:
    assert format_quantity(resource, value) == text


@pytest.mark.parametrize("prefix", ["", "requests.", "limits."])
@pytest.mark.parametrize(
    ("resource", "text", "found"),
    [
        ("cpu", "1500m", 1_500),
        ("memory", "512Mi", 512 << 20),
        ("ephemeral-storage", "1Gi", 1 << 30),
        ("hugepages-2Mi", "4Mi", 4 << 20),
        ("nvidia.com/gpu", "8", 8),
    ],
)
def test_the_keys_of_a_quota_have_the_units_of_their_resource(
    prefix: str, resource: str, text: str, found: int
) -> None:
    assert amount(prefix + resource, text) == found
    assert format_quantity(prefix + resource, found) == text
