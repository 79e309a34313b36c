"""Matchers that share the index of their machine: whoever writes, whatever breaks, each finds what is there."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.pairs import examples
from tests.matching.test_evaluator import entries
from triplewire.http.formats.notifications import MatchSelector, group_matches
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.index import Memberships
from triplewire.matching.index.arrays import read_events
from triplewire.matching.index.columns import allocate
from triplewire.matching.index.groups import GroupIndex, _new_buffer
from triplewire.matching.index.kernel import match_events
from triplewire.matching.index.store import IndexGenerations
from triplewire.matching.matcher import Matcher
from triplewire.matching.shapes import Shape, lift
from triplewire.model import END, Event, Kind, Subscription
from triplewire.model.errors import StorageFull
from triplewire.model.terms import XSD
from triplewire.sparql import parse_query
from triplewire.storage.memory import MemoryRegistry, PositionSequence
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

LONG = "0.30000000000000004"
"""More digits than the index decides about."""


class World:
    """A registry, and events at positions of its own order."""

    def __init__(self) -> None:
        self._positions = PositionSequence()
        self.registry = MemoryRegistry(self._positions)
        self._shapes: set[str] = set()

    def make(self, id: str, text: str) -> None:
        """Make a subscription, or replace it."""
        lifted = lift(parse_query(text), solutions=False)
        made = Subscription(id, text, Kind.SIGNAL, lifted.shape.key, lifted.constants)
        if lifted.shape.key not in self._shapes:
            self.registry.put([(SHAPE, lifted.shape.key, lifted.shape.to_value())])
            self._shapes.add(lifted.shape.key)
        self.registry.put([(SUBSCRIPTION, id, subscription_to_value(made))])

    def end(self, id: str) -> None:
        self.registry.put([(SUBSCRIPTION, id, None)])

    def publish(self, *texts: str) -> pa.Table:
        with self._positions.taking(len(texts)) as taken:
            return entries({at: Event(f"urn:event:{at}", text) for at, text in zip(taken, texts, strict=True)})

    def skip(self, count: int) -> None:
        with self._positions.taking(count):
            pass

    def told(self, matches: pa.Table) -> set[tuple[int, int]]:
        """Whom matches concern: where they were made, and the position of the event."""
        changes = [each for each in self.registry.changes(0, END) if each.kind == SUBSCRIPTION]
        shapes = {each.key: Shape.from_value(each.value or {}) for each in self.registry.list(SHAPE)}
        wanted = []
        for number, each in enumerate(changes):
            if each.value is not None:
                until = next((later.position for later in changes[number + 1 :] if later.key == each.key), END)
                membership = Memberships(shapes[each.value["shape"]]).of(each.value["constants"])
                wanted.append(MatchSelector(each.position, until, membership))
        pairs = [(group.since, position) for group in group_matches(matches, wanted) for position in group.positions]
        assert len(pairs) == len(set(pairs)), "one match for each pair"
        return set(pairs)

    def truth(self, batch: pa.Table) -> set[tuple[int, int]]:
        """The same, by the evaluator alone."""
        evaluator = Evaluator()
        evaluator.apply(self.registry.changes(0, END), END)
        return self.told(evaluator.match(batch))


def above(limit: str, kind: str = "decimal") -> str:
    return f'ASK {{ ?s <urn:value> ?v FILTER(?v > "{limit}"^^<{XSD}{kind}>) }}'


def named(name: object) -> str:
    return f"ASK {{ ?s <urn:name> <urn:{name}> ; <urn:of> ?o }}"


def reading(value: str, name: object = 0) -> str:
    lines = (f'<urn:value>\t"{value}"^^<{XSD}decimal>', f"<urn:name>\t<urn:{name}>", "<urn:of>\t<urn:x>")
    return "\n".join(f"<urn:s>\t{line}" for line in lines)


def test_what_one_has_learned_the_other_knows(tmp_path: Path) -> None:
    world = World()
    one, other = (Matcher(world.registry, tmp_path) for _ in range(2))
    for number in range(3):
        world.make(f"a{number}", named(number))
        batch = world.publish(reading("1", number), reading("1", 7))
        for each in (one, other) if number % 2 else (other, one):
            assert world.told(each.match(batch)) == world.truth(batch)
    assert IndexGenerations(tmp_path).files.size("groups") == 3, "each group is there once"


def test_a_batch_goes_on_with_the_table_that_it_began_with(tmp_path: Path) -> None:
    """While it is matched another worker brings so many subscriptions that the table gives way to a longer one."""
    world = World()
    world.make("first", named("first"))
    writer, reader = (Matcher(world.registry, tmp_path) for _ in range(2))
    batch = world.publish(reading("1", "first"), reading("1", 700))
    expected = world.told(reader.match(batch))
    files = IndexGenerations(tmp_path).files
    groups = GroupIndex(files)
    files.follow()
    held, number = files.arrays(), files.tables["keys"].number
    scratch, found = groups._scratch(files.size("groups")), _new_buffer(100, 16)
    for number_ in range(1_000):
        world.make(str(number_), named(number_))
    late = world.publish(reading("1", 700))
    assert len(world.told(writer.match(late))) == 1
    _, rows, _ = match_events(read_events(batch), 0, held, scratch, found)
    assert rows == len(expected) == 1, "none of those that came later"
    files.follow()
    assert files.tables["keys"].number > number
    _, rows, _ = match_events(read_events(batch), 0, files.arrays(), scratch, found)
    assert rows == 1, "and they are passed over in the new table as well"
    assert world.told(reader.match(late)) == world.truth(late)


def test_who_left_while_writing_is_made_good(tmp_path: Path) -> None:
    world = World()
    world.make("a", named(1))
    one, other = (Matcher(world.registry, tmp_path) for _ in range(2))
    batch = world.publish(reading("1", 1))
    expected = world.told(one.match(batch))
    assert expected
    generations = IndexGenerations(tmp_path)
    with generations.locked() as store, suppress(ZeroDivisionError), store.files.writing():
        store.files.columns["groups"].data["members"][0] = 0
        raise ZeroDivisionError
    for each in (one, other):
        world.make("b", named(2))
        late = world.publish(reading("1", 1), reading("1", 2))
        assert world.told(each.match(late)) == world.truth(late)


def cut_short(place: Path) -> None:
    with (place / "groups").open("r+b") as file:
        file.truncate(4_096)


def lost(place: Path) -> None:
    (place / "postings").unlink()


def foreign(place: Path) -> None:
    (place / "header").write_bytes(b"\x01" * (place / "header").stat().st_size)


def headless(place: Path) -> None:
    (place / "header").unlink()


def without_table(place: Path) -> None:
    next(place.glob("keys-*")).unlink()


def odd_table(place: Path) -> None:
    with next(place.glob("members-*")).open("r+b") as file:
        file.truncate(777)


def copied(place: Path) -> None:
    shutil.copytree(place, place.parent / "2")
    shutil.rmtree(place)


def gone(place: Path) -> None:
    shutil.rmtree(place.parent.parent)


DAMAGES = (cut_short, lost, foreign, headless, without_table, odd_table, copied, gone)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_files_that_are_not_ours_are_made_anew(damage: Callable[[Path], None], tmp_path: Path) -> None:
    world = World()
    for number in range(5):
        world.make(str(number), named(number))
    batch = world.publish(*(reading("1", number) for number in range(7)))
    expected = world.told(Matcher(world.registry, tmp_path / "index").match(batch))
    assert len(expected) == 5
    (place,) = (tmp_path / "index").glob("*/1")
    damage(place)
    assert world.told(Matcher(world.registry, tmp_path / "index").match(batch)) == expected


def test_the_directory_may_go_at_any_time(tmp_path: Path) -> None:
    world = World()
    world.make("a", named(1))
    matcher = Matcher(world.registry, tmp_path / "index")
    batch = world.publish(reading("1", 1))
    expected = world.told(matcher.match(batch))
    shutil.rmtree(tmp_path / "index")
    assert world.told(matcher.match(batch)) == expected
    world.make("b", named(2))
    late = world.publish(reading("1", 2))
    assert world.told(matcher.match(late)) == world.truth(late) != set()


def test_an_index_of_another_registry_is_not_believed(tmp_path: Path) -> None:
    for name in (1, 2):
        world = World()
        world.make("a", named(name))
        batch = world.publish(reading("1", 1), reading("1", 2))
        assert world.told(Matcher(world.registry, tmp_path).match(batch)) == world.truth(batch) != set()


def test_what_other_sources_wrote_is_removed(tmp_path: Path) -> None:
    (tmp_path / "of-before").mkdir()
    (tmp_path / "of-before" / "lock").touch()
    Matcher(World().registry, tmp_path)
    assert [each.name for each in tmp_path.iterdir()] != ["of-before"]
    assert not (tmp_path / "of-before").exists()


class Disk:
    """One that is full from some moment on."""

    full = False

    def allocate(self, file: int, start: int, length: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(file, start, length)


@pytest.mark.parametrize("many", [1, 1_500])
def test_on_a_full_disk_what_was_known_still_answers(many: int, tmp_path: Path) -> None:
    """One more needs no blocks; many need longer tables."""
    world, disk = World(), Disk()
    world.make("a", named("a"))
    one, other = (Matcher(world.registry, tmp_path, allocate=disk.allocate) for _ in range(2))
    early = world.publish(reading("1", "a"))
    expected = world.told(one.match(early))
    disk.full = True
    for number in range(many):
        world.make(str(number), named(number))
    late = world.publish(reading("1", "a"), reading("1", 0))
    for each in (one, other):
        if many > 1:
            with pytest.raises(StorageFull, match="No space left"):
                each.match(late)
        assert world.told(each.match(early)) == expected
    disk.full = False
    assert world.told(other.match(late)) == world.truth(late)
    assert world.told(one.match(late)) == world.truth(late)


def test_a_full_disk_at_the_start_is_told(tmp_path: Path) -> None:
    disk = Disk()
    disk.full = True
    with pytest.raises(StorageFull, match="No space left"):
        Matcher(World().registry, tmp_path, allocate=disk.allocate)
    disk.full = False
    Matcher(World().registry, tmp_path, allocate=disk.allocate)


def test_subscriptions_that_come_and_go_take_no_room_in_the_end(tmp_path: Path) -> None:
    world = World()
    matcher, sizes = Matcher(world.registry, tmp_path), set[int]()
    for turn in range(6):
        for number in range(300):
            world.make(f"{turn}-{number}", named(number))
        for number in range(300):
            world.end(f"{turn}-{number}")
        world.skip(BATCH_EVENTS)
        batch = world.publish(reading("1", turn))
        assert matcher.match(batch).num_rows == 0
        sizes.add(len(IndexGenerations(tmp_path).files.tables["members"].data))
    files = IndexGenerations(tmp_path).files
    assert max(sizes) <= 2_048, "of 1,800 at most the last 300 had a place in the table"
    assert files.size("groups") == 300, "a group is the same when it comes again"
    assert not files.filled("groups")["members"].any()


@pytest.mark.parametrize("left", [1, 3, 100])
def test_what_the_index_leaves_is_decided_however_few_are_at_hand(left: int, tmp_path: Path) -> None:
    world = World()
    matcher = Matcher(world.registry, tmp_path, fallback_subscriptions=left)
    for number in range(6):
        world.make(f"a{number}", above(f"0.{number}"))
        world.make(
            f"b{number}", f"ASK {{ ?s <urn:name> <urn:{number % 2}> ; <urn:value> ?v FILTER(?v > {number / 10}) }}"
        )
    world.make("exact", above("0.3"))
    for turn in range(3):
        world.end(f"a{turn}")
        world.make(f"b{turn}", above(f"0.{turn + 3}"))
        batch = world.publish(reading(LONG, turn), reading("0.35", turn), reading("0.29999999999999999999", turn))
        assert world.told(matcher.match(batch)) == world.truth(batch) != set()


TEXTS = st.one_of(
    st.integers(0, 3).map(named),
    st.integers(0, 4).map(lambda number: above(f"0.{number}")),
    st.integers(0, 2).map(lambda number: f"ASK {{ ?s <urn:name> <urn:{number}> OPTIONAL {{ ?s <urn:no> ?x }} }}"),
    st.just('ASK { ?s ?p ?o FILTER(REGEX(STR(?o), "[12]$")) }'),
    st.just(above("0.3000000000000000000001")),
)
IDS = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("make"), IDS, TEXTS),
    st.tuples(st.just("end"), IDS, st.just("")),
    st.tuples(st.just("skip"), IDS, st.just("")),
    st.tuples(st.just("match"), st.sampled_from("012"), st.sampled_from(["0.35", LONG, "7"])),
)


def test_step_by_step_is_the_same_as_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    @examples(12)
    @given(st.lists(STEPS, min_size=4, max_size=16))
    def answers(steps: Sequence[tuple[str, str, str]]) -> None:
        world, directory = World(), tmp_path_factory.mktemp("index")
        matchers = [Matcher(world.registry, directory, fallback_subscriptions=3) for _ in range(2)]
        batches = list[pa.Table]()
        for verb, name, text in [*steps, ("match", "1", LONG)]:
            if verb == "make":
                world.make(name, text)
            elif verb == "end":
                world.end(name)
            elif verb == "skip":
                world.skip(BATCH_EVENTS + 1)
            else:
                batch = world.publish(reading(text, name), reading("0.2", name))
                batches.append(batch)
                assert world.told(matchers[int(name) % 2].match(batch)) == world.truth(batch)
        everything = pa.concat_tables(batches)
        fresh = Matcher(world.registry, tmp_path_factory.mktemp("fresh"))
        assert world.told(fresh.match(everything)) == world.truth(everything)
        for each in matchers:
            assert world.told(each.match(everything)) == world.truth(everything), "also of those that were forgotten"

    answers()


def test_files_are_no_longer_than_what_is_in_them(tmp_path: Path) -> None:
    """However long they are mapped: somebody will copy the directory."""
    world = World()
    world.make("a", named(1))
    assert Matcher(world.registry, tmp_path).match(world.publish(reading("1", 1))).num_rows == 1
    assert sum(each.stat().st_size for each in tmp_path.rglob("*") if each.is_file()) < 1 << 20


def test_arrays_of_files_are_to_compiled_code_what_others_are(tmp_path: Path) -> None:
    """Else all of it would be compiled twice."""
    *arrays, _ = IndexGenerations(tmp_path).files.arrays()
    for each in arrays:
        assert isinstance(each, np.ndarray)
        assert each.flags.c_contiguous
        assert each.flags.aligned
        assert each.flags.writeable
