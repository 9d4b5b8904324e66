"""The picture of the folders is drawn from the imports, and is current."""

from xml.etree import ElementTree

import pytest

from tools import rooms


@pytest.fixture(scope="module")
def picture():
    return rooms.picture()


def test_the_picture_is_current(picture, monkeypatch):
    monkeypatch.setattr(rooms, "picture", lambda: picture)
    assert rooms.main(["--check"]) == 0, "run `python -m tools.rooms`"


def test_an_old_picture_is_noticed(picture, monkeypatch, tmp_path, capsys):
    old = tmp_path / "rooms.svg"
    monkeypatch.setattr(rooms, "PICTURE", old)
    monkeypatch.setattr(rooms, "picture", lambda: picture)
    assert rooms.main(["--check"]) == 1
    assert rooms.main([]) == 0
    assert rooms.main(["--check"]) == 0
    old.write_text(old.read_text().replace("estimators", "elsewhere"))
    assert rooms.main(["--check"]) == 1
    assert "python -m tools.rooms" in capsys.readouterr().err


def test_the_picture_shows_every_folder(picture):
    root = ElementTree.fromstring(picture)
    shown = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert set(rooms.folders()) <= shown


def test_arrows_that_others_imply_are_left_out():
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert rooms.reduced(graph) == [("a", "b"), ("b", "c")]


def test_a_folder_stands_below_those_that_import_it():
    graph = {"top": {"middle", "leaf"}, "middle": {"low"}, "low": set(), "leaf": set()}
    assert rooms.rows_of(graph) == {"top": 2, "middle": 1, "leaf": 1, "low": 0}


def test_a_folder_without_a_column_is_named():
    with pytest.raises(SystemExit, match="attic"):
        rooms.places_of({"core": set(), "attic": {"core"}})


def test_an_arrow_does_not_cross_a_folder():
    top, between, low = (rooms.Place(0, row, 3) for row in (2, 1, 0))
    with pytest.raises(SystemExit, match="cross"):
        rooms.down(top, low, {top, between, low})
