"""Exports: what other readers find in them, which events they hold, and that they go on wherever they were cut off."""

from __future__ import annotations

import gzip
import io
import resource
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.transfer.lakes import SECOND, STREAMS, Cut, quads_of, rows, stored
from triplewire.model.errors import BadRequest, Conflict, StorageFull, Unavailable
from triplewire.service.transfer.exporter import Export, Selection, export_to_file, export_to_stream
from triplewire.service.transfer.formats import FileFormat, choose_encoding
from triplewire.storage.lake.data_files import QUADS
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries

NUMBERS = [*range(1, 12), *range(15, 31)]
LAYOUT = [NUMBERS[:4], NUMBERS[4:20:2], NUMBERS[5:20:2], NUMBERS[20:]]
NAMES = ["all.nq", "all.nq.gz", "all.trig", "all.trig.gz", "all.parquet"]
FORMATS = {".nq": ox.RdfFormat.N_QUADS, ".trig": ox.RdfFormat.TRIG}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> DeltaLake:
    return stored(tmp_path_factory.mktemp("lake"), LAYOUT)


@dataclass(frozen=True, repr=False)
class Wholes:
    """The bytes of exports that nobody cut off, by name."""

    bytes: dict[str, bytes]


@pytest.fixture(scope="module")
def wholes(lake: DeltaLake, tmp_path_factory: pytest.TempPathFactory) -> Wholes:
    folder = tmp_path_factory.mktemp("wholes")
    for name in NAMES:
        list(export_to_file(LakeEntries(lake), asked(folder / name)))
    return Wholes({name: (folder / name).read_bytes() for name in NAMES})


def asked(path: Path, selection: Selection = Selection(), *, headers: bool = True) -> Export:  # noqa: B008
    return Export(selection, choose_encoding(path.name), path, headers, page_events=7)


def read_rdf(path: Path) -> list[str]:
    """By a reader that is not ours."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ending = Path(path.name.removesuffix(".gz")).suffix
    return sorted({str(quad) for quad in ox.parse(text, format=FORMATS[ending])})


@pytest.mark.parametrize("headers", [True, False])
@pytest.mark.parametrize("name", [name for name in NAMES if "parquet" not in name])
def test_readers_of_rdf_find_every_quad_and_header(tmp_path: Path, lake: DeltaLake, name: str, headers: bool) -> None:
    *_, reached = export_to_file(LakeEntries(lake), asked(tmp_path / name, headers=headers))
    assert read_rdf(tmp_path / name) == quads_of(rows(NUMBERS), headers=headers)
    assert (reached.events, reached.quads) == (
        27,
        sum(text.count("\n") + 1 for text in rows(NUMBERS)["text"].to_pylist()),
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_readers_of_parquet_find_the_table_of_the_lake_in_the_order_of_events(tmp_path: Path, lake: DeltaLake) -> None:
    list(export_to_file(LakeEntries(lake), asked(tmp_path / "all.parquet")))
    found = pq.read_table(tmp_path / "all.parquet")
    assert found.schema.equals(QUADS)
    there = {"files": list(lake.files().paths)}
    names = ", ".join(QUADS.names)
    sql = f"SELECT {names} FROM read_parquet($files) ORDER BY position, quad"
    assert found.to_pylist() == pa.table(duckdb.sql(sql, params=there)).cast(QUADS).to_pylist()
    groups = pq.ParquetFile(tmp_path / "all.parquet")
    parts = [set(groups.read_row_group(number)["position"].to_pylist()) for number in range(groups.num_row_groups)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 27


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        (Selection(streams=("even",)), lambda row: row["stream"] == "even"),
        (Selection(streams=STREAMS), lambda row: True),
        (Selection(streams=("none",)), lambda row: False),
        (Selection(begins=60 * SECOND, ends=180 * SECOND), lambda row: 60 <= row["time"] / SECOND < 180),
        (Selection(begins=120 * SECOND), lambda row: row["time"] >= 120 * SECOND),
        (Selection(after=5, through=20), lambda row: 5 < row["position"] <= 20),
        (Selection(("odd",), after=9), lambda row: row["stream"] == "odd" and row["position"] > 9),
        (Selection(after=30), lambda row: False),
        (Selection(through=1_000), lambda row: True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["some.nq", "some.parquet"])
def test_some_events_by_stream_time_and_position(
    tmp_path: Path, lake: DeltaLake, name: str, selection: Selection, fits: Callable[[dict[str, object]], bool]
) -> None:
    *_, reached = export_to_file(LakeEntries(lake), asked(tmp_path / name, selection))
    wanted = [row for row in rows(NUMBERS).to_pylist() if fits(row)]
    assert reached.events == len(wanted)
    if name.endswith(".nq"):
        expected = quads_of(pa.Table.from_pylist(wanted, schema=rows([]).schema))
        assert read_rdf(tmp_path / name) == expected
    else:
        found = pq.read_table(tmp_path / name)
        assert sorted(set(found["position"].to_pylist())) == [row["position"] for row in wanted]


@given(
    name=st.sampled_from(NAMES),
    cuts=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 17, 400])), min_size=1, max_size=2),
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_goes_on_wherever_it_was_cut_off(
    lake: DeltaLake, wholes: Wholes, name: str, cuts: list[tuple[int, int]]
) -> None:
    """After some pages, and some bytes of the next one that reached the disk: the file is that of an export in one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        for pages, torn in cuts:
            with pytest.raises(Unavailable, match="cut"):
                list(export_to_file(Cut(lake, pages), asked(path), resume=True))
            assert not path.exists()
            tear(path.with_name(path.name + ".part"), torn)
        list(export_to_file(LakeEntries(lake), asked(path), resume=True))
        assert path.read_bytes() == wholes.bytes[name]
        assert [each.name for each in Path(folder).iterdir()] == [name]


def tear(part: Path, size: int) -> None:
    if part.is_dir():
        number = len(list(part.iterdir()))
        (part / f"{number:09d}.parquet").write_bytes(b"x" * size)
        (part / "whole").write_bytes(b"y" * size)
    else:
        with part.open("ab") as file:
            file.write(b"<urn:torn" * size)


def test_what_was_stored_since_is_not_in_an_export_that_goes_on(tmp_path: Path) -> None:
    lake = stored(tmp_path / "lake", LAYOUT[:2])
    with pytest.raises(Unavailable):
        list(export_to_file(Cut(lake, 1), asked(tmp_path / "all.nq")))
    stored(tmp_path / "lake", LAYOUT)
    *_, reached = export_to_file(LakeEntries(lake), asked(tmp_path / "all.nq"), resume=True)
    assert reached.through == max(LAYOUT[1])


@pytest.mark.parametrize("name", ["all.nq", "all.parquet"])
def test_one_that_was_cut_off_after_it_got_its_name_is_whole(tmp_path: Path, lake: DeltaLake, name: str) -> None:
    path, state = tmp_path / name, tmp_path / f"{name}.state"
    for _ in export_to_file(LakeEntries(lake), asked(path)):
        if state.exists():
            shutil.copy(state, tmp_path / "kept")
    before = path.read_bytes()
    shutil.copy(tmp_path / "kept", state)
    *_, reached = export_to_file(LakeEntries(lake), asked(path), resume=True)
    assert (reached.events, path.read_bytes(), state.exists()) == (27, before, False)


def test_nothing_is_overwritten_unless_that_is_said(tmp_path: Path, lake: DeltaLake) -> None:
    path = tmp_path / "all.nq"
    path.write_text("mine")
    with pytest.raises(Conflict, match="there already"):
        list(export_to_file(LakeEntries(lake), asked(path)))
    assert path.read_text() == "mine"
    with pytest.raises(Unavailable):
        list(export_to_file(Cut(lake, 1), asked(path), overwrite=True))
    assert path.read_text() == "mine"
    with pytest.raises(Conflict, match="--resume goes on"):
        list(export_to_file(LakeEntries(lake), asked(path)))
    with pytest.raises(Conflict, match="another selection"):
        list(export_to_file(LakeEntries(lake), asked(path, Selection(("even",))), resume=True))
    list(export_to_file(LakeEntries(lake), asked(path), overwrite=True))
    assert len(read_rdf(path)) == len(quads_of(rows(NUMBERS)))


@pytest.mark.parametrize("name", ["all.nq", "all.parquet"])
def test_a_part_that_somebody_took_away_is_missed(tmp_path: Path, lake: DeltaLake, name: str) -> None:
    path, part = tmp_path / name, tmp_path / f"{name}.part"
    with pytest.raises(Unavailable):
        list(export_to_file(Cut(lake, 2), asked(path)))
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(Conflict, match="--overwrite"):
        list(export_to_file(LakeEntries(lake), asked(path), resume=True))
    (tmp_path / f"{name}.state").write_text("{")
    with pytest.raises(Conflict, match="no state"):
        list(export_to_file(LakeEntries(lake), asked(path), resume=True))
    list(export_to_file(LakeEntries(lake), asked(path), overwrite=True))


@pytest.mark.parametrize("name", ["all.nq", "all.trig.gz", "all.parquet"])
def test_a_full_disk_is_told_and_left_behind(tmp_path: Path, lake: DeltaLake, wholes: Wholes, name: str) -> None:
    size = len(wholes.bytes[name])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, before[1]))
    try:
        with pytest.raises(StorageFull, match="--resume goes on"):
            list(export_to_file(LakeEntries(lake), asked(tmp_path / name)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / name).exists()
    list(export_to_file(LakeEntries(lake), asked(tmp_path / name), resume=True))
    assert (tmp_path / name).read_bytes() == wholes.bytes[name]


def test_a_stream_gets_the_same_bytes(tmp_path: Path, lake: DeltaLake, wholes: Wholes) -> None:
    out = io.BytesIO()
    *_, reached = export_to_stream(LakeEntries(lake), asked(tmp_path / "all.trig"), out)
    assert (out.getvalue(), reached.events) == (wholes.bytes["all.trig"], 27)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("all.csv", None, "known are .nq, .trig, .parquet"),
        ("-", None, "--format"),
        ("-", FileFormat.PARQUET, "cannot be a stream"),
        ("all.parquet.gz", None, "compressed inside"),
    ],
)
def test_a_format_that_cannot_be_is_refused(name: str, given: FileFormat | None, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        choose_encoding(name, given)


@pytest.mark.parametrize("wrong", [{"begins": 5, "ends": 5}, {"after": 9, "through": 3}])
def test_a_selection_that_nothing_fits_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(BadRequest, match="nothing can be between"):
        Selection(**wrong)  # type: ignore[arg-type]
