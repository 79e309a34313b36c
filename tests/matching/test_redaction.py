"""Tables of entries as somebody sees them: each row as the visibility says of its event."""

from __future__ import annotations

import pyarrow as pa
import pytest

from triplewire.matching.visibility import redact_entries
from triplewire.security.visibility import ALL_VISIBLE, NONE_VISIBLE, PatternSet, Visibility

P, Q = '<urn:a>\t<urn:p>\t"1"', '<urn:a>\t<urn:q>\t"2"'
ROWS = [
    {"position": 1, "stream": "home", "event": "urn:1", "text": f"{P}\n{Q}"},
    {"position": 2, "stream": "city", "event": "urn:2", "text": P},
    {"position": 3, "stream": "city", "event": "urn:3", "text": Q},
    {"position": 4, "stream": "home", "event": "urn:4", "text": Q},
]
SCHEMA = pa.schema([("position", pa.int64()), *((name, pa.string()) for name in ("stream", "event", "text"))])
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)


@pytest.mark.parametrize(
    "visibility",
    [
        ALL_VISIBLE,
        NONE_VISIBLE,
        Visibility(streams=PatternSet.of(["home"])),
        Visibility(graphs=PatternSet.of(["*"], ["<urn:2>", "<urn:4>"])),
        Visibility(predicates=PatternSet.of(["*"], ["<urn:q>"])),
        Visibility(predicates=PatternSet.of(["<urn:q>"])),
        Visibility(streams=PatternSet.of(["c*"]), predicates=PatternSet.of(["<urn:q>"])),
    ],
)
def test_each_row_is_what_the_visibility_leaves_of_it(visibility: Visibility) -> None:
    seen = ((row, visibility.redacted(str(row["stream"]), str(row["event"]), str(row["text"]))) for row in ROWS)
    found = redact_entries(TABLE, visibility)
    assert found.to_pylist() == [{**row, "text": text} for row, text in seen if text is not None]
    assert found.schema == SCHEMA
    assert redact_entries(TABLE.slice(0, 0), visibility).num_rows == 0


def test_a_table_that_is_all_visible_is_the_same() -> None:
    assert redact_entries(TABLE, Visibility(predicates=PatternSet.of(["*"], ["<urn:r>"]))) is TABLE
