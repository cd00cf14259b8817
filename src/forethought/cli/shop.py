"""`forethought shop`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from forethought.cli.flags import Placeholder
from forethought.configs.parts import EnvironmentConfig, PromptConfig, require
from forethought.environments.webshop.site import ShopSite, Visit
from forethought.environments.webshop.webshop import WebShop
from forethought.errors import ConfigError
from forethought.rollouts.store import read_shards
from forethought.rollouts.task import open_task
from forethought.serving.server import running


@dataclass(frozen=True)
class Shop:
    """Which shop, which episodes, and where."""

    episodes: Annotated[str | None, Placeholder("DATA")] = None
    """A folder of shards, or one shard, of WebShop episodes (`forethought collect`, a run's
    `evaluation_episodes.parquet`): they can be looked at click by click."""

    options: tuple[str, ...] = ()
    """Options of WebShop as `name=value`, e.g. `data=FOLDER`; for stored episodes those with which
    they were played."""

    host: str = "127.0.0.1"
    """Address to listen at. The default is heard on this machine alone."""

    port: int = 8080
    """0 takes a free one, which is printed."""

    def __post_init__(self) -> None:
        require(0 <= self.port < 2**16, "port", self.port, "0 to 65535")


def shop(settings: Shop) -> None:
    """Open WebShop in a browser: shop yourself, or view an agent's episodes click by click.

    Ctrl-C closes it.

    Examples:
      forethought shop
      forethought shop --episodes runs/webshop/evaluation_episodes.parquet --options per_page=5
      forethought shop --options data=/data/webshop goals=human
    """
    config = EnvironmentConfig(id="WebShop", options=settings.options)
    factory = open_task(config, PromptConfig(), default_image_size=None).factory

    def make() -> WebShop:
        environment = factory()
        assert isinstance(environment, WebShop)
        return environment

    episodes = tuple(_visits(settings.episodes)) if settings.episodes else ()
    catalogue = make().shop.catalogue
    site = ShopSite(make, episodes, settings.host)
    with running(site, settings.host, settings.port) as address:
        told = f"{len(catalogue.products):,} products, {len(catalogue.goals):,} goals"
        missing = catalogue.goals_without_product
        told += f", {missing:,} goals left out for want of their product" if missing else ""
        print(f"{catalogue.label} catalogue: {told}; {len(episodes):,} episodes", flush=True)
        print(f"open {address} — Ctrl-C closes the shop", flush=True)
        while True:
            time.sleep(3600)


def _visits(source: str) -> Iterator[Visit]:
    """The stored episodes that were played to their end.

    Raises:
        ConfigError: they are of another environment.
        StorageError: the files are not whole.
    """
    for trajectory in read_shards(Path(source)):
        if "webshop" not in trajectory.environment_id.lower():
            raise ConfigError(
                f"{source} has episodes of {trajectory.environment_id}, not WebShop's"
            )
        if trajectory.failure is None and trajectory.first_step == 0:
            yield Visit(
                seed=trajectory.seed,
                actions=tuple(step.action.action for step in trajectory.steps),
                thoughts=tuple(step.completion.text for step in trajectory.steps),
                score=trajectory.total_reward,
            )
