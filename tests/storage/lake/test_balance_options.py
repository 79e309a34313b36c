"""Rules of balance as text: what they say, and what is wrong with them."""

from __future__ import annotations

import pytest

from triplewire.model.errors import InputError
from triplewire.storage.lake.balance import BalanceSettings, LoadCriterion, parse_balance


def test_what_is_not_said_is_as_usual() -> None:
    assert parse_balance([]) == BalanceSettings()


def test_every_rule_can_be_said() -> None:
    texts = ["strategy=absolute", "zones=64", "criteria=quads:2:0.5,reads:4:0", "estimates=10,2.5", "cut=centroid"]
    found = parse_balance([*texts, "dimensions=turn", "transformation=reversed", "smallest=100"])
    assert found == BalanceSettings(
        strategy="absolute",
        zones=64,
        criteria=(LoadCriterion("quads", 2, 0.5), LoadCriterion("reads", 4, 0)),
        estimates=(10.0, 2.5),
        cut="centroid",
        dimensions="turn",
        transformation="reversed",
        smallest=100,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zone=5", "'zone=5' is no rule of balance; say NAME=VALUE with one of strategy, zones"),
        ("zones", "is no rule of balance"),
        ("zones=many", "'many' is not a whole number"),
        ("estimates=1,x", "'1,x' is not numbers with commas"),
        ("strategy=best", "there is no strategy 'best'; there are static, absolute, relative"),
        ("criteria=quads:0.5:1.5", "K1=0.5 is under K2=1.5"),
        ("criteria=water", "there is no criterion 'water'; there are quads, bytes, reads"),
        ("cut=half", "there is no cut rule 'half'"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        parse_balance([text])
