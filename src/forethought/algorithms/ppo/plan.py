"""What `train ppo` will do and need, before it does it."""

from forethought.algorithms.ppo.config import PPOConfig
from forethought.training.plan import (
    image_memory,
    lengths_of,
    open_outline,
    plan_lines,
    random_steps,
    rollout_memory,
)


def plan_ppo(config: PPOConfig) -> list[str]:
    """The plan, one line each.

    Raises:
        ForethoughtError: as training would.
    """
    world, encoder, model = open_outline(config)
    rollout, iterations = config.rollout, config.iterations
    rounds = (
        f"{iterations} iterations of {rollout.steps_per_iteration}"
        if config.has_critic
        else f"at most {iterations} iterations of {rollout.steps_per_iteration} or more"
    )
    lengths = lengths_of(random_steps(world), encoder)
    lengths = lengths._replace(answer=float(rollout.max_new_tokens))
    steps = iterations * rollout.steps_per_iteration
    generated = steps * lengths.answer
    trained = config.epochs * steps * lengths.tokens
    work = [
        f"steps       {steps:,} of the environment: {rounds}, in {rollout.num_envs} at once",
        f"updates     {iterations * config.updates_per_iteration:,}: "
        f"{config.updates_per_iteration} per iteration, of {config.batch_size} steps each",
        f"tokens      at most {generated:,.0f} generated and {trained:,.0f} trained on (per step "
        f"{lengths.prompt:.0f} of prompt and up to {rollout.max_new_tokens} of answer)",
    ]
    memory = rollout_memory(config, model, lengths)
    memory |= image_memory(lengths.pictures, rollout.steps_per_iteration)
    return plan_lines(config, model, lengths, work, memory)
