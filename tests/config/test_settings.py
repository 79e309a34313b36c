"""Settings come from the environment, and a wrong one is named."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from triplewire.config import Settings
from triplewire.config.settings import PREFIX, RENAMED_SETTINGS


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environment({"PORT": "1", "HOME": "x"}) == Settings()


def test_every_field_can_be_set_and_keeps_its_type() -> None:
    given = {PREFIX + field.name.upper(): "7" for field in fields(Settings)}
    settings = Settings.from_environment(given)
    for field in fields(Settings):
        value, default = getattr(settings, field.name), getattr(Settings(), field.name)
        assert type(value) is type(default)
        assert value != default


def test_a_value_of_the_wrong_type_is_named() -> None:
    with pytest.raises(ValueError, match="TRIPLEWIRE_PORT='many' is not a whole number"):
        Settings.from_environment({"TRIPLEWIRE_PORT": "many"})


def test_all_files_lie_below_the_data_directory_and_none_twice() -> None:
    settings = Settings(data=Path("data"))
    paths = [settings.log, settings.outbox, settings.lake, settings.checkpoints, settings.heartbeat]
    assert len(set(paths)) == len(paths)
    assert all(path.is_relative_to("data") for path in paths)


@pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://localhost:99"), ("10.0.0.1", "http://10.0.0.1:99")])
def test_the_address_is_one_that_a_person_can_open(host: str, url: str) -> None:
    assert Settings(host=host, port=99).url == url


@pytest.mark.parametrize(("old", "new"), RENAMED_SETTINGS.items())
def test_an_old_name_is_refused_with_the_new_one(old: str, new: str) -> None:
    names = {field.name for field in fields(Settings)}
    assert new in names
    assert old not in names
    with pytest.raises(ValueError, match=f"TRIPLEWIRE_{old.upper()} is named TRIPLEWIRE_{new.upper()} now"):
        Settings.from_environment({PREFIX + old.upper(): "1"})
