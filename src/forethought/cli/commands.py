"""The commands: what a person can type, and where each of them lives.

Nothing is imported until a command is called, so `--help` answers at once, and a module
that is missing fails with its own command alone.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """One row of the table."""

    name: str
    """One word, or two where it belongs to a group."""
    target: str
    """`package.module:function`. The function takes one argument, its settings, whose type
    annotation tells what may be typed; its docstring is the command's help."""
    summary: str
    """One line."""
    defaults: str | None = None
    """`package.module:function` from what was typed to the settings' defaults, for commands
    whose defaults lie in a file."""


COMMANDS = (
    Command(
        "quickstart",
        "forethought.cli.quickstart:quickstart",
        "Teach the tiny model a game, from nothing to a report, in minutes.",
    ),
    Command(
        "train sft",
        "forethought.cli.train:train_sft",
        "Supervised fine-tuning: learn to answer as the world's expert does.",
        defaults="forethought.cli.train:sft_defaults",
    ),
    Command(
        "train ppo",
        "forethought.cli.train:train_ppo",
        "Reinforcement learning of thoughts and actions, from rewards.",
        defaults="forethought.cli.train:ppo_defaults",
    ),
    Command(
        "train cnn",
        "forethought.cli.train:train_cnn",
        "The baseline without words: a small network that sees and acts.",
        defaults="forethought.cli.train:cnn_defaults",
    ),
    Command(
        "train q-sft",
        "forethought.cli.train:train_q_sft",
        "Offline reinforcement learning: values as probabilities, from stored episodes.",
        defaults="forethought.cli.train:q_sft_defaults",
    ),
    Command(
        "train ilql",
        "forethought.cli.train:train_ilql",
        "Offline reinforcement learning: values in heads of their own, from stored episodes.",
        defaults="forethought.cli.train:ilql_defaults",
    ),
    Command(
        "train archer",
        "forethought.cli.train:train_archer",
        "Offline reinforcement learning: imitation of the better answers, from stored episodes.",
        defaults="forethought.cli.train:archer_defaults",
    ),
    Command(
        "train dpo",
        "forethought.cli.train:train_dpo",
        "Preference optimization of thoughts and actions, step by step.",
        defaults="forethought.cli.train:dpo_defaults",
    ),
    Command(
        "evaluate",
        "forethought.cli.evaluate:evaluate",
        "Play held-out episodes; compare with chance, expert and ceiling.",
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
        "collect",
        "forethought.cli.collect:collect",
        "Store episodes of an expert, of chance, of a data policy or of a model as Parquet.",
        defaults="forethought.cli.collect:collect_defaults",
    ),
    Command(
        "data describe",
        "forethought.cli.data:describe_data",
        "Count a data set: returns, success, lengths; as text and as a page.",
    ),
    Command(
        "data convert",
        "forethought.cli.convert:convert_data",
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
        "Serve a trained policy by the chat-completions protocol.",
    ),
    Command("play", "forethought.cli.play:play", "Play a world yourself, in this terminal."),
    Command(
        "shop",
        "forethought.cli.shop:shop",
        "WebShop as a web site: shop yourself, or look at an agent's episodes.",
    ),
    Command("envs", "forethought.cli.envs:envs", "List all worlds."),
    Command(
        "migrate",
        "forethought.cli.migrate:migrate",
        "Rewrite a settings file of an earlier version for this one.",
    ),
    Command(
        "doctor",
        "forethought.cli.doctor:doctor",
        "Check this machine, and say what mends it.",
    ),
    Command("bench", "forethought.cli.bench:bench", "Metric speed, beside a baseline."),
)

GROUPS = {
    "train": "Train a model. Every run has a folder, and can be stopped and resumed.",
    "data": "Look at stored trajectories, check them, bring in those of others; make games.",
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
