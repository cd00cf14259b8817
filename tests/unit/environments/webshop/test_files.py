"""The original's product and goal files: what they mean, and what is refused in one line."""

from pathlib import Path

import pytest

from forethought.environments.webshop.files import read_catalogue
from forethought.errors import ConfigError, StorageError
from tests.unit.environments.webshop.official import (
    ATTRIBUTES,
    HUMAN,
    ITEM,
    about,
    human,
    item,
    six_goals,
    write,
)
from tests.unit.environments.webshop.shops import made, play


def test_files_are_read_as_the_original_reads_them(tmp_path: Path) -> None:
    catalogue = read_catalogue(write(tmp_path), "human")
    shirt, ranged = catalogue.products
    assert shirt.options == (("color", ("dark | blue", "red")),)
    assert (shirt.query, shirt.price, shirt.price_tag) == ("dress shirts", 20.0, "$20.0")
    assert ranged.price_tag == "$5.0 to $9.5"
    assert 5.0 <= ranged.price <= 9.5
    assert ranged.attributes == ("DUMMY_ATTR",)
    (goal,) = catalogue.goals
    assert goal.instruction.startswith("i want a slim shirt, and price lower than ")
    assert goal.options == ("red",)
    assert catalogue.goals_without_product == 1
    with pytest.raises(ConfigError, match=r"\(1 goals\)' — expected a folder with 5 goals"):
        made(data=str(tmp_path))


def test_files_are_played(tmp_path: Path) -> None:
    environment = made(data=write(tmp_path, items_human_ins={"B0AAAAAAAA": six_goals()}))
    assert [play(environment, seed) for seed in range(8)] == [1.0] * 8
    assert environment.held_out_episodes == 1
    assert environment.shop.catalogue.label == "official"


def test_synthetic_goals_are_all_combinations(tmp_path: Path) -> None:
    catalogue = read_catalogue(write(tmp_path), "synthetic")
    assert sorted(goal.instruction.split(", and price")[0] for goal in catalogue.goals) == [
        "Find me slim fit shirts with color: dark | blue",
        "Find me slim fit shirts with color: red",
    ]
    assert {goal.options for goal in catalogue.goals} == {
        (("color", "dark | blue"),),
        (("color", "red"),),
    }


# --- what the original passes over ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "field", "value"),
    [
        (item(small_description="One text"), "bullets", ("One text",)),
        (item(small_description=None), "bullets", ("",)),
        (item(small_description=[]), "bullets", ()),
        (item(full_description=None), "description", ""),
        (item(category=None), "category", ""),
        (item(pricing=None), "price_tag", "$100.0"),
        (item(pricing=""), "price_tag", "$100.0"),
        (item(pricing="$1,299.50 / ounce"), "price_tag", "$1299.5"),
        (item(customization_options=""), "options", ()),
        (item(customization_options=None), "options", ()),
        (item(customization_options={"Size": []}), "options", (("size", ()),)),
        (
            item(customization_options={"A": [{"value": "x"}], "a": [{"value": "y"}]}),
            "options",
            (("a", ("y",)),),
        ),
        (about(attributes=[]), "attributes", ()),
        ({"items_ins_v2_1000": {"B0AAAAAAAA": {}}}, "attributes", ("DUMMY_ATTR",)),
        ({"items_ins_v2_1000": {"B0GONE0000": None}}, "attributes", ("DUMMY_ATTR",)),
    ],
)
def test_odd_products_that_the_original_reads(
    tmp_path: Path, changed: dict[str, object], field: str, value: object
) -> None:
    (first, *_) = read_catalogue(write(tmp_path, **changed), "human").products
    assert getattr(first, field) == value


def test_odd_goals_that_the_original_reads(tmp_path: Path) -> None:
    empty = {"instruction_attributes": []}  # nothing else of it is looked at
    pair = {**HUMAN["B0AAAAAAAA"][0], "instruction_options": {"color": "red"}}
    content = {"B0AAAAAAAA": [empty, pair], "B0GONE0000": None, "B0GONE0001": "text"}
    catalogue = read_catalogue(write(tmp_path, items_human_ins=content), "human")
    assert [goal.options for goal in catalogue.goals] == [(("color", "red"),)]
    assert catalogue.goals_without_product == 0
    gone = {"B0GONE0000": None, "B0GONE0001": [5], "B0GONE0002": {"instruction": 5}}
    (tmp_path / "again").mkdir()
    folder = write(tmp_path / "again", items_ins_v2_1000={**ATTRIBUTES, **gone})
    assert read_catalogue(folder, "synthetic").goals_without_product == 2


def test_products_without_a_code_of_their_own_are_left_out(tmp_path: Path) -> None:
    """Before anything else of them is looked at, as in the original."""
    codes = ("B0AAAAAAAA", "nan", "B0AAAAAAAA", "B0AAAAAAAAA")
    items = [ITEM, *({"asin": code} for code in codes)]
    assert len(read_catalogue(write(tmp_path, items_shuffle_1000=items), "human").products) == 1


def test_a_code_in_lower_case_is_played(tmp_path: Path) -> None:
    environment = made(
        data=write(
            tmp_path,
            **item(asin="b0aaaaaaaa"),
            items_ins_v2_1000={"b0aaaaaaaa": ATTRIBUTES["B0AAAAAAAA"]},
            items_human_ins={"b0aaaaaaaa": six_goals()},
        )
    )
    assert play(environment, 0) == 1.0
    assert play(environment, 0, skill=0.5) > 0


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(read_catalogue(folder, "human").products) == 2


# --- what is refused -----------------------------------------------------------------------------

SHUFFLE, INS, ASKED = (
    f"items_{name}.json" for name in ("shuffle_1000", "ins_v2_1000", "human_ins")
)
SHIRT = f"{SHUFFLE}: product 0 (B0AAAAAAAA)"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"items_shuffle_1000": {}}, f"{SHUFFLE} is an object — expected a list of products"),
        ({"items_shuffle_1000": ["x"]}, f"{SHUFFLE}: product 0 is the text 'x' — expected an obj"),
        ({"items_shuffle_1000": [{}]}, f"{SHUFFLE}: product 0 has no field 'asin'"),
        (item(asin=5), f"{SHUFFLE}: product 0: asin is the number 5 — expected a text"),
        ({"items_shuffle_1000": [{"asin": "B0"}]}, "product 0 (B0) has no field 'small_descr"),
        (item(name=None), f"{SHIRT}: name is null — expected a text; correct the file, or get it"),
        (item(name=5), f"{SHIRT}: name is the number 5 — expected a text"),
        (item(product_category=None), f"{SHIRT}: product_category is null — expected a text"),
        (item(query=True), f"{SHIRT}: query is true — expected a text"),
        (item(category=[]), f"{SHIRT}: category is an empty list — expected"),
        (item(full_description=float("nan")), f"{SHIRT}: full_description is the number nan"),
        (item(small_description=["a", None]), f"{SHIRT}: small_description: entry 1 is null"),
        (item(pricing=5), f"{SHIRT}: pricing is the number 5 — expected a text"),
        (
            item(pricing="$1.2.3"),
            f"{SHIRT}: pricing is the text '$1.2.3' — expected a price or two",
        ),
        (item(customization_options=[1]), f"{SHIRT}: customization_options is a list"),
        (
            item(customization_options={"a\nb": "x"}),
            "options: a b is the text 'x' — expected a list",
        ),
        (
            item(customization_options={"Size": [{"value": None}]}),
            "Size: value 0: value is null — expected a text",
        ),
        (
            {"items_ins_v2_1000": {"B0AAAAAAAA": None}},
            f"{INS}: B0AAAAAAAA is null — expected an ob",
        ),
        (
            about(attributes="slim"),
            f"{INS}: B0AAAAAAAA: attributes is the text 'slim' — expected a",
        ),
        (about(attributes=[5]), "attributes: entry 0 is the number 5 — expected a text"),
        ({"items_human_ins": []}, f"{ASKED} is an empty list — expected an"),
        (
            {"items_human_ins": {"B0AAAAAAAA": None}},
            f"{ASKED}: B0AAAAAAAA is null — expected a list",
        ),
        (
            {"items_human_ins": {"B0AAAAAAAA": [{}]}},
            "B0AAAAAAAA: goal 0 has no field 'instruction_",
        ),
        (
            {"items_human_ins": {"B0AAAAAAAA": [None]}},
            "B0AAAAAAAA: goal 0 is null — expected an ob",
        ),
        (human(instruction=None), "goal 0: instruction is null — expected a text"),
        (human(instruction_attributes=[5]), "instruction_attributes: entry 0 is the number 5"),
        (human(instruction_attributes=[None]), "instruction_attributes: entry 0 is null"),
        (human(instruction_attributes="slim"), "instruction_attributes is the text 'slim' — expec"),
        (human(instruction_options=[5]), "instruction_options: entry 0 is the number 5"),
        (human(instruction_options="red"), "instruction_options is the text 'red' — expected a li"),
        ({"items_human_ins": {"B0GONE0000": HUMAN["B0GONE0000"]}}, "(1 goals are for others)"),
    ],
)
def test_other_files_are_refused_in_one_line(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    with pytest.raises(StorageError) as caught:
        made(data=write(tmp_path, **changed))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (about(instruction=5), f"{INS}: B0AAAAAAAA: instruction is the number 5 — expected a text"),
        (
            about(instruction_attributes=[]),
            "instruction_attributes is an empty list — expected one",
        ),
        (about(instruction_attributes=None), "instruction_attributes is null — expected a list of"),
        (
            {"items_ins_v2_1000": {"B0AAAAAAAA": {"instruction": "Find me shirts"}}},
            f"{INS}: B0AAAAAAAA has no field 'instruction_attributes'",
        ),
        (about(instruction=None), "no synthetic goal belongs to one of the 2 products"),
    ],
)
def test_other_synthetic_goals_are_refused_in_one_line(
    tmp_path: Path, changed: dict[str, object], said: str
) -> None:
    with pytest.raises(StorageError) as caught:
        read_catalogue(write(tmp_path, **changed), "synthetic")
    assert said in str(caught.value)


def test_products_without_a_word_are_refused(tmp_path: Path) -> None:
    blank = item(name="!!!", full_description="", small_description=[], customization_options={})
    with pytest.raises(StorageError, match="none of the 1 products has a word that a search can"):
        made(data=write(tmp_path, **blank))


def test_lists_in_lists_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (tmp_path / ASKED).write_text("[" * 100_000)
    with pytest.raises(StorageError, match=r"items_human_ins\.json holds lists in lists, too deep"):
        made(data=folder)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (tmp_path / ASKED).unlink()
    (tmp_path / ASKED).mkdir()
    with pytest.raises(
        StorageError, match=r"items_human_ins\.json cannot be read \(Is a directory"
    ):
        made(data=folder)


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path)
    path = tmp_path / "items_shuffle_1000.json"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(StorageError, match="is not whole JSON"):
        made(data=folder)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a folder with items_shuffle"):
        made(data=str(tmp_path))
    (tmp_path / "items_shuffle.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"items_ins_v2\.json does not exist"):
        made(data=str(tmp_path))
