"""The commands: what a person can type, and where each of them lives.

Nothing is imported until a command is called, so `--help` is fast, and a module
that is missing fails with its own command alone.
"""

from typing import NamedTuple

from forethought.algorithms.registry import summaries


class Command(NamedTuple):
    """One row of the table."""

    name: str
    """One word, or two where it belongs to a group."""
    target: str
    """`package.module:function`. The function takes one argument, its settings, whose type
    annotation says what may be typed; its docstring is the command's help."""
    summary: str
    """One line."""
    defaults: str | None = None
    """`package.module:function` from what was typed to the settings' defaults, for commands
    whose defaults lie in a file."""
    algorithm: str | None = None
    """What the command is made for; `target` then gives a `TrainCommand` for this name."""


COMMANDS = (
    Command(
        "quickstart",
        "forethought.cli.quickstart:quickstart",
        "Train a randomly initialized model to play a game, in minutes.",
    ),
    Command(
        "evaluate",
        "forethought.cli.evaluate:evaluate",
        "Play held-out episodes; compare with random policy, expert and ceiling.",
        defaults="forethought.cli.evaluate:evaluate_defaults",
    ),
    Command(
        "faithfulness",
        "forethought.cli.faithfulness:faithfulness",
        "Replace the thoughts of stored steps, and see whether the action follows.",
    ),
    Command(
        "report",
        "forethought.cli.report:report",
        "Write a run's curves and episodes as one HTML page.",
    ),
    Command(
        "push",
        "forethought.cli.report:push",
        "Push a run's model to the Hugging Face hub, with a model card.",
    ),
    Command(
        "collect",
        "forethought.cli.collect:collect",
        "Store episodes of an expert, a random policy, a suboptimal policy or a model as Parquet.",
        defaults="forethought.cli.collect:collect_defaults",
    ),
    Command(
        "data describe",
        "forethought.cli.data:describe_data",
        "Count a data set: returns, success, lengths; as text and as a page.",
    ),
    Command(
        "data convert",
        "forethought.cli.data:convert_data",
        "Bring in trajectories of others: chats as JSON lines, or Minari's.",
    ),
    Command(
        "data validate",
        "forethought.cli.data:validate_data",
        "Check every shard and every record of a data set.",
    ),
    Command(
        "data alfworld",
        "forethought.cli.data_alfworld:generate_alfworld",
        "Make ALFWorld games, in the official file tree.",
    ),
    Command(
        "study",
        "forethought.cli.study:study",
        "Train configurations × seeds, and write one table with intervals.",
    ),
    Command(
        "serve",
        "forethought.cli.serve:serve",
        "Serve a trained policy by the OpenAI-compatible API.",
    ),
    Command(
        "work",
        "forethought.cli.collect:work",
        "Play episodes for a run, on any machine that sees its folder.",
    ),
    Command("play", "forethought.cli.play:play", "Play an environment yourself, in this terminal."),
    Command(
        "shop",
        "forethought.cli.shop:shop",
        "WebShop as a web site: shop yourself, or view an agent's episodes.",
    ),
    Command("envs", "forethought.cli.envs:envs", "List all environments."),
    Command(
        "migrate",
        "forethought.cli.migrate:migrate",
        "Rewrite a settings file of an earlier version for this one.",
    ),
    Command(
        "doctor",
        "forethought.cli.doctor:doctor",
        "Check this machine, and say what fixes it.",
    ),
    Command("bench", "forethought.cli.bench:bench", "Measure speed, beside a baseline."),
)


def all_commands() -> tuple[Command, ...]:
    """The table, with a `train` command for every algorithm and preset of the registry."""
    first, *rest = COMMANDS
    trains = [Command(f"train {n}", _TRAIN, line, algorithm=n) for n, line in summaries()]
    return (first, *trains, *rest)


_TRAIN = "forethought.cli.train:train_command"

GROUPS = {
    "train": "Train a model. Every run has a folder, and can be stopped and resumed.",
    "data": "Describe, check and convert stored trajectories; make games.",
}
"""First words that have several commands."""

EXAMPLES = (
    "forethought quickstart",
    "forethought train sft --environment.id NumberLine --output runs/sft",
    "forethought train ppo --model runs/sft --output runs/ppo",
    "forethought evaluate runs/ppo",
    "forethought data describe data/ez_points",
    "forethought play NumberLine",
)
