"""The original's files, small ones, with parts that a test changes."""

import json
from pathlib import Path

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


def six_goals() -> list[dict[str, object]]:
    """Enough for each split to have one."""
    return [{**HUMAN["B0AAAAAAAA"][0], "instruction": f"want {n}"} for n in range(6)]


def human(**changed: object) -> dict[str, object]:
    """A goal file of one goal, with fields changed."""
    return {"items_human_ins": {"B0AAAAAAAA": [{**HUMAN["B0AAAAAAAA"][0], **changed}]}}


def about(**changed: object) -> dict[str, object]:
    """An attribute file of one product, with fields changed."""
    return {"items_ins_v2_1000": {"B0AAAAAAAA": {**ATTRIBUTES["B0AAAAAAAA"], **changed}}}


def item(**changed: object) -> dict[str, object]:
    """A product file of one product, with fields changed."""
    return {"items_shuffle_1000": [{**ITEM, **changed}]}
