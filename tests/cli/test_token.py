"""`triplewire token` and `triplewire audit`: over a data directory, with nothing running."""

from __future__ import annotations

import os
from getpass import getuser
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from triplewire.cli.app import app
from triplewire.config.settings import CACERT, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest, NotFound, StorageFull
from triplewire.security.audit import ACTS, REFUSALS, AuditLog
from triplewire.security.tokens import parse_access_token


def said(*arguments: str) -> tuple[str, str]:
    found = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout, found.stderr


def test_a_token_is_printed_alone_and_once(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    out, err = said("token", "create", "--name", "roof", "--allow", "publish:home", "--expires", "30d", *data)
    id, secret = parse_access_token(out.strip()) or ("", "")
    assert id in err
    assert secret not in err
    out, err = said("token", "list", *data)
    assert id in out
    assert secret not in out + err


def test_nothing_is_cut_in_a_narrow_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    data = ("--data", str(tmp_path))
    out, _ = said("token", "create", "--name", "roof", "--allow", "publish:a-stream-with-a-long-name", *data)
    listed, _ = said("token", "list", *data)
    assert (parse_access_token(out.strip()) or ("",))[0] in listed
    assert "…" not in listed
    at = listed.splitlines()[0].index("allows")
    column = "".join(line[at:].split("  ")[0].strip() for line in listed.splitlines()[1:])
    assert column == "publish:a-stream-with-a-long-name"


def test_to_look_for_tokens_makes_no_directory(tmp_path: Path) -> None:
    assert said("token", "list", "--data", str(tmp_path / "data"))[0].strip() == "there is no token"
    assert list(tmp_path.iterdir()) == []


def test_programs_are_told_in_json(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path), "--json")
    out, _ = said("token", "create", "--name", "roof", "--allow", "query", "--allow", "consume:*", "--role", "x", *data)
    made = orjson.loads(out)
    text = made.pop("token")
    assert parse_access_token(text) is not None
    assert (made["allow"], made["roles"], made["expires"]) == (["query", "consume:*"], ["x"], None)
    assert orjson.loads(said("token", "list", *data)[0]) == [made]


def test_one_is_revoked_by_its_id(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    out, _ = said("token", "create", "--name", "roof", "--allow", "*", "--json", *data)
    said("token", "revoke", orjson.loads(out)["id"], *data)
    (told,) = orjson.loads(said("token", "list", "--json", *data)[0])
    assert told["state"] == "revoked"


def test_one_is_saved_in_a_file_of_its_owner_and_not_printed(tmp_path: Path) -> None:
    data, file = ("--data", str(tmp_path / "data")), tmp_path / "me.token"
    for shown in ((), ("--json",)):
        file.unlink(missing_ok=True)
        out, err = said("token", "create", "--name", "me", "--allow", "*", "--save", str(file), *shown, *data)
        id, secret = parse_access_token(file.read_text().strip()) or ("", "")
        assert id in out + err
        assert secret not in out + err
        assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(BadRequest, match="grants nothing"):
        said("token", "create", "--name", "me", "--allow", "fly", "--save", str(tmp_path / "none"), *data)
    assert not (tmp_path / "none").exists()
    with pytest.raises(BadRequest, match="exists"):
        said("token", "create", "--name", "me", "--allow", "*", "--save", str(file), *data)
    assert len(orjson.loads(said("token", "list", "--json", *data)[0])) == 2


def test_one_that_was_found_somewhere_is_revoked_by_its_text(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    out, _ = said("token", "create", "--name", "lost", "--allow", "*", *data)
    said("token", "revoke", out.strip(), *data)
    assert orjson.loads(said("token", "list", "--json", *data)[0])[0]["state"] == "revoked"


def test_what_is_done_to_the_directory_is_in_its_audit_log(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    out, _ = said("token", "create", "--name", "me", "--allow", "*", *data)
    id, secret = parse_access_token(out.strip()) or ("", "")
    said("token", "revoke", id, *data)
    with pytest.raises(NotFound):
        said("token", "revoke", "nothing", *data)
    log, _ = said("audit", "--json", *data)
    told = [orjson.loads(line) for line in log.splitlines()]
    assert [(each["what"], each["outcome"]) for each in told] == [
        *(("createToken", each) for each in ("begun", "done")),
        *(("revokeToken", each) for each in ("begun", "done")),
        *(("revokeToken", each) for each in ("begun", "failed")),
    ]
    assert told[1]["made"] == told[2]["on"] == f"/tokens/{id}"
    assert {each["who"] for each in told} == {f"local:{getuser()}"}
    assert secret not in log


def test_a_token_that_cannot_be_written_down_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    data = ("--data", str(tmp_path))
    with pytest.raises(StorageFull):
        said("token", "create", "--name", "me", "--allow", "*", *data)
    assert "no token" in said("token", "list", *data)[0]


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    assert "no token" in said("token", "list", *data)[0]
    for arguments, error in (
        (("revoke", "nothing"), NotFound),
        (("create", "--name", "x", "--allow", "fly"), BadRequest),
        (("create", "--name", "x", "--allow", "query", "--expires", "soon"), BadRequest),
    ):
        with pytest.raises(error):
            said("token", *arguments, *data)


def test_the_audit_log_is_shown_the_newest_at_the_end(tmp_path: Path) -> None:
    audits = AuditLog(tmp_path / "audit")
    for number in range(5):
        record = {"at": f"{number}", "who": "token:a", "what": "eraseEvents", "on": "/events", "outcome": "begun"}
        audits.write(ACTS, [record])
    audits.write(REFUSALS, [{"at": "9", "who": "nobody", "what": "query", "on": "/sparql", "outcome": "refused"}])
    data = ("--data", str(tmp_path))
    out, _ = said("audit", "--last", "2", *data)
    assert [line.split() for line in out.splitlines()] == [
        ["4", "begun", "token:a", "eraseEvents", "/events"],
        ["9", "refused", "nobody", "query", "/sparql"],
    ]
    assert len(said("audit", *data)[0].splitlines()) == 6
    out, _ = said("audit", "--who", "nobody", "--json", *data)
    assert [orjson.loads(line)["on"] for line in out.splitlines()] == ["/sparql"]


def test_files_with_tokens_are_named_before_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (TOKEN, TOKEN_FILE, CACERT):
        monkeypatch.setenv(name, "before")
    file = tmp_path / "token"
    file.write_text("x")
    said("--token-file", str(file), "--cacert", str(file), "token", "list", "--data", str(tmp_path))
    assert (os.environ.get(TOKEN), os.environ[TOKEN_FILE], os.environ[CACERT]) == (None, str(file), str(file))
