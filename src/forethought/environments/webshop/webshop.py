"""WebShop: search a shop, choose a product and its options, and buy what was asked for."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np

from forethought.configs.parts import ResponseFormat
from forethought.environments.contract import (
    Ceiling,
    DataPolicy,
    ExpertAction,
    Prompter,
    Transition,
    Wording,
)
from forethought.environments.parts import Episode, require_option, require_whole_number
from forethought.environments.webshop.files import GoalSource, read_catalogue
from forethought.environments.webshop.generator import generate_catalogue
from forethought.environments.webshop.pages import (
    HITS,
    PER_PAGE,
    Piece,
    Place,
    SearchEngine,
    Shop,
    as_rich_text,
    as_text,
    clicks_of,
    follow,
    parse_action,
    pieces_of,
)
from forethought.environments.webshop.products import SPLITS, Goal, Split
from forethought.environments.webshop.reward import Reward, reward_of
from forethought.environments.webshop.shoppers import (
    Plan,
    advise,
    make_plan,
    queries,
    weak_action,
)
from forethought.environments.webshop.thoughts import webshop_facts
from forethought.environments.webshop.wording import WebShopPrompter
from forethought.errors import StorageError
from forethought.types import Metric, Observation, ThoughtFacts

View = Literal["text", "text_rich"]
SplitOption = Literal["by_seed", "train", "validation", "test"]

EVALUATION_SEEDS = 1 << 61
"""Held-out episodes have seeds from here on (`rollouts/seeding.py`)."""

LIMIT_STEPS = 15
DATA_SKILL = 0.4
NOTHING = Reward(0.0, 0.0, 0.0, 0.0, False)


@lru_cache(maxsize=2)
def open_shop(data: str | None, goals: GoalSource, catalogue_seed: int) -> Shop:
    """The shop of a folder, or the generated one; built once in a process.

    Raises:
        ConfigError, StorageError: the folder's files are missing, cut short or something else.
    """
    made = data is None
    catalogue = generate_catalogue(catalogue_seed) if made else read_catalogue(data, goals)
    engine = SearchEngine(catalogue.products)
    if engine.is_empty:
        raise StorageError(
            f"{data}: none of the {len(catalogue.products)} products has a word that a search can "
            "find — expected titles or descriptions in words: get the file again"
        )
    return Shop(catalogue, engine)


class WebShop:
    """Search a shop, choose a product and its options, and buy what was asked for.

    Description: WebShop (Yao et al. 2022): the public repository's pages, actions, reward and
    splits, over its own product files (`data`) or over a generated catalogue of 12,000 products
    of 50 kinds in 5 categories, with near-duplicates. Search is BM25 with Lucene's formula.

    Observation: the page as text. `text`: all that it says, pieces separated by [SEP]. Chosen
    options look like others there. `text_rich`: one piece a line, what can be clicked is marked,
    and so is what was clicked.

    Actions: open text, `search[query]` on any page, `click[label]` for one of the labels on the
    page, in any case. The labels are listed, but on the search page, where only a query makes
    sense. Anything else changes nothing.

    Rewards: at the purchase, r_type · (attributes matched + options matched + [price within the
    cap]) / (attributes + options + 1), see `reward.py`; before it 0.

    Start: the search page, with the goal of the seed: seed modulo the number of
    goals. Seeds of held-out episodes have test goals, others train goals, unless `split` names
    one. The splits share no goal; in the generated catalogue they share no goal's product either.

    End: terminated by the purchase, truncated after `limit_steps` actions.

    Success: the reward is 1.

    Ceiling: generated: 100 %, exact: every goal's product brings 1, and its title finds it.
    Official files: the same is estimated; some goals of people ask for what nothing satisfies.

    Data policy: the weak shopper (`shoppers.py`): `skill` is the share of its decisions that are
    the expert's.

    Arguments:
        data: folder with the original's files, or None for the generated catalogue.
        goals: human or synthetic; of the original's files.
        catalogue_seed: of the generated catalogue.
        split: by_seed, train, validation or test.
        view: text or text_rich.
        per_page: products on a page of results, 1 to 50; the original's 10.
        limit_steps: 1 to 1000. The original has none; ReAct's and later agents had 15.

    Version history:
        v0: first version.
    """

    def __init__(
        self,
        data: str | None = None,
        goals: GoalSource = "human",
        catalogue_seed: int = 0,
        split: SplitOption = "by_seed",
        view: View = "text",
        per_page: int = PER_PAGE,
        limit_steps: int = LIMIT_STEPS,
    ) -> None:
        require_option(data is None or bool(data), "data", data, "a folder, or nothing")
        require_option(goals in get_args(GoalSource), "goals", goals, "human or synthetic")
        require_whole_number("catalogue_seed", catalogue_seed, 0, 1 << 31)
        require_whole_number("per_page", per_page, 1, HITS)
        splits = get_args(SplitOption)
        require_option(split in splits, "split", split, ", ".join(splits))
        require_option(view in get_args(View), "view", view, "text or text_rich")
        require_whole_number("limit_steps", limit_steps, 1, 1000)
        self._source: tuple[str | None, GoalSource, int] = (data, goals, catalogue_seed)
        if data is not None:  # what is wrong with the files is said at once
            count = len(open_shop(*self._source).catalogue.goals)
            expected = f"a folder with {len(SPLITS) + 2} goals or more, so that each split has one"
            require_option(count >= len(SPLITS) + 2, "data", f"{data} ({count} goals)", expected)
        self._per_page = per_page
        self._split: SplitOption = split
        self._view: View = view
        self._held_out: Split = "test" if split == "by_seed" else split
        self._episode = Episode(limit_steps)

    @property
    def actions(self) -> None:
        """Queries are open text."""
        return

    @property
    def ceiling(self) -> Ceiling:
        """Every goal has a product that meets it, so 1."""
        if self._source[0] is None:
            return Ceiling(1.0, "exact: each goal's product brings reward 1 and can be found")
        return Ceiling(1.0, "estimated: each goal is written for a product of the catalogue")

    @property
    def data_skill(self) -> float:
        """How often the weak shopper acts as the expert."""
        return DATA_SKILL

    @property
    def held_out_episodes(self) -> int:
        """The goals that held-out seeds go through, one after the other."""
        return len(self.shop.catalogue.split(self._held_out))

    @cached_property
    def shop(self) -> Shop:
        """Catalogue and search engine, opened when first needed; all instances of a process share
        them."""
        return replace(open_shop(*self._source), per_page=self._per_page)

    @property
    def place(self) -> Place:
        """Where the shopper is."""
        return self._place

    @property
    def goal(self) -> Goal:
        """What is to be bought in this episode."""
        return self._goal

    @property
    def purchase(self) -> Reward:
        """What the purchase brought, in parts; zeros before it."""
        return self._reward

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The present page."""
        return self._pieces

    def reset(self, seed: int) -> Observation:
        """Starts on the search page, with the goal that the seed stands for."""
        is_training = self._split == "by_seed" and seed < EVALUATION_SEEDS
        numbers = self.shop.catalogue.split("train" if is_training else self._held_out)
        self._goal = self.shop.catalogue.goals[numbers[seed % len(numbers)]]
        self._reward, self._ineffective = NOTHING, 0
        self._planned: Plan | None = None
        self._go(Place())
        self._episode.begin()
        return self.observation()

    def observation(self) -> Observation:
        """The page as text, with what can be clicked."""
        pieces, place = self._pieces, self._place
        text = as_text(pieces) if self._view == "text" else as_rich_text(pieces, place)
        return Observation(
            text=text,
            image=None,
            admissible_actions=None if place.name == "search" else self._clickable,
            state_key=self._key(),
            goal=self._goal.instruction,
            task_type=self._goal.category,
        )

    def step(self, action: str) -> Transition:
        """Searches or clicks; buying ends the episode and pays.

        Raises:
            RuntimeError: the episode is over.
        """
        self._episode.require_open()
        place = follow(self.shop, self._place, action, self._clicks)
        if place is None:
            self._ineffective += 1
            return self._episode.record(0.0, terminated=False)
        if place.name == "done":
            values = [value for _, value in place.chosen]
            self._reward = reward_of(self.shop.product(place), values, self._goal)
        self._go(place)
        return self._episode.record(self._reward.total, terminated=place.name == "done")

    def resolve_action(self, text: str, admissible: Sequence[str]) -> str | None:
        """Labels are taken in any case, and what follows the bracket is passed over."""
        action = parse_action(text)
        if action is None:
            return None
        plain = f"{action[0]}[{action[1]}]"
        return plain if plain in admissible else None

    def prompter(self, response_format: ResponseFormat, wording: Wording) -> Prompter:
        """One wording: there is no published one."""
        return WebShopPrompter(response_format)

    def legal_actions(self) -> tuple[str, ...]:
        """The clicks of this page; on the search page the queries of the original's baselines
        (kind, attribute and kind, instruction), and the expert's."""
        if self._episode.is_over:
            return ()
        if self._place.name != "search":
            return self._clickable
        goal = self._goal
        typed = (goal.query, *(f"{one} {goal.query}" for one in goal.attributes), *queries(goal))
        return tuple(dict.fromkeys(f"search[{text}]" for text in (*typed, self._plan().query)))

    def expert(self) -> ExpertAction:
        """The next action towards a product that meets the goal."""
        self._episode.require_open()
        return advise(self.shop, self._place, self._goal, self._plan())

    def data_policy(self, skill: float, randomness: np.random.Generator) -> DataPolicy:
        """The weak shopper's actions.

        Raises:
            ConfigError: a skill beyond 0 to 1.
        """
        require_option(0 <= skill <= 1, "skill", skill, "0 (careless) to 1 (the expert's choices)")

        def act() -> ExpertAction:
            action = weak_action(
                shop=self.shop,
                place=self._place,
                goal=self._goal,
                plan=self._plan(),
                skill=skill,
                randomness=randomness,
            )
            return ExpertAction(action, ())

        return act

    def thought_facts(self, response: str) -> ThoughtFacts:
        """What is said of products, prices, options and the goal."""
        return webshop_facts(response, shop=self.shop, place=self._place, goal=self._goal)

    def success(self) -> bool:
        """Whether the reward is 1."""
        return self._reward.total == 1.0

    def metrics(self) -> tuple[Metric, ...]:
        """The reward and its parts, whether the very product was bought for which the goal was
        written, and how many actions changed nothing."""
        bought = self._place.name == "done"
        return (
            Metric("score", self._reward.total),
            Metric("type_factor", self._reward.type_factor),
            Metric("attributes_matched", self._reward.attributes),
            Metric("options_matched", self._reward.options),
            Metric("price_matched", float(self._reward.price)),
            Metric("same_product", float(bought and self._place.asin == self._goal.asin)),
            Metric("purchased", float(bought)),
            Metric("ineffective", float(self._ineffective)),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _plan(self) -> Plan:
        if self._planned is None:
            self._planned = make_plan(self.shop, self._goal)
        return self._planned

    def _go(self, place: Place) -> None:
        self._place = place
        self._pieces = pieces_of(self.shop, place, self._goal, self._reward.total)
        self._clicks = clicks_of(self._pieces)
        self._clickable = tuple(f"click[{label}]" for label in self._clicks)

    def _key(self) -> str:
        """A digest of the goal and of the place."""
        place = self._place
        known = (self._goal.asin, self._goal.instruction, place.name, place.keywords, place.page)
        whole = repr((*known, place.asin, place.chosen, sorted(place.visited)))
        return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]
