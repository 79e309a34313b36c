"""What every ledger of hooks does."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from triplewire.model.errors import StorageFull
from triplewire.storage.memory import MemoryWebhookStore
from triplewire.storage.webhooks import DeadLetter, SqliteWebhookStore, WebhookProgress, WebhookStore


@pytest.fixture(params=["memory", "sqlite"])
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WebhookStore]:
    if request.param == "memory":
        yield MemoryWebhookStore()
    else:
        made = SqliteWebhookStore(tmp_path / "hooks.db")
        yield made
        made.close()


def letter(position: int, hook: str = "h1", status: int | None = 500) -> DeadLetter:
    return DeadLetter(hook, position, 3, "answered 500", status, 1_700_000_000_000_000)


def test_places_are_those_noted_last_with_the_count_of_letters(books: WebhookStore) -> None:
    assert dict(books.progress()) == {}
    books.record({"h1": WebhookProgress(7), "h2": WebhookProgress(9, 2, "answered 503")})
    books.record({"h1": WebhookProgress(8)}, [letter(8), letter(5, "h3", None)])
    assert books.progress() == {
        "h1": WebhookProgress(8, parked=1),
        "h2": WebhookProgress(9, 2, "answered 503"),
        "h3": WebhookProgress(0, parked=1),
    }


def test_letters_come_in_order_of_position_by_pages_and_one_that_comes_again_is_one(books: WebhookStore) -> None:
    books.record({}, [letter(9), letter(3), letter(5), letter(4, "h2")])
    books.record({}, [letter(5)])
    assert [each.position for each in books.dead_letters("h1", limit=2)] == [3, 5]
    assert books.dead_letters("h1", after=5, limit=9) == [letter(9)]
    books.remove("h1", [3, 5, 77])
    assert [each.position for each in books.dead_letters("h1", limit=9)] == [9]
    assert books.dead_letters("h2") == [letter(4, "h2")]


def test_what_is_asked_for_again_is_there_until_it_is_done_or_removed(books: WebhookStore) -> None:
    books.record({}, [letter(3), letter(5), letter(7)])
    assert books.request_redelivery("h1", [5, 3, 99]) == 2
    assert books.redeliveries() == {"h1": [3, 5]}
    books.end_redelivery("h1", [3])
    assert books.redeliveries() == {"h1": [5]}
    assert books.request_redelivery("h1") == 3
    books.remove("h1", [5])
    assert books.redeliveries() == {"h1": [3, 7]}
    books.record({}, [letter(3), letter(7)])
    books.end_redelivery("h1", [3, 7])
    assert (books.redeliveries(), books.request_redelivery("h2")) == ({}, 0)


def test_secrets_are_kept_replaced_and_forgotten_with_all_the_rest(books: WebhookStore) -> None:
    books.put_secrets({"h1": "one", "h2": "two"})
    books.put_secrets({"h1": "three"})
    books.record({"h1": WebhookProgress(7), "h2": WebhookProgress(7)}, [letter(7)])
    assert (books.secret("h1"), books.secret("h3")) == ("three", None)
    books.forget("h1")
    assert (books.secret("h1"), books.secret("h2")) == (None, "two")
    assert books.progress() == {"h2": WebhookProgress(7)}


def test_it_is_the_turn_of_one_at_a_time(books: WebhookStore) -> None:
    assert books.acquire()
    books.release()
    assert books.acquire()


def test_another_process_has_its_turn_when_the_first_was_killed(tmp_path: Path) -> None:
    path, here = tmp_path / "hooks.db", SqliteWebhookStore(tmp_path / "hooks.db")
    story = "import sys; from pathlib import Path; from triplewire.storage.webhooks import SqliteWebhookStore\n"
    story += "it = SqliteWebhookStore(Path(sys.argv[1])); print(it.acquire(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", story, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert not here.acquire()
        other.kill()
        other.wait()
        assert here.acquire()
    here.close()


def test_no_byte_of_a_secret_is_left_and_nobody_else_reads_the_file(tmp_path: Path) -> None:
    books = SqliteWebhookStore(tmp_path / "hooks.db")
    books.put_secrets({"h1": "whsec_" + "unmistakable"})
    files = list(tmp_path.glob("hooks.db*"))
    assert len(files) == 3
    assert not [each for each in files if each.stat().st_mode & 0o077]
    books.forget("h1")
    books.close()
    assert not [each for each in tmp_path.iterdir() if b"unmistakable" in each.read_bytes()]


def test_a_full_disk_is_told_and_what_was_noted_before_stands(tmp_path: Path) -> None:
    books = SqliteWebhookStore(tmp_path / "hooks.db")
    books.record({"h1": WebhookProgress(7)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, before[1]))
    try:
        with pytest.raises(StorageFull):
            books.record({f"h{number}": WebhookProgress(9, 1, "x" * 1_000) for number in range(1_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert books.progress() == {"h1": WebhookProgress(7)}
    books.record({"h1": WebhookProgress(11)})
    assert books.progress() == {"h1": WebhookProgress(11)}
    books.close()
