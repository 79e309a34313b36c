"""The bounded cache drops what was used least recently."""

from __future__ import annotations

import pytest

from triplewire.model.cache import BoundedCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache = BoundedCache[str, int](2)
    assert cache.put("a", 1) == cache.put("b", 2) == []
    assert cache.get("a") == 1
    assert cache.put("c", 3) == [2]
    assert "b" not in cache
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_values_are_measured() -> None:
    cache = BoundedCache[str, bytes](10, size=len)
    cache.put("a", bytes(4))
    cache.put("b", bytes(4))
    assert cache.put("a", bytes(6)) == []
    assert cache.put("c", bytes(5)) == [bytes(4), bytes(6)]
    assert cache.put("d", bytes(11)) == [bytes(5), bytes(11)]
    assert len(cache) == 0


def test_entries_are_removed() -> None:
    cache = BoundedCache[str, int](3)
    for number, key in enumerate("abc"):
        cache.put(key, number)
    assert cache.pop("b") == 1
    assert cache.pop("b") is None
    assert cache.pop_oldest() == ("a", 0)
    cache.clear()
    with pytest.raises(KeyError):
        cache.pop_oldest()
