"""Settings: where they come from, in which order, and what is refused."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import msgspec
import pytest

import seatrial.settings
from seatrial.errors import SettingsError
from seatrial.settings import ROOMS, Settings, load, schema


class Suites(msgspec.Struct, frozen=True, kw_only=True):
    merge_window: float = 30.0
    tools: tuple[str, ...] = ()


def write(folder: Path, text: str, name: str = "seatrial.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_without_a_file_there_are_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, environ={})
    assert settings.store == ".seatrial"
    assert settings.redact is True
    assert settings.level == 0.95
    assert settings.part("suites", Suites) == Suites()


def test_the_later_source_wins(tmp_path: Path) -> None:
    write(tmp_path, "[tool.seatrial]\nseed = 1\nlevel = 0.9\nstore = 'p'\n", "pyproject.toml")
    assert load(tmp_path, environ={}).store == "p"
    write(tmp_path, "seed = 2\nstore = 't'\n")
    settings = load(tmp_path / "a" / "b", environ={"SEATRIAL_SEED": "3"}, overrides={"level": 0.8, "seed": None})
    assert (settings.store, settings.seed, settings.level) == ("t", 3, 0.8)
    assert load(tmp_path, environ={"SEATRIAL_SEED": "3"}, overrides={"seed": 4}).seed == 4


def test_what_is_no_file_or_no_table_is_refused_not_passed_over(tmp_path: Path) -> None:
    for name in ("folder", "link"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "seatrial.toml").mkdir()
    (tmp_path / "link" / "seatrial.toml").symlink_to("nowhere.toml")
    for name in ("folder", "link"):
        with pytest.raises(SettingsError, match="the settings cannot be read"):
            load(tmp_path / name, environ={})
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool]\nseatrial = 3\n")
    with pytest.raises(SettingsError, match=r"expected a table: \[tool.seatrial\]"):
        load(tmp_path, environ={})
    project.write_text("tool = 3\n")
    assert load(tmp_path, environ={}).store == ".seatrial"


def test_the_nearest_folder_with_settings_is_used(tmp_path: Path) -> None:
    write(tmp_path, "seed = 1\n")
    write(tmp_path / "inner", "[project]\nname = 'x'\n", "pyproject.toml")
    assert load(tmp_path / "inner", environ={}).seed == 1
    write(tmp_path / "inner", "seed = 2\n")
    assert load(tmp_path / "inner", environ={}).seed == 2


def test_a_room_types_its_own_table(tmp_path: Path) -> None:
    write(tmp_path, "[suites]\nmerge_window = 10\ntools = ['a']\n")
    assert load(tmp_path, environ={}).part("suites", Suites) == Suites(merge_window=10.0, tools=("a",))


@pytest.mark.parametrize(
    ("text", "name", "line", "says"),
    [
        ("# x\nsed = 1\n", "seatrial.toml", 2, "did you mean 'seed'?"),
        ("[tool.x]\nsed = 1\n[tool.seatrial]\nsed = 1\n", "pyproject.toml", 4, "did you mean 'seed'?"),
        ("seed = 1\n\n[sutes]\nx = 1\n", "seatrial.toml", 3, "did you mean 'suites'?"),
        ("seed = 'x'\n", "seatrial.toml", 1, "Expected `int`, got `str`"),
        ("redact = true\nlevel = 95\n", "seatrial.toml", 2, "not between 0 and 1"),
        ("workers = 0\n", "seatrial.toml", 1, "not at least 1"),
        ("suites = 3\n", "seatrial.toml", 1, "is a table"),
        ("seed = \n", "seatrial.toml", 1, "not valid TOML"),
        ("rooms = 3\n", "seatrial.toml", 1, "no setting 'rooms'"),
        ("[signals]\nthreshold = 0.9\n", "seatrial.toml", 1, "no setting 'signals'"),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path: Path, text: str, name: str, line: int, says: str) -> None:
    path = write(tmp_path, text, name)
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, environ={})
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (
            "[suites]\ntools = []\nmerge_windw = 1\n",
            3,
            "no setting 'suites.merge_windw' (did you mean 'merge_window'?)",
        ),
        ("[gate]\nmerge_window = 1\n[suites]\nmerge_window = 'x'\n", 4, "setting 'suites.merge_window': Expected"),
    ],
)
def test_a_mistake_in_a_room_is_refused_with_its_place(tmp_path: Path, text: str, line: int, says: str) -> None:
    write(tmp_path, text)
    settings = load(tmp_path, environ={})
    with pytest.raises(SettingsError) as caught:
        settings.part("suites", Suites)
    assert caught.value.line == line
    assert says in str(caught.value)


@pytest.mark.parametrize("environ", [{"SEATRIAL_SEED": "x"}, {"SEATRIAL_REDACT": "maybe"}, {"SEATRIAL_LEVEL": "2"}])
def test_the_environment_is_checked_too(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError):
        load(tmp_path, environ=environ)
    assert load(tmp_path, environ={"SEATRIAL_REDACT": "0", "SEATRIAL_DATA": "x"}).redact is False


def test_the_schema_takes_what_is_read_and_refuses_what_is_refused() -> None:
    published = schema({"suites": Suites})
    jsonschema.Draft202012Validator.check_schema(published)
    good = {"seed": 1, "store": "x", "suites": {"merge_window": 3}, "server": {"anything": 1}}
    jsonschema.validate(good, published)
    wrong: list[dict[str, object]] = [
        {"sed": 1},
        {"seed": "x"},
        {"suites": {"merge_windw": 3}},
        {"rooms": {}},
        {"source": "x"},
    ]
    for bad in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, published)


def test_every_table_that_is_taken_is_read() -> None:
    source = Path(seatrial.settings.__file__).parent
    text = "".join(path.read_text() for path in source.rglob("*.py"))
    assert {room for room in ROOMS if f'.part("{room}", ' not in text} == set()


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().seed = 3  # type: ignore[misc]
