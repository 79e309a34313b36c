"""What every twin of the registry must do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import END
from triplewire.storage.registry.ports import RegistryChange
from triplewire.testing import TWIN_KINDS, Twin, open_twin, publication


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def test_what_is_put_is_there_at_its_position(stores: Twin) -> None:
    value = {"text": "ü", "list": [1, 2.5, None], "deep": {"yes": True}}
    assert stores.registry.put([("ontology", "a", value)]) == [1]
    assert stores.registry.get("ontology", "a") == RegistryChange(1, "ontology", "a", value)


def test_nothing_is_there_under_another_kind_or_key(stores: Twin) -> None:
    stores.registry.put([("ontology", "a", {})])
    assert stores.registry.get("stream", "a") is None
    assert stores.registry.get("ontology", "b") is None
    assert stores.registry.list("stream") == []


def test_a_page_is_what_comes_after_a_position(stores: Twin) -> None:
    stores.registry.put([("kind", key, {}) for key in "edcba"])
    stores.registry.put([("other", "a", {}), ("kind", "d", {"again": 1}), ("kind", "c", None)])

    def keys(**asked: Any) -> str:  # noqa: ANN401 - what `list` takes
        return "".join(each.key for each in stores.registry.list("kind", **asked))

    assert keys() == "ebad"
    assert keys(limit=2) == "eb"
    assert keys(after=1, limit=2) == "ba"
    assert keys(after=5) == "d"
    assert keys(after=7) == keys(limit=0) == ""
    assert keys(below="d") == "ba"
    assert keys(below="d", limit=1) == "b"
    assert keys(below="d", after=4) == "a"
    assert keys(below="a") == ""


def test_keys_are_in_the_order_of_code_points(stores: Twin) -> None:
    keys = ["B", "a", "é", "\U0001f600", "\uffee"]
    stores.registry.put([("kind", key, {}) for key in keys])
    for below in keys:
        assert {each.key for each in stores.registry.list("kind", below=below)} == {key for key in keys if key < below}


def test_putting_again_replaces(stores: Twin) -> None:
    stores.registry.put([("kind", "a", {"n": 1}), ("kind", "b", {"n": 2})])
    stores.registry.put([("kind", "a", {"n": 3})])
    assert stores.registry.get("kind", "a") == RegistryChange(3, "kind", "a", {"n": 3})
    assert [(each.position, each.key) for each in stores.registry.list("kind")] == [(2, "b"), (3, "a")]


def test_what_was_removed_is_gone_and_can_come_back(stores: Twin) -> None:
    stores.registry.put([("kind", "a", {}), ("kind", "a", None)])
    assert stores.registry.get("kind", "a") is None
    assert stores.registry.list("kind") == []
    stores.registry.put([("kind", "a", {"again": 1})])
    assert stores.registry.get("kind", "a") == RegistryChange(3, "kind", "a", {"again": 1})


def test_removing_what_is_not_there_is_a_change_like_any_other(stores: Twin) -> None:
    assert stores.registry.put([("kind", "a", None)]) == [1]
    assert stores.registry.changes(0, END) == [RegistryChange(1, "kind", "a", None)]


def test_changes_keep_all_that_ever_was(stores: Twin) -> None:
    stores.registry.put([("kind", "a", {"n": 1}), ("kind", "a", {"n": 2}), ("kind", "a", None)])
    assert [each.value for each in stores.registry.changes(0, END)] == [{"n": 1}, {"n": 2}, None]


@pytest.mark.parametrize(
    ("after", "upto", "found"), [(0, END, [1, 3, 4]), (1, 3, [3]), (1, 2, []), (4, END, []), (3, 1, [])]
)
def test_changes_are_open_below_and_closed_above(stores: Twin, after: int, upto: int, found: list[int]) -> None:
    stores.registry.put([("kind", "a", {})])
    stores.log.append([publication(1)])
    stores.registry.put([("kind", "b", {}), ("kind", "c", {})])
    assert [each.position for each in stores.registry.changes(after, upto)] == found


def test_putting_nothing_takes_no_position(stores: Twin) -> None:
    assert stores.registry.put([]) == []
    assert stores.log.head() == 0


def test_what_the_writer_does_to_its_value_afterwards_is_not_seen(stores: Twin) -> None:
    value: dict[str, Any] = {"list": [1]}
    stores.registry.put([("kind", "a", value)])
    value["list"].append(2)
    found = stores.registry.get("kind", "a")
    assert found is not None
    assert found.value == {"list": [1]}


def test_a_value_that_is_not_json_leaves_no_trace(stores: Twin) -> None:
    with pytest.raises(TypeError):
        stores.registry.put([("kind", "a", {}), ("kind", "b", {"no": object()})])
    assert stores.registry.changes(0, END) == []
    assert stores.log.head() == 0


def test_threads_that_put_at_once_get_positions_of_their_own(stores: Twin) -> None:
    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(lambda n: stores.registry.put([("kind", str(n), {"n": n})])[0], range(40)))
    assert sorted(taken) == list(range(1, 41))
    assert {each.position: each.key for each in stores.registry.list("kind")} == {
        at: str(number) for number, at in enumerate(taken)
    }


names = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))


@pytest.mark.parametrize("kind", TWIN_KINDS)
@settings(max_examples=40, deadline=None)
@given(history=st.lists(st.lists(st.tuples(names, st.none() | st.integers(0, 9)), max_size=4), max_size=6))
def test_the_present_is_the_fold_of_all_changes(
    kind: str, history: list[list[tuple[tuple[str, str], int | None]]]
) -> None:
    present: dict[tuple[str, str], int] = {}
    with open_twin(kind) as stores:
        for puts in history:
            stores.registry.put([(*name, None if value is None else {"n": value}) for name, value in puts])
            for name, value in puts:
                present.pop(name, None)
                if value is not None:
                    present[name] = value
        listed = [change for each in "ab" for change in stores.registry.list(each)]
        assert {(each.kind, each.key): (each.value or {})["n"] for each in listed} == present
        assert all(stores.registry.get(each.kind, each.key) == each for each in listed)
        assert [name for name in present if name[0] == "a"] == [("a", each.key) for each in stores.registry.list("a")]
