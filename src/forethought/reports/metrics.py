"""Every metric that a report knows by name: its chart, its label, its scale.

This is the only place where a report names what a log holds. A metric that is not here is drawn
too, under its own name.
"""

from enum import Enum
from typing import NamedTuple

SUCCESS_RATE, EPISODES = "success_rate", "episodes"
"""A share of episodes, and how many there were: together they make an interval."""

PHASES = {
    "collect_s": "collecting steps",
    "recompute_s": "recomputing log-probs",
    "reference_s": "scoring by the reference model",
    "update_s": "updating weights",
}
"""Durations in the log of timings."""

KEY_CHARTS = 4
"""Shown at once; the others are folded."""


class Scale(Enum):
    """Scale of the vertical axis."""

    NUMBER = "number"
    SHARE = "share"
    """From 0 to 1, written as percent."""
    LOG = "log"


class Chart(NamedTuple):
    """One chart: drawn where the log has at least one of its metrics."""

    title: str
    metrics: tuple[str, ...]
    y_label: str
    caption: str
    scale: Scale = Scale.NUMBER
    shows: tuple[float, ...] = ()
    """Values that the vertical axis reaches, whatever the data."""
    labels: tuple[str, ...] = ()
    """Labels of its curves, where it has several."""


CHARTS = (
    Chart(
        "Success rate",
        (SUCCESS_RATE,),
        "success",
        "Share of the training episodes that ended in success, with its 95\u202f% Wilson interval.",
        Scale.SHARE,
        shows=(0.0, 1.0),
    ),
    Chart(
        "Return",
        ("mean_return",),
        "return per episode",
        "Undiscounted sum of rewards, mean over the training episodes of one iteration.",
    ),
    Chart("Loss", ("loss",), "nats per token", "Cross-entropy of the expert's tokens.", Scale.LOG),
    Chart(
        "Q-SFT loss",
        ("likelihood_loss",),
        "nats per token",
        "Weighted cross-entropy of Q-SFT; its lowest value depends on the targets.",
    ),
    Chart(
        "ILQL loss",
        ("ilql_loss",),
        "squared return",
        "Errors of Q and V, and the weighted term that lowers Q of what the data do not hold.",
    ),
    Chart(
        "Q-Transformer loss",
        ("q_transformer_loss",),
        "squared return, mapped",
        "Errors of Q of what the data hold, and the weighted squares of all other Q.",
    ),
    Chart(
        "Critic loss (ArCHer)",
        ("critic_loss",),
        "squared return",
        "Squared errors of the utterance-level Q and V.",
    ),
    Chart(
        "Value of initial states",
        ("start_value", "data_return"),
        "return",
        "The learned value of the first states, and the mean return of the data.",
        labels=("value", "data"),
    ),
    Chart(
        "Preference margin",
        ("preference_margin",),
        "margin",
        "Log-ratio of the chosen completion less that of the rejected one, in the unit of the "
        "loss, during the update.",
        shows=(0.0,),
    ),
    Chart(
        "Log-ratio to the reference",
        ("chosen_log_ratio", "rejected_log_ratio"),
        "nats per completion",
        "log π − log π_ref of both completions of a pair. Both falling: the policy moves away "
        "from chosen completions too.",
        labels=("chosen", "rejected"),
        shows=(0.0,),
    ),
    Chart(
        "Preference accuracy",
        ("preference_accuracy",),
        "share of pairs",
        "Pairs whose chosen completion has the larger log-ratio, during the update.",
        Scale.SHARE,
        shows=(0.5, 1.0),
    ),
    Chart("Preference loss", ("preference_loss",), "loss", "The loss of the pairs alone."),
    Chart(
        "Entropy",
        ("entropy",),
        "nats per token",
        "Mean entropy of the token distribution. Near 0 the policy no longer explores.",
        shows=(0.0,),
    ),
    Chart(
        "Approx. KL",
        ("approximate_kl",),
        "nats",
        "(r − 1) − log r, between the policy that collected the steps and the updated one.",
        Scale.LOG,
    ),
    Chart(
        "Explained variance",
        ("explained_variance",),
        "explained variance",
        "Of the returns, by the critic. 1: all. 0: no better than their mean. Below 0: worse.",
        shows=(0.0, 1.0),
    ),
    Chart("Policy loss", ("policy_loss",), "policy loss", "Clipped policy-gradient loss."),
    Chart(
        "Value loss",
        ("value_loss",),
        "value loss",
        "Clipped squared error of the critic.",
    ),
    Chart(
        "Clip fraction",
        ("clip_fraction",),
        "share of steps",
        "Steps whose probability ratio left the clip range. Much above 30\u202f%: the updates are "
        "too large.",
        Scale.SHARE,
        shows=(0.0,),
    ),
    Chart(
        "Max ratio error",
        ("max_ratio_error",),
        "largest |ratio − 1|",
        "Recomputed against sampled probabilities before the first update: rounding alone.",
        Scale.LOG,
    ),
    Chart(
        "KL to the reference",
        ("reference_kl",),
        "nats per token",
        "Divergence from the model that the run started from.",
        shows=(0.0,),
    ),
    Chart(
        "p(action | thoughts)",
        ("action_probability",),
        "probability",
        "Mean probability of the sampled action given its thoughts.",
        shows=(0.0, 1.0),
    ),
    Chart(
        "p(action | thoughts) of pairs",
        ("chosen_action_probability", "rejected_action_probability"),
        "probability",
        "Of the chosen and the rejected completion, as sampled.",
        shows=(0.0, 1.0),
        labels=("chosen", "rejected"),
    ),
    Chart(
        "Log-probability",
        ("thought_logprob", "action_logprob"),
        "nats per completion",
        "Sum over the tokens of thoughts and of actions, as sampled.",
        labels=("thoughts", "action"),
    ),
    Chart(
        "Thoughts",
        (
            "perception_accuracy",
            "inference_accuracy",
            "thought_action_consistency",
            "strict_format",
        ),
        "share",
        "Claims about the observation that are true; claims that follow from it and are true; "
        "steps that name the action their thought concludes; completions with exactly the fields "
        "asked for.",
        Scale.SHARE,
        shows=(1.0,),
        labels=("perception", "inference", "consistency", "strict format"),
    ),
    Chart(
        "Invalid actions",
        ("invalid_rate",),
        "share of steps",
        "Completions that named no action of the environment.",
        Scale.SHARE,
        shows=(0.0,),
    ),
    Chart("Episode length", ("mean_episode_steps",), "steps", "Mean over training episodes."),
    Chart(
        "Completion length",
        ("completion_tokens",),
        "tokens per step",
        "Thoughts and action together.",
    ),
    Chart(
        "Actor loss",
        ("actor_loss",),
        "nats per token",
        "Cross-entropy of the data's completions, each weighted by its advantage.",
    ),
    Chart(
        "Advantages",
        ("advantage_mean", "advantage_std"),
        "return",
        "Q less V of the data's completions.",
        labels=("mean", "standard deviation"),
    ),
    Chart(
        "Advantage weights",
        ("effective_share", "capped_weights"),
        "share of completions",
        "Effective sample size, and weights that were capped. A small sample: the policy learns "
        "from few completions.",
        Scale.SHARE,
        shows=(0.0, 1.0),
        labels=("effective", "capped"),
    ),
    Chart(
        "Clipped targets",
        ("target_clipped_high", "target_clipped_low"),
        "share of targets",
        "Targets outside the range of a probability.",
        Scale.SHARE,
        shows=(0.0,),
        labels=("above 1", "below 0"),
    ),
    Chart(
        "Preference pairs",
        ("pairs",),
        "pairs per iteration",
        "Two completions of one prompt, of which one went better.",
        shows=(0.0,),
    ),
    Chart(
        "Gradient norm",
        ("gradient_norm",),
        "norm before clipping",
        "L2 norm of the gradient. Jumps precede instability.",
    ),
)
"""In order of importance: the first `KEY_CHARTS` that a run logged are shown at once."""
