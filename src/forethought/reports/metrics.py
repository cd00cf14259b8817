"""The charts that a report knows: which metrics, in which words, on which scale."""

from typing import NamedTuple

from forethought.reports.charts import Scale


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


CHARTS = (
    Chart(
        "Success in training",
        ("success_rate",),
        "success",
        "Share of the training episodes that ended in success, with its 95\u202f% Wilson interval.",
        Scale.SHARE,
        shows=(0.0, 1.0),
    ),
    Chart(
        "Return in training",
        ("mean_return",),
        "return per episode",
        "Undiscounted sum of rewards, mean over the training episodes of one iteration.",
    ),
    Chart(
        "Invalid answers",
        ("invalid_rate",),
        "share of steps",
        "Answers that named no action of this world.",
        Scale.SHARE,
        shows=(0.0,),
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
        "steps that name the action their thought concludes; responses with exactly the fields "
        "asked for.",
        Scale.SHARE,
        shows=(1.0,),
        labels=("perception", "inference", "consistency", "strict format"),
    ),
    Chart("Loss", ("loss",), "nats per token", "Cross-entropy of the imitated answers.", Scale.LOG),
    Chart(
        "Likelihood loss",
        ("likelihood_loss",),
        "nats per token",
        "Weighted cross-entropy of Q-SFT; its lowest value depends on the targets.",
    ),
    Chart(
        "ILQL's loss",
        ("ilql_loss",),
        "squared return",
        "Errors of Q and V, and the weighted term that lowers Q of what the data do not hold.",
    ),
    Chart(
        "ArCHer's critic",
        ("critic_loss",),
        "squared return",
        "Errors of Q and V of whole answers.",
    ),
    Chart(
        "Value at the start",
        ("start_value", "data_return"),
        "return",
        "What the first states are worth by the learned values, and what the data got from them.",
        labels=("value", "data"),
    ),
    Chart(
        "Weighted imitation",
        ("actor_loss",),
        "nats per token",
        "Cross-entropy of the data's answers, each weighted by its advantage.",
    ),
    Chart(
        "Advantages",
        ("advantage_mean", "advantage_std"),
        "return",
        "How much better the data's answers are than what is expected of their states.",
        labels=("mean", "deviation"),
    ),
    Chart(
        "Weights of answers",
        ("effective_share", "capped_weights"),
        "share of answers",
        "How many count in effect, and how many weights were cut. "
        "Few that count: the policy learns from those alone.",
        Scale.SHARE,
        shows=(0.0, 1.0),
        labels=("count", "cut"),
    ),
    Chart(
        "Clipped targets",
        ("target_clipped_high", "target_clipped_low"),
        "share of targets",
        "Targets that would have been no probability.",
        Scale.SHARE,
        shows=(0.0,),
        labels=("above 1", "below 0"),
    ),
    Chart(
        "Entropy",
        ("entropy",),
        "nats per token",
        "How undecided the policy is, token by token. Near 0 it no longer explores.",
        shows=(0.0,),
    ),
    Chart(
        "Policy change",
        ("approximate_kl",),
        "approximate KL, nats",
        "How far one iteration's updates moved the policy from the one that acted.",
        Scale.LOG,
    ),
    Chart(
        "Distance from the start",
        ("reference_kl",),
        "nats per token",
        "Divergence from the model that the run started from.",
        shows=(0.0,),
    ),
    Chart(
        "Clipped steps",
        ("clip_fraction",),
        "share of steps",
        "Steps whose probability ratio left the trusted range. "
        "Much above 30\u202f%: updates too large.",
        Scale.SHARE,
        shows=(0.0,),
    ),
    Chart(
        "Critic's error",
        ("value_loss",),
        "value loss",
        "Clipped squared error of the predicted returns.",
    ),
    Chart(
        "Critic's foresight",
        ("explained_variance",),
        "explained variance",
        "1: the critic foresees the returns. 0: no better than their mean. Below: worse.",
        shows=(0.0, 1.0),
    ),
    Chart(
        "Margin of preferences",
        ("preference_margin",),
        "margin",
        "How much more the policy prefers the winner of a pair than its start did, in the unit "
        "of the objective, while it learns.",
        shows=(0.0,),
    ),
    Chart(
        "Log-ratios of pairs",
        ("winner_log_ratio", "loser_log_ratio"),
        "nats per answer",
        "How much more probable answers have become than they were at the start. "
        "Both falling: the policy leaves what it used to say.",
        labels=("winners", "losers"),
        shows=(0.0,),
    ),
    Chart(
        "Certainty of actions",
        ("action_probability",),
        "p(action | thoughts)",
        "Mean probability of the sampled action, given its thoughts.",
        shows=(0.0, 1.0),
    ),
    Chart(
        "Pairs",
        ("pairs",),
        "pairs per iteration",
        "Answers to one question of which one went better.",
        shows=(0.0,),
    ),
    Chart(
        "Gradient norm",
        ("gradient_norm",),
        "norm before clipping",
        "Length of the gradient. Jumps foretell instability.",
    ),
    Chart(
        "Log-probability of answers",
        ("thought_logprob", "action_logprob"),
        "nats per answer",
        "Sum over the tokens of thoughts and of actions, as sampled.",
        labels=("thoughts", "action"),
    ),
    Chart(
        "Length of answers",
        ("completion_tokens",),
        "tokens per step",
        "Thoughts and action together.",
    ),
    Chart(
        "First-ratio deviation",
        ("first_ratio_deviation",),
        "largest |ratio − 1|",
        "Sampled against recomputed probabilities before the first update: rounding alone.",
        Scale.LOG,
    ),
)
