"""`forethought evaluate RUN`."""

from collections.abc import Sequence
from dataclasses import replace

from forethought.agents.sources import find_source
from forethought.cli.betas import evaluate_betas
from forethought.cli.evaluation import Evaluate, evaluate_with_bar
from forethought.cli.hints import require_environment
from forethought.cli.settings import describe, read_settings
from forethought.cli.tables import evaluation_table


def evaluate(settings: Evaluate) -> None:
    """Play held-out episodes; compare with chance, expert and ceiling.

    The episodes are the same for every model and are never trained on. A run folder gets
    evaluation.json, and the episodes as evaluation_episodes.parquet; another world or prompt
    than the run's own, or a checkpoint that is named itself, leaves the folder as it is.

    Examples:
      forethought evaluate runs/ppo
      forethought evaluate runs/ppo --episodes 1000 --temperature 0.2 --json
      forethought evaluate runs/ppo/checkpoints/step_20
      forethought evaluate Qwen/Qwen2.5-VL-3B-Instruct --environment.id Blackjack
      forethought evaluate runs/wordle_q_sft --beta 0 4 16 64 --policy-extraction ratio
      forethought evaluate api:gpt-4o-mini --environment.id Wordle --api.style react \\
          --max-new-tokens 512 --api.requests-per-minute 60
    """
    if settings.beta is not None:
        evaluate_betas(settings)
        return
    found = evaluate_with_bar(settings)
    if settings.json:
        print(found.evaluation.to_json(), end="")
        return
    for line in evaluation_table(found.evaluation):
        print(line)
    if found.folder is not None:
        folder = found.folder
        print(f"\nwritten: {folder.evaluation_path}, {folder.evaluation_episodes_path}")
        print(f"next: forethought report {folder.path}")


def evaluate_defaults(words: Sequence[str]) -> Evaluate | None:
    """A run's world, prompt and length of answers, as defaults of the flags.

    Raises:
        UnknownNameError: neither a run nor a world was named.
    """
    typed = read_settings(
        Evaluate, words, program="forethought evaluate", description=describe(evaluate)
    )
    source = find_source(typed.run)
    if source.config is None:
        require_environment(typed.run, words)
        return None
    own = typed.evaluation
    own = replace(own, max_new_tokens=source.max_new_tokens or own.max_new_tokens)
    return Evaluate(
        typed.run,
        evaluation=own,
        environment=source.config.environment,
        prompt=source.config.prompt,
    )
