"""WebShop as an environment: episodes, splits, who plays, and what cannot be read."""

import hashlib
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from forethought.environments.registry import make_environment
from forethought.environments.webshop.generator import generate_catalogue
from forethought.environments.webshop.pages import SearchEngine
from forethought.environments.webshop.products import SPLITS, Catalogue, read_catalogue
from forethought.environments.webshop.webshop import EVALUATION_SEEDS, WebShop
from forethought.errors import ConfigError, ForethoughtError, StorageError
from tests.unit.environments.webshop.shops import SHIRT


def made(**options: Any) -> WebShop:
    environment = make_environment("WebShop", **options)
    assert isinstance(environment, WebShop)
    return environment


def play(environment: WebShop, seed: int, skill: float | None = None) -> float:
    """An episode of the expert, or of the weak shopper; its return."""
    environment.reset(seed)
    weak = environment.data_policy(skill or 0.0, np.random.default_rng(seed))
    total = 0.0
    while True:
        action = environment.expert() if skill is None else weak()
        reward, terminated, truncated = environment.step(action.action)
        total += reward
        if terminated or truncated:
            return total


@pytest.mark.parametrize("per_page", [10, 3])
def test_the_expert_always_gets_everything(per_page: int) -> None:
    environment = made(per_page=per_page)
    for number in range(100):
        assert play(environment, EVALUATION_SEEDS + number) == 1.0
        assert environment.success()
        metrics = dict(environment.metrics())
        assert metrics["purchased"] == metrics["type_factor"] == metrics["options_matched"] == 1


def test_the_weak_shopper_is_as_good_as_its_skill() -> None:
    environment = made()
    means = [
        float(np.mean([play(environment, seed, skill) for seed in range(120)]))
        for skill in (0.0, 0.5, 1.0)
    ]
    assert 0.3 < means[0] < means[1] - 0.1 < means[2] - 0.2
    assert means[2] > 0.98


def test_the_splits_share_neither_goals_nor_products() -> None:
    catalogue = generate_catalogue(0)
    assert [len(catalogue.split(name)) for name in ("test", "validation")] == [500, 1000]
    assert sum(len(catalogue.split(name)) for name in SPLITS) == len(catalogue.goals) == 12_000
    parts = [{catalogue.goals[n].asin for n in catalogue.split(name)} for name in SPLITS]
    said = [{catalogue.goals[n].instruction for n in catalogue.split(name)} for name in SPLITS]
    for sets in (parts, said):
        assert len(sets[0] | sets[1] | sets[2]) == sum(map(len, sets))
    assert len({product.category for product in catalogue.products}) == 5


def test_held_out_seeds_have_test_goals() -> None:
    environment = made()
    test = [environment.shop.catalogue.goals[n] for n in range(500)]
    assert environment.held_out_episodes == 500
    environment.reset(EVALUATION_SEEDS + 7)
    assert environment.goal in test
    environment.reset(7)
    assert environment.goal not in test


def test_few_goals_are_shared_out_by_fifths() -> None:
    goals = generate_catalogue(0).goals[:101]
    few = Catalogue((), {}, goals, "official")
    assert [len(few.split(name)) for name in SPLITS] == [61, 20, 20]


def test_the_catalogue_is_the_same_for_the_same_seed() -> None:
    generate_catalogue.cache_clear()
    first = generate_catalogue(3)
    generate_catalogue.cache_clear()
    assert generate_catalogue(3) == first
    assert generate_catalogue(4).products != first.products
    product, goal = first.products[0], first.goals[0]
    told = repr((product, goal)).encode()  # the same on any machine
    assert hashlib.sha256(told).hexdigest()[:16] == "2f1b983e2983004d"


def test_what_cannot_be_done_changes_nothing() -> None:
    environment = made()
    before = environment.reset(0)
    for action in ("click[no such label]", "search[]", "", "buy now", "click[" + "x" * 10_000):
        assert environment.step(action).reward == 0
        assert environment.observation().state_key == before.state_key
    assert dict(environment.metrics())["ineffective"] == 5


def test_a_query_of_a_hundred_thousand_characters_is_a_query() -> None:
    environment = made()
    environment.reset(0)
    started = process_time()
    environment.step(f"search[{'dress shirt ' * 9000}]")
    assert process_time() - started < 5
    assert "Total results: 50" in (environment.observation().text or "")


def test_labels_are_taken_in_any_case() -> None:
    environment = made()
    clicks = ("click[buy now]", "click[navy]")
    assert environment.resolve_action("click[Buy Now]", clicks) == "click[buy now]"
    assert environment.resolve_action("click[red]", clicks) is None
    assert environment.resolve_action("buy", clicks) is None


def test_search_ranks_by_lucenes_formula() -> None:
    """BM25 by hand, on three documents: idf · tf / (tf + k1 · (1 - b + b · length / mean))."""
    from dataclasses import replace

    texts = {"A": "red shoe", "B": "red red lamp of steel", "C": "a blue chair"}
    products = [
        replace(SHIRT, asin=asin, title=title, description="", bullets=(), options=())
        for asin, title in texts.items()
    ]
    engine = SearchEngine(products)
    assert engine.search("red") == ("B", "A")
    lengths = {"A": 2, "B": 4, "C": 2}  # without stop words
    idf, mean = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5)), np.mean(list(lengths.values()))
    wanted = {
        asin: idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * lengths[asin] / mean))
        for asin, tf in (("A", 1), ("B", 2))
    }
    scores = engine._index.get_scores(["red"])  # pyright: ignore[reportPrivateUsage]
    assert scores[:2] == pytest.approx([wanted["A"], wanted["B"]], rel=1e-5)
    assert engine.search("chairs") == ("C",)  # stems
    assert engine.search("of a") == ()


# --- the original's files ----------------------------------------------------------------------

ITEM = {
    "asin": "B0AAAAAAAA",
    "name": "Zeno Dress Shirt",
    "full_description": "A shirt",
    "small_description": ["Machine washable"],
    "pricing": "$20.00",
    "customization_options": {"Color": [{"value": "Dark/Blue "}, {"value": "Red"}], "Size": None},
    "category": "fashion",
    "query": " Dress Shirts ",
    "product_category": "Clothing › Men",
    "images": [None],
}
ATTRIBUTES = {
    "B0AAAAAAAA": {
        "attributes": ["slim fit"],
        "instruction": "Find me slim fit shirts",
        "instruction_attributes": ["slim fit"],
    }
}
HUMAN = {
    "B0AAAAAAAA": [
        {
            "instruction": "i want a slim shirt.",
            "instruction_attributes": ["slim fit"],
            "instruction_options": ["red"],
        },
        {"instruction": "nothing", "instruction_attributes": [], "instruction_options": []},
    ],
    "B0GONE0000": [{"instruction": "gone", "instruction_attributes": ["x"]}],
}


def write(folder: Path, **changed: object) -> str:
    """The three files, with some of them changed."""
    files = {
        "items_shuffle_1000": [ITEM, {**ITEM, "asin": "B0BBBBBBBB", "pricing": "$5.00$9.50"}],
        "items_ins_v2_1000": ATTRIBUTES,
        "items_human_ins": HUMAN,
    }
    for name, content in {**files, **changed}.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return str(folder)


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
    goals = [{**HUMAN["B0AAAAAAAA"][0], "instruction": f"want {n}"} for n in range(6)]
    environment = made(data=write(tmp_path, items_human_ins={"B0AAAAAAAA": goals}))
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


@pytest.mark.parametrize(
    ("changed", "kind", "said"),
    [
        ({"items_human_ins": {"B0GONE0000": HUMAN["B0GONE0000"]}}, StorageError, "1 goals are for"),
        ({"items_human_ins": []}, StorageError, "expected an object by product"),
        ({"items_shuffle_1000": {}}, StorageError, "expected a list of products"),
        ({"items_shuffle_1000": [{"asin": "B0AAAAAAAA"}]}, StorageError, "product 0 cannot be"),
        ({"items_shuffle_1000": ["text"]}, StorageError, "product 0 cannot be read"),
        ({"items_human_ins": {"B0AAAAAAAA": [{}]}}, StorageError, "a goal of B0AAAAAAAA"),
    ],
)
def test_other_files_are_refused_in_one_line(
    tmp_path: Path, changed: dict[str, object], kind: type[ForethoughtError], said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        made(data=write(tmp_path, **changed))
    assert "\n" not in str(caught.value)


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
