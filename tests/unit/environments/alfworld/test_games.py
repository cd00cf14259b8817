"""Generated games: which there are, that they are what they claim, and their files."""

import json
from collections import Counter
from pathlib import Path

import pytest

from forethought.environments.alfworld.engine import Engine
from forethought.environments.alfworld.games import GAME_FILE, find_games, read_game, write_game
from forethought.environments.alfworld.generator import (
    Draw,
    FolderGames,
    GeneratedGames,
    draw_game,
    generate_game,
    goals_in,
    open_games,
    possible_rooms,
    present_games,
    task_types_of,
    write_games,
)
from forethought.environments.alfworld.grammar import readable_names
from forethought.environments.alfworld.package import (
    SPLITS,
    TaskType,
    load_room,
    room_numbers,
    rooms_of,
)
from forethought.environments.alfworld.scene import kind_of, pddl_name, receptacles_of
from forethought.errors import ConfigError, StorageError
from tests.unit.environments.alfworld.conftest import small_game


def test_all_rooms_are_used_and_unseen_ones_are_apart() -> None:
    seen, unseen = set(rooms_of("train")), set(rooms_of("valid_unseen"))
    assert seen | unseen == set(room_numbers())
    assert (len(seen), len(unseen)) == (92, 28)
    assert not seen & unseen
    assert rooms_of("valid_seen") == rooms_of("train")
    assert {10, 219, 308, 424} <= unseen


@pytest.mark.parametrize("kind", TaskType)
def test_unseen_pairs_are_apart(kind: TaskType) -> None:
    pairs = {
        split: {
            (goal.thing, goal.aim)
            for room in possible_rooms(split, kind)
            for goal in goals_in(room, split, kind)
        }
        for split in SPLITS
    }
    assert pairs["train"] == pairs["valid_seen"]
    assert pairs["valid_unseen"]
    assert not pairs["train"] & pairs["valid_unseen"]


def test_kinds_come_as_often_as_in_the_official_split() -> None:
    kinds = task_types_of("train")
    assert Counter(kinds)[TaskType.PICK2] == 813
    assert len(kinds) == 3553
    first = Counter(kinds[:100])
    assert all(abs(first[kind] - Counter(kinds)[kind] / 35.53) < 2 for kind in TaskType)


def test_a_drawing_is_a_function_of_its_numbers() -> None:
    assert draw_game(Draw(3, "train", 5)) == draw_game(Draw(3, "train", 5))
    others = [Draw(4, "train", 5), Draw(3, "train", 6), Draw(3, "train", 5, 1)]
    problems = {draw_game(draw).text.problem for draw in (Draw(3, "train", 5), *others)}
    assert len(problems) == 4


def test_nothing_is_in_place_at_the_start() -> None:
    for index in range(60):
        game = draw_game(Draw(0, "train", index))
        if game.goal.task_type is not TaskType.LOOK:
            kind = f"{game.goal.place}_bar_" if "Basin" not in game.goal.place else "SinkBasin"
            lies = [line for line in game.text.problem.splitlines() if "(inReceptacle" in line]
            mine = [line for line in lies if f" {game.goal.thing}_bar_" in line]
            assert mine, game.folder
            assert not [line for line in mine if kind in line.split()[-1]], game.folder


def test_every_room_has_what_its_objects_list_names() -> None:
    kinds = {r.kind for r in receptacles_of(load_room(1))}
    assert {"CoffeeMachine", "StoveBurner", "Toaster", "GarbageCan", "Fridge"} <= kinds
    burners = [r.point for r in receptacles_of(load_room(1)) if r.kind == "StoveBurner"]
    assert len(burners) == 4
    assert len(set(burners)) == 2, "reached two by two"
    for number in room_numbers():
        assert all(kind_of(r.id) == r.kind for r in receptacles_of(load_room(number)))
        names = [r.id for r in receptacles_of(load_room(number))]
        assert len(set(names)) == len(names)


def test_what_the_agent_reads_is_what_the_goal_names() -> None:
    """Room 425's plan has no place for its sink."""
    names = readable_names(pddl_name(r.id).lower() for r in receptacles_of(load_room(425)))
    kinds = {r.kind.lower() for r in receptacles_of(load_room(425))}
    assert "sinkbasin" in kinds
    assert {name.rpartition(" ")[0] for name in names.values()} == kinds


def test_generated_games_are_kept_by_number(engine: Engine, cache: Path) -> None:
    first = generate_game(7, "valid_unseen", 2, engine)
    assert first.walkthrough
    assert (cache / "alfworld" / "drawn").exists()
    assert generate_game(7, "valid_unseen", 2, engine) == first


def test_a_folder_gives_back_what_was_written(tmp_path: Path) -> None:
    game = small_game(TaskType.LOOK)
    folder = write_game(tmp_path, "train", game, ("look",))
    assert folder.relative_to(tmp_path).as_posix() == (
        "json_2.1.1/train/look_at_obj_in_light-Mug-None-DeskLamp-1/trial_T_Look"
    )
    assert read_game(folder) == game
    stored = json.loads((folder / "traj_data.json").read_text())
    assert stored["pddl_params"]["parent_target"] == ""
    assert json.loads((folder / GAME_FILE).read_text())["walkthrough"] == ["look"]


def test_only_what_the_package_plays_is_found(games: Path, tmp_path: Path) -> None:
    assert len(find_games(games, "train")) == 6
    for name, change in {
        "pick_and_place_with_movable_recep-Mug-Cup-Shelf-1": ("", ""),
        "pick_and_place_simple-MugSliced-None-Shelf-1": ("", ""),
        "pick_and_place_simple-Mug-None-Shelf-1": ('"solvable": true', '"solvable": false'),
        "pick_and_place_simple-Mug-None-Shelf-2": ("", ""),
    }.items():
        source = find_games(games, "train")[0]
        target = tmp_path / "train" / name / "trial_1"
        target.mkdir(parents=True)
        for path in source.iterdir():
            (target / path.name).write_text(path.read_text().replace(*change))
    found = find_games(tmp_path, "train")
    assert [path.parent.name for path in found] == ["pick_and_place_simple-Mug-None-Shelf-2"]
    with pytest.raises(StorageError, match="no games of split valid_seen"):
        find_games(tmp_path, "valid_seen")


def test_official_games_are_known_and_counted(games: Path, tmp_path: Path) -> None:
    source = find_games(games, "train")[0]
    target = tmp_path / "train" / source.parent.name / source.name
    target.mkdir(parents=True)
    for path in source.iterdir():
        (target / path.name).write_text(path.read_text().replace('"forethought"', '"other"'))
    with pytest.warns(UserWarning, match="1 games of train, the official data 3553"):
        assert open_games(str(tmp_path), "train").is_official
    assert not open_games(str(games), "train").is_official


def test_a_broken_game_is_named(tmp_path: Path) -> None:
    folder = write_game(tmp_path, "train", small_game(TaskType.PICK), ())
    (folder / "traj_data.json").write_text('{"task_type": "pick_and_place_simple"}')
    with pytest.raises(StorageError, match="not in ALFWorld's format"):
        read_game(folder)


def test_games_come_from_where_they_are_named(games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_games(None, "train"), GeneratedGames)
    monkeypatch.setenv("ALFWORLD_DATA", str(games))
    assert open_games(None, "train") == FolderGames(games, "train")


def test_a_set_is_completed_and_not_mixed(tmp_path: Path) -> None:
    assert len(list(write_games(tmp_path, 7, "valid_unseen", [2], workers=0))) == 1
    assert present_games(tmp_path, "valid_unseen", 7) == {2}
    with pytest.raises(ConfigError, match="not of seed 8"):
        present_games(tmp_path, "valid_unseen", 8)


def test_a_game_that_cannot_be_written_ends_the_command_at_once(
    tmp_path: Path, cache: Path
) -> None:
    """And not behind the last game."""
    (tmp_path / "json_2.1.1").write_text("not a folder")
    with pytest.raises(StorageError, match="cannot be written"):
        list(write_games(tmp_path, 9, "valid_unseen", list(range(400)), workers=1))
    assert len(list((cache / "alfworld" / "drawn").glob("*_9_valid_*"))) < 10
