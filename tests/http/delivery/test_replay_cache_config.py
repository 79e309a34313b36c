"""What an edge is to remember, as settings say it."""

from __future__ import annotations

from math import inf

import pytest

from triplewire.http.delivery.replay_cache import REPLAY_CACHE_BYTES, ReplayCacheConfig
from triplewire.model.errors import BadRequest

MB = 1024 * 1024


@pytest.mark.parametrize(
    ("texts", "size", "age"),
    [
        ((), REPLAY_CACHE_BYTES, inf),
        (("64MB",), 64 * MB, inf),
        (("64MB", "30s"), 64 * MB, 30.0),
        (("home=512kB",), 512 * 1024, inf),
        (("home=1GB", "2MB"), 2 * MB, inf),
        (("home=2m", "10s"), REPLAY_CACHE_BYTES, 120.0),
        (("home=0",), 0, inf),
        (("0",), 0, inf),
        (("other=0", "other=1h"), REPLAY_CACHE_BYTES, inf),
    ],
)
def test_of_a_stream_by_name_or_as_of_all(texts: tuple[str, ...], size: int, age: float) -> None:
    recall = ReplayCacheConfig.parsed(texts)
    assert (recall.size_of("home"), recall.age_of("home")) == (size, age)


@pytest.mark.parametrize("text", ["", "10", "10mb", "home=", "=10s", "10s=home", "-1s", "1.5MB", "home=10 s"])
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(BadRequest, match="give 64MB"):
        ReplayCacheConfig.parsed([text])
