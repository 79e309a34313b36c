"""Rows go from every file on the disk: of the table as it is and as it was, and nothing of them is left anywhere."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.storage.lake.test_delta import entries
from tests.storage.lake.traces import traces
from triplewire.model import END, Erasure, ErasureScope, Event, EventHeaders
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.lake.erasure import LakeErasure, text_between
from triplewire.storage.lake.maintenance import MaintenanceContext, compact
from triplewire.storage.lake.ports import CommitBatch, DataFile, Lake, Snapshot, TableChange, VersionOrTime
from triplewire.storage.lake.zones import ZoneLayout, ZoneLayoutStore
from triplewire.testing import Crash, event
from triplewire.testing.samples import EXAMPLE

T = TypeVar("T")
R = TypeVar("R")

ANNA = f"{EXAMPLE}anna"
SECRET = "Anna Secretperson"
NAMED = f'<{ANNA}>\t<{EXAMPLE}name>\t"{SECRET}"'
KNOWS = f"<{EXAMPLE}zoe>\t<{EXAMPLE}knows>\t<{ANNA}>"
SAID = f"<{EXAMPLE}bob>\t<{EXAMPLE}said>\t<<( <{ANNA}> <{EXAMPLE}is> <{EXAMPLE}here> )>>"
OTHER = f'<{EXAMPLE}bob>\t<{EXAMPLE}name>\t"Bob"'
LAST = f'<{EXAMPLE}zoe>\t<{EXAMPLE}name>\t"Zoe"'

MIXED = Event("urn:mixed", "\n".join((NAMED, KNOWS, OTHER, SAID, LAST)), EventHeaders(extensions={"X-Kept": "mixed"}))
"""Loses its first quads, and one in the middle."""
TOKEN = "header-of-what-goes"
WHOLE = Event("urn:whole", "\n".join((KNOWS, NAMED)), EventHeaders(extensions={"X-Gone": TOKEN}))
PLAIN = Event("urn:plain", "\n".join((OTHER, LAST)))

ERASE_ANNA = Erasure("e1", ErasureScope.SUBJECT, ANNA, END)


class Lived:
    """A lake with a past: fresh files, files in zones, older versions, a checkpoint, a file that nobody names, and the
    entry of one that is gone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = DeltaLake(folder / "quads")
        self.context = MaintenanceContext(self.lake, folder / "quads", ZoneLayoutStore(folder / "zones"))

    @classmethod
    def begun(cls, folder: Path) -> Lived:
        made = cls(folder)
        made.lake.commit(CommitBatch("q", -1, 0), [])
        zones = ZoneLayout().split("z0", "subject", f"<{EXAMPLE}b").split("z2", "object", f"<{ANNA}")
        made.lake.replace(TableChange((), (), zones=made.context.maps.write(zones)))
        for some in ((MIXED, PLAIN), (WHOLE,), (event(1),)):
            made.append(*some)
        compact(made.context)
        DeltaTable(folder / "quads").create_checkpoint()
        for some in ((MIXED,), (WHOLE,)):
            made.append(*some)
        made.write(WHOLE, first=90)
        gone = made.append(WHOLE)
        made.lake.replace(TableChange((gone,), (), lost=True))
        (folder / "quads" / gone.path).unlink()
        return made

    def write(self, *events: Event, first: int) -> DataFile:
        return FileWriter(self.folder / "quads").write(entries(*events, first=first))

    def append(self, *events: Event) -> DataFile:
        now = self.lake.files()
        file = self.write(*events, first=now.position + 1)
        self.lake.commit(CommitBatch("q", now.version, now.position + len(events)), [file])
        return file

    def events(self, at: VersionOrTime | None = None) -> list[tuple[int, str, str]]:
        """All events of a version, put together again."""
        snapshot = DeltaLake(self.folder / "quads").files(at)
        page, _ = LakeEntries(_Still(snapshot)).page(0, snapshot.position, 100)
        return [(row["position"], row["event"], row["text"]) for row in page.to_pylist()]

    def extensions(self, at: VersionOrTime | None = None) -> dict[int, str]:
        snapshot = DeltaLake(self.folder / "quads").files(at)
        page, _ = LakeEntries(_Still(snapshot)).page(0, snapshot.position, 100)
        return {row["position"]: row["extensions"] for row in page.to_pylist() if row["extensions"]}

    def rows(self) -> Counter[tuple[int, int]]:
        table = pa.table(DeltaTable(self.folder / "quads").to_pyarrow_table())
        return Counter(zip(table["position"].to_pylist(), table["quad"].to_pylist(), strict=True))


@dataclass
class _Still:
    snapshot: Snapshot

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return self.snapshot

    def floor(self, stream: str | None = None) -> int:
        return 0


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Lived.begun(tmp_path_factory.mktemp("begun")).folder


@pytest.fixture
def lived(begun: Path, tmp_path: Path) -> Lived:
    return copied(begun, tmp_path / "lived")


def copied(begun: Path, to: Path) -> Lived:
    shutil.copytree(begun, to)
    return Lived(to)


def erase(house: MaintenanceContext, erasure: Erasure) -> int:
    """All steps, as the pipeline does them."""
    work = LakeErasure(house, erasure)
    if work.remembered() is None:
        work.remember(work.losses())
    count = work.rewrite()
    work.revise()
    work.forget()
    return count


def left(events: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
    """What the model says should be left of events."""
    texts = [(at, id, ERASE_ANNA.left(id, "source", text)) for at, id, text in events]
    return [(at, id, text) for at, id, text in texts if text is not None]


def test_a_subject_goes_from_every_version_and_nothing_else_does(lived: Lived) -> None:
    # the last but two named a file that is gone
    versions = range(2, lived.lake.files().version - 1)
    before = {version: lived.events(version) for version in versions}
    assert len(traces(lived.folder, SECRET)) > 5
    erase(lived.context, ERASE_ANNA)
    assert traces(lived.folder, ANNA, SECRET) == []
    after = {version: lived.events(version) for version in versions}
    assert after == {version: left(events) for version, events in before.items()}
    assert lived.events() == left(before[versions[-1]])


def test_extensions_go_with_their_event_and_stay_with_what_is_left_of_it(lived: Lived) -> None:
    """In every version: the first quad alone has them, and another becomes the first, in another file or in none."""
    versions = range(2, lived.lake.files().version - 1)
    before = {version: lived.extensions(version) for version in versions}
    assert set(before[versions[-1]]) == {1, 3, 5, 6}
    assert len(traces(lived.folder, TOKEN)) > 2
    erase(lived.context, ERASE_ANNA)
    assert traces(lived.folder, TOKEN) == []
    kept = dict.fromkeys((1, 5), '{"X-Kept":"mixed"}')
    assert lived.extensions() == kept
    for version, told in before.items():
        assert lived.extensions(version) == {at: each for at, each in told.items() if at in kept}


def test_each_event_that_is_left_has_its_first_quad_once(lived: Lived) -> None:
    erase(lived.context, ERASE_ANNA)
    assert sorted(at for at, quad in lived.rows().elements() if quad == 0) == [1, 2, 4, 5]
    assert set(lived.rows().values()) == {1}


@pytest.mark.parametrize(
    ("scope", "name", "left_over"),
    [
        (ErasureScope.EVENT, "urn:whole", [1, 2, 4, 5]),
        (ErasureScope.EVENT, "urn:nothing", [1, 2, 3, 4, 5, 6]),
        (ErasureScope.SOURCE, "source", []),
        (ErasureScope.SUBJECT, "urn:plain", [1, 3, 4, 5, 6]),
    ],
)
def test_events_go_whole(lived: Lived, scope: ErasureScope, name: str, left_over: list[int]) -> None:
    erase(lived.context, Erasure("e", scope, name, END))
    assert [at for at, _, _ in lived.events()] == left_over
    if name.startswith("urn:"):
        assert traces(lived.folder, name) == []


def test_what_was_published_later_stays(lived: Lived) -> None:
    before = lived.events()
    erase(lived.context, replace(ERASE_ANNA, position=5))
    assert lived.events() == left(before[:4]) + before[4:]


def test_zones_keep_their_rows_and_lose_the_name(lived: Lived) -> None:
    """A bound is a beginning of a term, and that may be all of its name."""
    assert ANNA in str(lived.context.zones(lived.lake.files()))
    erase(lived.context, ERASE_ANNA)
    zones = lived.context.zones(lived.lake.files())
    assert ANNA not in str(zones)
    assert len(zones.zones) == 3
    table = pa.table(DeltaTable(lived.folder / "quads").to_pyarrow_table())
    for row in table.to_pylist():
        point = (row["graph"], row["subject"], row["predicate"], row["object"])
        assert row["zone"] in (None, zones.locate(point))


@pytest.mark.parametrize(
    ("under", "over"), [("<a", "<b"), ("<a", "<ab"), ("<a>", "<c>"), ("<", "<x"), ("<az", "<b"), ("<\ud7ff", "<\ue000")]
)
def test_between_two_texts_is_one_that_parts_them(under: str, over: str) -> None:
    assert under < text_between(under, over) <= over


def test_what_is_lost_is_told(lived: Lived) -> None:
    losses = LakeErasure(lived.context, ERASE_ANNA).losses().to_pylist()
    told = {each["position"]: (each["quads"], each["first"], each["extensions"]) for each in losses}
    mixed, whole = (3, 2, '{"X-Kept":"mixed"}'), (2, None, None)
    assert told == {1: mixed, 3: whole, 5: mixed, 6: whole, 90: whole}


def test_those_who_hold_a_copy_begin_anew_and_others_read_on(lived: Lived) -> None:
    snapshot = lived.lake.files()
    erase(lived.context, ERASE_ANNA)
    after = lived.lake.files()
    assert after.removals == snapshot.removals + 1
    assert {each.path for each in after.files} < {each.path for each in snapshot.files}
    assert sum(each.rows for each in after.files) == lived.rows().total()
    assert all(each.size == (lived.folder / "quads" / each.path).stat().st_size for each in after.files)
    # who has looked up the files before reads the same files, without what is gone
    query = "SELECT count(*) FROM read_parquet($1, hive_partitioning = false)"
    assert duckdb.execute(query, [list(snapshot.paths)]).fetchall() == [(lived.rows().total(),)]


def test_statistics_are_those_of_what_is_left(lived: Lived) -> None:
    erase(lived.context, ERASE_ANNA)
    table = DeltaTable(lived.folder / "quads")
    found = pa.table(table.to_pyarrow_table(filters=[("object", "=", '"Zoe"')]))
    assert sorted(found["position"].to_pylist()) == [1, 2, 5]
    assert table.count() == lived.rows().total()


def test_erasing_again_does_nothing(lived: Lived) -> None:
    erase(lived.context, ERASE_ANNA)
    before, rows = lived.lake.files(), lived.rows()
    assert erase(lived.context, replace(ERASE_ANNA, id="e2")) == 0
    assert lived.lake.files() == before
    assert lived.rows() == rows


@dataclass
class Deadly:
    """A lake and a runner that die at the n-th half of an act: before it, or after it and before anyone is told."""

    lake: Lake
    files_left: int
    commits_left: int

    def __call__(self, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
        made: list[R] = []
        for item in items:
            self._half(files=1)
            made += function(item)
            self._half(files=1)
        return made

    def commit(self, batch: CommitBatch, files: Sequence[DataFile]) -> bool:
        return self.lake.commit(batch, files)

    def replace(self, change: TableChange) -> None:
        self._half(commits=1)
        self.lake.replace(change)
        self._half(commits=1)

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return self.lake.files(at)

    def _half(self, files: int = 0, commits: int = 0) -> None:
        self.files_left -= files
        self.commits_left -= commits
        if 0 in (self.files_left, self.commits_left):
            raise Crash


@pytest.mark.parametrize(("files", "commits"), [(1, -1), (2, -1), (5, -1), (8, -1), (-1, 1), (-1, 2)])
def test_whoever_dies_the_next_goes_on(lived: Lived, files: int, commits: int) -> None:
    """Before or after a file is written anew, or the commit. Every other time somebody else keeps house before it goes
    on. In between, all is there that stays."""
    before = lived.events()
    deadly = Deadly(lived.lake, files, commits)
    with pytest.raises(Crash):
        erase(replace(lived.context, lake=deadly, run=deadly), ERASE_ANNA)
    between = {at: set(text.split("\n")) for at, _, text in lived.events()}
    assert all(set(text.split("\n")) <= between[at] for at, _, text in left(before))
    assert all(between.get(at, set()) <= set(text.split("\n")) for at, _, text in before)
    if files % 2:
        compact(lived.context)
    erase(lived.context, ERASE_ANNA)
    assert lived.events() == left(before)
    assert lived.extensions() == dict.fromkeys((1, 5), '{"X-Kept":"mixed"}')
    assert traces(lived.folder, ANNA, SECRET, TOKEN) == []
    assert sorted(at for at, quad in lived.rows().elements() if quad == 0) == [1, 2, 4, 5]


def test_a_file_without_an_end_is_told(lived: Lived) -> None:
    work = LakeErasure(lived.context, ERASE_ANNA)
    assert work.torn() == []
    file = lived.write(WHOLE, first=99)
    path = lived.folder / "quads" / file.path
    path.write_bytes(path.read_bytes()[:-9])
    assert work.torn() == [path]
    erase(lived.context, ERASE_ANNA)
