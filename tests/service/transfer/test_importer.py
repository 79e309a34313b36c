"""Imports: every event of a file once, with what is said of it, wherever it was cut off; and what is wrong is named."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.transfer.lakes import SOURCES, rows
from triplewire.model import END, MATCHED_COLUMNS, StreamEvent
from triplewire.model.errors import BadRequest, Conflict, InputError, Unavailable
from triplewire.service.transfer.events import ImportFault
from triplewire.service.transfer.exporter import Export, Selection, export_to_file
from triplewire.service.transfer.formats import choose_encoding
from triplewire.service.transfer.importer import (
    IMPORT_ATTEMPTS,
    Import,
    ImportLimits,
    find_faults,
    import_file,
    open_state,
    start_import,
)
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import Publication
from triplewire.testing import Crash, FaultyLog, open_twin
from triplewire.testing import Fault as Mishap

DATA = Path(__file__).parent / "data"
NUMBERS = [*range(1, 30)]
NAMES = ["all.nq", "all.nq.gz", "all.trig", "all.trig.gz", "all.parquet"]
SAID = [name for name in MATCHED_COLUMNS if name not in ("position", "received")]


class Log:
    """A broker that is nothing but its log. Appends meet the faults that a test says."""

    def __init__(self, mishaps: Iterable[Mishap] = ()) -> None:
        self._twin = open_twin("memory")
        self.log = self._twin.__enter__().log
        self._faulty = FaultyLog(self.log, mishaps)

    def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> dict[str, Any]:
        sent = list(events)
        self._faulty.append([Publication([each.stream for each in sent], [each.event for each in sent], key)])
        return {}

    def rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.log.read(0, END, 1_000).select(SAID).to_pylist()
        return found


def bring(
    broker: Log,
    path: Path,
    *,
    resume: bool = False,
    stream: str | None = None,
    limits: ImportLimits = ImportLimits(),  # noqa: B008
) -> list[ImportFault]:
    wanted, faults = Import(path, choose_encoding(path.name), stream, limits), list[ImportFault]()
    state = open_state(path)
    progress = start_import(wanted, state, resume=resume)
    list(import_file(broker, wanted, progress, state=state, report=faults.append, wait=lambda seconds: None))
    return faults


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One lake in every format. Headers hold what a publisher may say."""
    folder = tmp_path_factory.mktemp("exports")
    entries = rows(NUMBERS, SOURCES[:2])
    lake = DeltaLake(folder / "lake")
    lake.commit(CommitBatch("q", 0, NUMBERS[-1]), [FileWriter(folder / "lake").write(entries)])
    for name in NAMES:
        wanted = Export(Selection(), choose_encoding(name), folder / name, page_events=7)
        list(export_to_file(LakeEntries(lake), wanted))
    pq.write_table(entries, folder / "entries")
    return folder


def expected(exports: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(exports / "entries").select(SAID).to_pylist()
    return found


@pytest.mark.parametrize("size", [64, 300, 1_000_000])
@pytest.mark.parametrize("name", NAMES)
def test_what_goes_out_comes_in_as_it_was(exports: Path, name: str, size: int) -> None:
    broker = Log()
    assert bring(broker, exports / name, limits=ImportLimits(bytes=size)) == []
    assert broker.rows() == expected(exports)
    assert not open_state(exports / name).path.exists()


MISHAPS = st.sampled_from([Mishap.NONE, Mishap.CRASH_BEFORE, Mishap.CRASH_AFTER])


@given(name=st.sampled_from(NAMES), mishaps=st.lists(MISHAPS, max_size=12), size=st.sampled_from([64, 300]))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cut_off_before_or_after_any_acknowledgement_each_event_is_in_once(
    exports: Path, name: str, mishaps: list[Mishap], size: int
) -> None:
    broker = Log(mishaps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes((exports / name).read_bytes())
        for _ in range(len(mishaps) + 1):
            try:
                bring(broker, path, resume=True, limits=ImportLimits(bytes=size, events=4))
                break
            except Crash:
                continue
        assert not open_state(path).path.exists()
    assert broker.rows() == expected(exports)


def test_a_broker_that_is_away_for_a_while_is_asked_again(exports: Path) -> None:
    waited: list[float] = []

    class Away(Log):
        left = 3

        def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> dict[str, Any]:
            self.left -= 1
            if self.left >= 0:
                raise Unavailable("away")
            return super().publish_addressed(events, key)

    broker, wanted = Away(), Import(exports / "all.nq", choose_encoding("all.nq"))
    progress = start_import(wanted, open_state(wanted.path), resume=False)
    list(import_file(broker, wanted, progress, state=None, report=print, wait=waited.append))
    assert (broker.rows(), waited) == (expected(exports), [1.0, 2.0, 4.0])
    broker.left = IMPORT_ATTEMPTS
    with pytest.raises(Unavailable):
        list(import_file(broker, wanted, progress, state=None, report=print, wait=waited.append))


def test_one_that_was_cut_off_is_not_begun_again_by_accident(exports: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.nq"
    path.write_bytes((exports / "all.nq").read_bytes())
    with pytest.raises(Crash):
        bring(Log([Mishap.CRASH_AFTER]), path)
    with pytest.raises(Conflict, match="--resume goes on"):
        bring(Log(), path)
    with pytest.raises(Conflict, match="has changed"):
        bring(Log(), path, resume=True, stream="other")
    path.write_text(path.read_text() + "\n")
    with pytest.raises(Conflict, match="has changed"):
        bring(Log(), path, resume=True)


def test_a_stream_may_stand_in_place_of_all(exports: Path) -> None:
    broker = Log()
    bring(broker, exports / "all.trig", stream="other")
    assert [row["stream"] for row in broker.rows()] == ["other"] * len(NUMBERS)


def places(faults: Iterable[ImportFault]) -> list[tuple[int, int | None]]:
    return [(each.line, each.column) for each in faults]


def test_broken_lines_are_named_and_the_others_go_on() -> None:
    for size in (1, 100, 1_000_000):
        limits = ImportLimits(bytes=size)
        faults = list(find_faults(Import(DATA / "broken.nq", choose_encoding("broken.nq"), limits=limits)))
        assert sorted(places(faults)) == [
            (7, 1),
            (8, None),
            (9, 17),
            (10, None),
            *((line, None) for line in range(11, 15)),
        ]
    told = {each.line: each.describe("broken.nq") for each in faults}
    assert told[7] == (
        "broken.nq:7:1: this is not N-Quads: The subject of a triple must be an IRI or a blank node\n    broken"
    )
    assert "outside of a graph" in told[8]
    assert "not a valid name of a stream" in told[10]
    assert "the stream of urn:e3 is not said" in told[12]
    assert "the graph _:g is a blank node" in told[13]
    assert "outside of a graph" in told[14]


def test_broken_statements_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "broken.trig"
    path.write_bytes((DATA / "broken.trig").read_bytes())
    for size in (1, 50, 1_000_000):
        broker = Log()
        faults = bring(broker, path, limits=ImportLimits(bytes=size))
        assert [(row["event"], row["stream"], row["source"]) for row in broker.rows()] == [
            ("http://example.org/e.1", "home", "roof. Of { all }"),
            ("http://example.com/e6", "garden", None),
        ]
        assert broker.rows()[0]["text"].count("\n") == 4
        assert {each.line for each in faults} >= {9, 10, 11, 12, 15, 18}
        assert {each.line for each in faults} <= {*range(9, 13), *range(14, 19)}


def test_parquet_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    quad = {"graph": "<urn:e>", "subject": "<urn:s>", "predicate": "<urn:p>", "object": '"x"'}
    wrong = [
        {**quad, "subject": None},
        {**quad, "object": "x"},
        {**quad, "graph": "urn:g"},
        {**quad, "object": '"a" <urn:g> .\n<urn:s> <urn:p> "b"'},
        {**quad, "graph": "_:g"},
    ]
    pq.write_table(
        pa.Table.from_pylist([quad, *wrong, {**quad, "object": '"y"^^<http://www.w3.org/2001/XMLSchema#string>'}]), path
    )
    broker = Log()
    faults = bring(broker, path, stream="home")
    assert [each.line for each in faults] == [2, 3, 4, 5, 6]
    assert [(row["event"], row["text"]) for row in broker.rows()] == [
        ("urn:e", '<urn:s>\t<urn:p>\t"x"\n<urn:s>\t<urn:p>\t"y"')
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"graph": ["<urn:g>"]}, "has no column subject"),
        ({"graph": [1], "subject": ["a"], "predicate": ["a"], "object": ["a"]}, "column graph must be of strings"),
        ({"graph": ["a"], "subject": ["a"], "predicate": ["a"], "object": ["a"], "time": ["now"]}, "of timestamps"),
        ({"graph": ["a"], "subject": ["a"], "predicate": ["a"], "object": ["a"], "position": ["1"]}, "of integers"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, table: dict[str, list[object]], words: str) -> None:
    pq.write_table(pa.table(table), tmp_path / "some.parquet")
    with pytest.raises(BadRequest, match=words):
        bring(Log(), tmp_path / "some.parquet", stream="home")


def test_files_that_are_broken_as_a_whole(exports: Path, tmp_path: Path) -> None:
    for name, text in (("cut.parquet", (exports / "all.parquet").read_bytes()[:-9]), ("no.parquet", b"PAR1 no PAR1")):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(InputError, match="no Parquet file"):
            bring(Log(), tmp_path / name)
    whole = (exports / "all.nq.gz").read_bytes()
    for name, text in (("cut.nq.gz", whole[:-20]), ("no.nq.gz", b"plain text"), ("bad.nq.gz", whole[:40] + b"x" * 40)):
        (tmp_path / name).write_bytes(text)
        *_, last = bring(Log(), tmp_path / name)
        assert "cannot be unpacked" in last.reason


def test_events_over_the_limits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.nq"
    path.write_text("".join(f"<urn:s> <urn:p> <urn:o{number}> <urn:e{number // 5}> .\n" for number in range(7)))
    broker = Log()
    for size in (1, 1_000):
        (fault,) = bring(broker, path, stream="home", limits=ImportLimits(bytes=size, quads=3))
        assert (fault.line, fault.reason) == (1, "the event urn:e0 has 5 quads, over the limit of 3")
    assert [row["event"] for row in broker.rows()] == ["urn:e1"] * 2


HOSTILE = [
    b"\xff\xfe", b"\0" * 50, b"<" * 500, b'"""', b"{" * 99, b"}.", b"@prefix", b"<urn:e> {", b"# no line end",
    b"\r\n\r\n", b"<<( " * 500, b"<urn:s> <urn:p> '\\",
    b"\xef\xbb\xbf<urn:s> <urn:p> <urn:o> <urn:e> .\n", b"PREFIX a: <urn:a> a:e { a:s a:p a:o }",
]  # fmt: skip


@pytest.mark.parametrize("ending", [".nq", ".trig", ".nq.gz"])
@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_nothing_makes_it_fail_otherwise_than_in_words(tmp_path: Path, text: bytes, ending: str) -> None:
    path = tmp_path / f"file{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    broker = Log()
    assert all(each.describe("file") for each in bring(broker, path, stream="home"))
    good = b"PREFIX" if ending == ".trig" else b"\xef\xbb\xbf<urn:s>"
    assert len(broker.rows()) == text.startswith(good)
