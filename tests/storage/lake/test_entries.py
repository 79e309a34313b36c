"""Entries of the lake: events as they were, in pages of any size, from files in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.lake.test_delta import entries
from triplewire.model import MATCHED_COLUMNS, Event, EventHeaders
from triplewire.rdf.headers import extensions_to_json
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LAKE_ENTRIES, LakeEntries
from triplewire.storage.lake.maintenance import MaintenanceContext, compact
from triplewire.storage.lake.ports import CommitBatch, DataFile, Snapshot, TableChange, VersionOrTime
from triplewire.storage.lake.zones import ZoneLayout, ZoneLayoutStore

TERMS = (
    "<urn:a>",
    '"plain"',
    '"tab\\t\\"quoted\\" \\\\ é 𝄞\\n"@en',
    '"007"^^<http://www.w3.org/2001/XMLSchema#integer>',
)

LARGE = {"X-Large": "x" * 1_000}
EXTENSIONS = st.dictionaries(
    st.sampled_from(["X-One", "Relay-Path", "geo", "X.2"]), st.sampled_from(["", "a", 'b "c" \\', "é, 𝄞", "null"])
)


def said(number: int, size: int = 1) -> Event:
    lines = [f"<urn:s{quad % 2}>\t<urn:p{-quad}>\t{TERMS[(number + quad) % 4]}" for quad in range(1 + number % 3)]
    others = {"Relay-Path": f"a/b, c/{number}"} if number % 2 else {}
    text = "\n".join([*lines, f'<urn:s>\t<urn:long>\t"{"x" * size}"'])
    return Event(f"urn:event:{number}", text, EventHeaders(extensions=others))


def stored(folder: Path, files: Sequence[Sequence[int]], size: int = 1) -> DeltaLake:
    """A lake with a file for each list of positions."""
    lake = DeltaLake(folder)
    for number, positions in enumerate(files):
        lake.commit(CommitBatch("q", number, max(positions)), [written(folder, positions, size)])
    return lake


def written(folder: Path, positions: Sequence[int], size: int = 1) -> DataFile:
    return FileWriter(folder).write(rows(positions, size))


def rows(positions: Sequence[int], size: int = 1) -> pa.Table:
    return pa.concat_tables([entries(said(each, size), first=each) for each in positions])


def paged(lake: LakeEntries, after: int, upto: int, limit: int, predicates: Sequence[str] = ()) -> pa.Table:
    """All pages, one after the other."""
    found = [LAKE_ENTRIES.empty_table()]
    while after < upto:
        page, reached = lake.page(after, upto, limit, predicates)
        assert page.num_rows <= limit
        assert after < reached <= upto
        found.append(page)
        after = reached
    return pa.concat_tables(found)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("files", [[[1, 2, 5, 6, 9]], [[1], [2, 5], [6, 9]], [[5, 6], [1, 9], [2]]])
def test_events_come_back_as_they_were(tmp_path: Path, files: list[list[int]], limit: int) -> None:
    lake, everything = LakeEntries(stored(tmp_path, files)), rows([1, 2, 5, 6, 9]).select(MATCHED_COLUMNS)
    for after in range(11):
        for upto in (after, 5, 7, 10):
            found = paged(lake, after, upto, limit).to_pylist()
            assert found == [row for row in everything.to_pylist() if after < row["position"] <= upto]


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize(
    "names", [["long"], ["p0"], ["p-1"], ["p-2", "p-1"], ["long", "p0", "p-2"], ["none"], ["long", "none"]]
)
def test_only_events_with_all_of_some_predicates(tmp_path: Path, names: list[str], limit: int) -> None:
    positions, predicates = [*range(1, 13)], [f"<urn:{name}>" for name in names]
    lake = LakeEntries(stored(tmp_path, [positions[:5], positions[5:]]))
    rest = [
        row
        for row in rows(positions).select(MATCHED_COLUMNS).to_pylist()
        if all(each in row["text"] for each in predicates)
    ]
    assert paged(lake, 0, 15, limit, predicates).to_pylist() == rest


def streamed(positions: Sequence[int]) -> pa.Table:
    """Events in turn of three streams; one id comes twice."""
    names = pa.array([f"s{each % 3}" for each in positions])
    found = rows(positions)
    found = found.set_column(1, found.schema.field("stream"), names)
    again = pa.array(["urn:again" if each in (2, 5) else f"urn:{each}" for each in positions])
    return found.set_column(2, found.schema.field("event"), again)


def parted(folder: Path, files: Sequence[Sequence[int]]) -> LakeEntries:
    lake = DeltaLake(folder)
    for number, positions in enumerate(files):
        lake.commit(CommitBatch("q", number, max(positions)), [FileWriter(folder).write(streamed(positions))])
    return LakeEntries(lake)


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("files", [[[*range(1, 11)]], [[1, 4, 7], [2, 5, 8], [3, 6], [9, 10]]])
def test_one_stream_alone(tmp_path: Path, files: list[list[int]], limit: int) -> None:
    lake = parted(tmp_path, files)
    for stream in ("s0", "s1", "s2", "other"):
        found, after = [LAKE_ENTRIES.empty_table()], 1
        while after < 12:
            page, after = lake.page(after, 12, limit, stream=stream)
            found.append(page)
        expected = [
            row for row in streamed(range(2, 11)).select(MATCHED_COLUMNS).to_pylist() if row["stream"] == stream
        ]
        assert pa.concat_tables(found).to_pylist() == expected


@pytest.mark.parametrize("files", [[[*range(1, 11)]], [[1, 4, 7], [2, 5, 8], [3, 6], [9, 10]]])
def test_an_event_is_found_by_its_id_in_its_stream(tmp_path: Path, files: list[list[int]]) -> None:
    lake = parted(tmp_path, files)
    assert lake.find("urn:again") == lake.find("urn:again", "s2") == 5
    assert lake.find("urn:7") == lake.find("urn:7", "s1") == 7
    assert lake.find("urn:7", "s0") is None
    assert lake.find("urn:77", "s1") is None
    assert LakeEntries(DeltaLake(tmp_path / "none")).find("urn:7") is None


def test_few_files_are_opened_at_once(tmp_path: Path) -> None:
    lake = LakeEntries(stored(tmp_path, [[1, 2], [3], [4, 8], [6]]), page_files=2)
    page, reached = lake.page(0, 10, 100)
    assert (page["position"].to_pylist(), reached) == ([1, 2, 3], 3)
    assert paged(lake, 0, 10, 100)["position"].to_pylist() == [1, 2, 3, 4, 6, 8]


def test_a_page_is_cut_by_the_size_of_its_text(tmp_path: Path) -> None:
    lake = LakeEntries(stored(tmp_path, [[1, 2, 3, 4, 5]], size=1_000), size=1_500)
    page, reached = lake.page(0, 10, 100)
    assert (page["position"].to_pylist(), reached) == ([1, 2], 2)
    assert paged(lake, 0, 10, 100)["position"].to_pylist() == [1, 2, 3, 4, 5]


def test_a_page_is_cut_by_the_size_of_extensions_too(tmp_path: Path) -> None:
    many = [Event(f"urn:{number}", "<urn:s>\t<urn:p>\t<urn:o>", EventHeaders(extensions=LARGE)) for number in range(5)]
    lake = DeltaLake(tmp_path)
    lake.commit(CommitBatch("q", 0, 5), [FileWriter(tmp_path).write(entries(*many))])
    page, reached = LakeEntries(lake, size=1_500).page(0, 10, 100)
    assert (page["position"].to_pylist(), reached) == ([1, 2], 2)
    assert paged(LakeEntries(lake, size=1_500), 0, 10, 100)["position"].to_pylist() == [1, 2, 3, 4, 5]


def test_extensions_are_in_the_file_once_for_each_event(tmp_path: Path) -> None:
    """Of 10,000 quads with 1 kB each they would be 10 MB for whoever reads the column."""
    text = "\n".join(f"<urn:s>\t<urn:p{number % 7}>\t<urn:{number}>" for number in range(10_000))
    file = FileWriter(tmp_path).write(entries(Event("urn:e", text, EventHeaders(extensions=LARGE))))
    rows = pq.read_table(tmp_path / file.path, columns=["quad", "extensions"])
    assert [row for row in rows.to_pylist() if row["extensions"]] == [
        {"quad": 0, "extensions": extensions_to_json(LARGE)}
    ]


@given(st.lists(EXTENSIONS, min_size=1, max_size=6), st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_extensions_come_back_from_fresh_files_from_zones_and_from_older_versions(
    given_headers: list[dict[str, str]], split: bool
) -> None:
    with TemporaryDirectory() as folder:
        table = Path(folder) / "quads"
        lake = DeltaLake(table)
        house = MaintenanceContext(lake, table, ZoneLayoutStore(Path(folder) / "zones"))
        zones = ZoneLayout().split("z0", "subject", "<urn:s1") if split else ZoneLayout()
        lake.commit(CommitBatch("q", 0, 0), [])
        lake.replace(TableChange((), (), zones=house.maps.write(zones)))
        events = [
            replace(said(number), headers=EventHeaders(extensions=each)) for number, each in enumerate(given_headers)
        ]
        stored = entries(*events)
        lake.commit(CommitBatch("q", 1, len(events)), [FileWriter(table).write(stored)])
        fresh = lake.files()
        compact(house)
        for snapshot in (fresh, lake.files()):
            assert (
                paged(LakeEntries(Still(snapshot)), 0, 99, 4).to_pylist() == stored.select(MATCHED_COLUMNS).to_pylist()
            )
        assert {each.zone for each in fresh.files}.isdisjoint(each.zone for each in lake.files().files)


def test_an_empty_lake_has_nothing(tmp_path: Path) -> None:
    lake = LakeEntries(DeltaLake(tmp_path))
    assert (lake.head(), lake.page(0, 7, 5)[1]) == (0, 7)
    assert DeltaLake(tmp_path).files().files == ()


def test_files_come_in_the_order_of_positions(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path)
    writer = stored(tmp_path, [[4, 7]])
    assert [(each.first, each.last) for each in lake.files().files] == [(4, 7)]
    writer.commit(CommitBatch("q", 1, 9), [written(tmp_path, [2, 3])])
    assert [(each.first, each.last) for each in lake.files().files] == [(2, 3), (4, 7)]


@dataclass
class Still:
    """A lake as it was."""

    snapshot: Snapshot

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return self.snapshot

    def floor(self, stream: str | None = None) -> int:
        return 0


class Listed:
    """A lake that has files at positions and nothing in them."""

    def __init__(self, *positions: tuple[int, int]) -> None:
        self._files = tuple(DataFile("nowhere", 1, 1, {"position": each}) for each in positions)

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return replace(Snapshot.empty("nowhere"), files=self._files)

    def floor(self, stream: str | None = None) -> int:
        return 0


@given(st.integers(0, 20), st.integers(0, 20))
@settings(max_examples=30, deadline=None)
def test_where_no_file_lies_nothing_is_opened(after: int, more: int) -> None:
    lake = LakeEntries(Listed((30, 40), (90, 99)))
    assert lake.page(40 + after, 40 + after + more, 5)[1] == 40 + after + more
