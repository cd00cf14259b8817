"""`forethought shop` in a real browser: a person shops, an episode is looked at click by click."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from forethought.environments.webshop.site import ShopSite, Visit
from forethought.environments.webshop.webshop import EVALUATION_SEEDS, WebShop
from forethought.serving.server import running

from tests.browser.browser import DESKTOP, PHONE, Visit as Visited  # isort: skip

HOSTILE = '<script>document.title = "run"</script><img src=x onerror=alert(1)> Shirt'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The original's files, with one product, whose texts are HTML."""
    where = tmp_path_factory.mktemp("files")
    item = {
        "asin": "B0AAAAAAAA",
        "name": HOSTILE,
        "full_description": HOSTILE,
        "small_description": [HOSTILE],
        "pricing": "$20.00",
        "customization_options": {"<b>color": [{"value": "<i>red"}, {"value": "blue"}]},
        "category": "fashion",
        "query": "shirt",
        "product_category": "Clothing › Men",
    }
    goal = {
        "instruction": f"i want {HOSTILE}",
        "instruction_attributes": ["shirt"],
        "instruction_options": ["<i>red"],
    }
    files = {"shuffle": [item], "ins_v2": {}, "human_ins": {"B0AAAAAAAA": [goal] * 5}}
    for name, content in files.items():
        (where / f"items_{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return where


@contextmanager
def opened(
    browser: Browser, make: WebShop, episodes: Sequence[Visit] = (), size: tuple[int, int] = DESKTOP
) -> Generator[Visited]:
    """The shop's first page. Afterwards it must have complained of nothing, and asked nobody."""
    with running(ShopSite(lambda: make, episodes), "127.0.0.1", 0) as address:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]})
        try:
            visited = Visited(context.new_page())
            visited.page.goto(address)
            yield visited
            assert visited.complaints == []
            assert [url for url in visited.requests if not url.startswith(address)] == []
        finally:
            context.close()


def press(visited: Visited, label: str, role: Literal["button", "link"] = "button") -> None:
    """Clicks a button or a link, and waits for the page behind it."""
    with visited.page.expect_navigation():
        visited.page.get_by_role(role, name=label, exact=True).click()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_person_shops(browser: Browser, size: tuple[int, int]) -> None:
    """The expert's clicks, made by hand: the score is 1."""
    expert = WebShop()
    expert.reset(EVALUATION_SEEDS)
    with opened(browser, WebShop(), size=size) as visited:
        press(visited, "begin", "link")
        assert visited.text("#goal") == expert.goal.instruction
        for _ in range(6):
            action = expert.expert().action
            expert.step(action)
            verb, label = action.split("[", 1)
            if verb == "search":
                visited.page.locator("input[name=query]").fill(label[:-1])
                press(visited, "Search")
            else:
                press(visited, {"buy now": "Buy Now"}.get(label[:-1], shown(label[:-1])))
            width = "document.documentElement.scrollWidth - window.innerWidth"
            assert visited.page.evaluate(width) <= 0
            if expert.place.name == "done":
                break
        assert visited.text("#score") == "1.00"
        press(visited, "another goal", "link")
        assert visited.text("#goal") != expert.goal.instruction


def shown(label: str) -> str:
    """Products are called by their codes, in capitals."""
    return label.upper() if label.startswith("b0") else label


def test_an_episode_is_looked_at_click_by_click(browser: Browser) -> None:
    environment = WebShop()
    environment.reset(EVALUATION_SEEDS)
    actions: list[str] = []
    while environment.place.name != "done":
        actions.append(environment.expert().action)
        environment.step(actions[-1])
    actions.insert(1, "click[no such thing]")
    thoughts = tuple(f"thought {n} <b>&" for n in range(len(actions)))
    visit = Visit(EVALUATION_SEEDS, tuple(actions), thoughts, 1.0)
    with opened(browser, WebShop(), [visit]) as visited:
        press(visited, "episode 0", "link")
        for number, action in enumerate(actions):
            assert visited.text("#action") == f"the agent does: {action}"
            assert thoughts[number] in visited.text(".replay")
            assert visited.page.locator(".acted").count() == (number != 1)
            assert visited.page.locator("button:not([disabled])").count() == 0
            press(visited, "next", "link")
        assert visited.text("#action") == "the episode is over"
        assert visited.text("#score") == "1.00"
        press(visited, "previous", "link")
        assert visited.text("#action") == f"the agent does: {actions[-1]}"


def test_html_in_products_is_text(browser: Browser, folder: Path) -> None:
    with opened(browser, WebShop(data=str(folder))) as visited:
        press(visited, "begin", "link")
        assert HOSTILE in visited.text("#goal")
        visited.page.locator("input[name=query]").fill("shirt")
        press(visited, "Search")
        assert visited.text(".row h3") == HOSTILE
        press(visited, "B0AAAAAAAA")
        assert visited.text(".item h2") == HOSTILE
        press(visited, "<i>red")
        for tab in ("Description", "Features"):
            press(visited, tab)
            assert visited.text(".row") == HOSTILE
            press(visited, "< Prev")
        press(visited, "Buy Now")
        assert visited.text("#score") == "1.00"
        assert visited.page.title() == "WebShop"
        assert visited.page.locator("script, main img").count() == 0
