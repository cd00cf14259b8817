"""`forethought evaluate RUN --beta …`: one set of weights, acting more or less by its values."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from forethought.agents.sources import find_source, open_player
from forethought.cli.evaluation import Evaluate
from forethought.cli.progress import progress_bar
from forethought.cli.tables import rows_table
from forethought.configs.acting import ActingConfig, ValueActingConfig
from forethought.errors import ConfigError
from forethought.evaluation.evaluate import play_policy
from forethought.evaluation.results import EvaluationRow, row_to_json
from forethought.evaluation.scripted_rows import ScriptedRows, row_of
from forethought.generation.contract import Policy
from forethought.libraries import load_quietly
from forethought.rollouts.seeding import Split


def evaluate_betas(settings: Evaluate) -> None:
    """Plays the same episodes once for every β, and prints a row for each.

    Raises:
        ForethoughtError: a model, world or option that is not there; a run without values.
    """
    load_quietly(threads=settings.threads)
    source, judged = find_source(settings.run), settings.evaluation
    slots = min(judged.num_envs, judged.episodes)
    policy, world = open_player(
        source, settings.environment, settings.prompt, slots=slots, api=settings.api
    )
    extraction, ways = _ways(policy, settings)
    rows: list[EvaluationRow] = []
    split = Split.TRAINING if settings.training_seeds else Split.EVALUATION
    with progress_bar("evaluate", judged.episodes * len(ways), "episode") as bar:
        for beta, act in zip(settings.beta or (), ways, strict=True):
            act()
            trajectories = play_policy(
                policy,
                world,
                judged,
                split=split,
                workers=settings.environment.workers,
                on_episode=bar.update,
            )
            rows.append(row_of(f"β = {beta:g}", trajectories))
    if not settings.training_seeds:
        scripted = ScriptedRows()
        rows = [
            scripted.random(world, judged.episodes, seed=judged.seed),
            *rows,
            scripted.expert(world, judged.episodes, settings.prompt.format),
            EvaluationRow("ceiling", success_rate=world.ceiling_rate),
        ]
    if settings.json:
        print(json.dumps([row_to_json(row) for row in rows], indent=2, allow_nan=False))
        return
    which = "training" if settings.training_seeds else "held-out"
    how = "greedy" if judged.temperature == 0 else f"temperature {judged.temperature:g}"
    print(
        f"{world.id}, {judged.episodes} {which} episodes, {how}, {extraction}, "
        f"{Path(source.model).parent.name}\n"
    )
    for line in rows_table(rows):
        print(line)


def _ways(policy: Policy, settings: Evaluate) -> tuple[str, list[Callable[[], None]]]:
    """What values are, and what makes the policy act by them as much as each β says.

    Raises:
        ConfigError: a run without values, or without the ones that were asked for.
    """
    from forethought.value_guided.policy import WeightedPolicy

    if not isinstance(policy, WeightedPolicy):
        raise ConfigError(
            f"--beta was given, but {settings.run} is no run of train q-sft or ilql whose second "
            "phase has begun — leave it out"
        )
    own: ActingConfig | ValueActingConfig = policy.acting
    if isinstance(own, ActingConfig):
        own = replace(own, policy_extraction=settings.policy_extraction or own.policy_extraction)
        values = own.policy_extraction
    elif settings.policy_extraction is None:
        values = "values of heads"
    else:
        raise ConfigError(
            f"--policy-extraction was given, but {settings.run} has heads for its values: "
            "nothing to extract — leave it out"
        )
    top_p = own.top_p if settings.top_p is None else settings.top_p
    ways = [replace(own, beta=beta, top_p=top_p) for beta in settings.beta or ()]
    return values, [partial(policy.act_as, acting) for acting in ways]
