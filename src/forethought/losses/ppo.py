"""PPO's losses: the clipped policy loss, the weight of thoughts, entropy, divergence from a
reference, and the critic's."""

from typing import NamedTuple

import torch
from torch import Tensor

from forethought.losses.elements import (
    Aggregation,
    aggregate,
    checked_mask,
    masked_mean,
    require_axes,
    require_constant,
    require_float32,
    require_one_shape,
)


def truncated_importance_weights(
    *, logprobs: Tensor, sampled_logprobs: Tensor, cap: float
) -> Tensor:
    """How much more likely what was sampled is to the trainer than to the engine that drew it.

        w = min(π(y) / π_engine(y), C)

    Truncated importance sampling (Ionides 2008): an engine's kernels round otherwise, and its
    weights may be some updates old. Times the advantage it makes the policy gradient the
    trainer's own, up to the bias of the cap, without which single samples would rule.

    Args:
        logprobs: under the trainer's weights before the update, nats, fp32, no gradient.
        sampled_logprobs: as the engine gave them, of the same shape: steps [B] or tokens [B, T].
        cap: C > 0.

    Raises:
        ValueError: shapes differ, a wrong dtype, data that require gradient, C not positive.
    """
    require_one_shape(logprobs=logprobs, sampled_logprobs=sampled_logprobs)
    require_float32(logprobs=logprobs, sampled_logprobs=sampled_logprobs)
    require_constant(logprobs=logprobs, sampled_logprobs=sampled_logprobs)
    if not cap > 0:
        raise ValueError(f"cap: expected more than 0, got {cap}")
    return (logprobs - sampled_logprobs).exp().clamp(max=cap)


class PolicyLoss(NamedTuple):
    """PPO's loss of the policy, with its statistics, which carry no gradient."""

    loss: Tensor  # scalar, to minimize
    clip_fraction: Tensor  # share of elements whose ratio left [1 - clip, 1 + clip]
    approximate_kl: Tensor  # mean of (ratio - 1) - log ratio, nats, never negative
    maximum_deviation: Tensor  # largest |ratio - 1|; 0 before the first update


def clipped_policy_loss(
    *,
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor | None,
    clip: float,
    aggregation: Aggregation = "token_mean",
) -> PolicyLoss:
    """Pessimistic bound on the policy improvement.

        L = -mean(min(r A, clamp(r, 1 - c, 1 + c) A)),   r = exp(log p - log p_old)

    Schulman et al. 2017, Eq. 7; the KL estimate is Schulman 2020, "k3". An element
    is a step or a token, and the mean is over the elements that count; the loss of tokens
    may be aggregated otherwise, the statistics are not:

    - `ratio: step`, shapes [B]: the log-prob of a thinking agent's step is
      `sequence_logprob` (RL4VLM, Eq. 4.3), on both sides of the ratio.
    - `ratio: token`, shapes [B, T]: log-probs from `thought_scaled_logprobs`, each
      step's advantage repeated over its tokens by the caller. With λ = 0 the ratio
      of a thought token is 1: it adds the constant -A without gradient, yet it is
      counted in the mean and so shrinks the action's gradient. To train the action
      alone at full strength, mask the thoughts.

    Args:
        logprobs: under the policy being trained, nats, fp32.
        old_logprobs: under the policy that acted, nats, fp32, no gradient.
        advantages: any scale, fp32, no gradient; normalize before, not here.
        mask: bool, True where the element counts; None: all do.
        clip: c > 0.
        aggregation: of the tokens [B, T], see `aggregate`; steps [B] have a plain mean.

    Raises:
        ValueError: shapes differ or are neither [B] nor [B, T], a wrong dtype, data
            that require gradient, c not positive, no element counts, or another
            aggregation of steps than their mean.
    """
    require_one_shape(logprobs=logprobs, old_logprobs=old_logprobs, advantages=advantages)
    require_float32(logprobs=logprobs, old_logprobs=old_logprobs, advantages=advantages)
    require_constant(old_logprobs=old_logprobs, advantages=advantages)
    if logprobs.ndim not in (1, 2):
        raise ValueError(f"expected steps [B] or tokens [B, T], got shape {list(logprobs.shape)}")
    if not clip > 0:
        raise ValueError(f"clip: expected more than 0, got {clip}")
    if logprobs.ndim == 1 and aggregation != "token_mean":
        raise ValueError(f"aggregation of steps [B]: expected token_mean, got {aggregation}")
    mask = checked_mask(mask, like=logprobs)
    # Padding may hold infinities: it leaves before the exponential, whose gradient
    # there would be infinity times zero.
    log_ratio = torch.where(mask, logprobs - old_logprobs, 0.0)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    objective = torch.minimum(ratio * advantages, clipped * advantages)
    if objective.ndim == 1:
        loss = -masked_mean(values=objective, mask=mask)
    else:
        loss = -aggregate(values_BT=objective, mask_BT=mask, aggregation=aggregation)
    with torch.no_grad():
        deviation = log_ratio.expm1()  # ratio - 1, exact also where the ratio is nearly 1
        clip_fraction = masked_mean(values=(clipped != ratio).float(), mask=mask)
        approximate_kl = masked_mean(values=deviation - log_ratio, mask=mask)
        maximum_deviation = deviation.abs().max()  # masked elements deviate by 0
    return PolicyLoss(loss, clip_fraction, approximate_kl, maximum_deviation)


# Log-prob of a completion whose thoughts weigh less than its action.


def thought_scaled_logprobs(
    *,
    logprobs_BT: Tensor,
    thought_mask_BT: Tensor,
    action_mask_BT: Tensor,
    thought_weight: float,
) -> Tensor:
    """Each token's part in the log-prob of the step.

        s_t = λ log p_t  on thought tokens,   log p_t  on action tokens,   0  elsewhere

    RL4VLM, Eq. 4.3, before its sum. Thoughts are an order of magnitude longer than
    the action, so that without λ they decide the ratio alone. A ratio needs the
    same λ on both sides: log p and log p_old both go through this function.

    λ = 0 leaves the action alone: thought tokens are then exactly 0, without
    gradient, even where a thought had probability 0.

    Args:
        logprobs_BT: of the sampled tokens, nats, fp32.
        thought_mask_BT: bool, the tokens before the `"action"` key.
        action_mask_BT: bool, the tokens from the `"action"` key to the end.
        thought_weight: λ in [0, 1].

    Returns:
        [B, T], nats, fp32.

    Raises:
        ValueError: not [B, T], shapes differ, a wrong dtype, a token that is both
            thought and action, or λ outside [0, 1].
    """
    require_axes("BT", logprobs_BT=logprobs_BT)
    require_float32(logprobs_BT=logprobs_BT)
    require_one_shape(
        logprobs_BT=logprobs_BT, thought_mask_BT=thought_mask_BT, action_mask_BT=action_mask_BT
    )
    if not thought_mask_BT.dtype == action_mask_BT.dtype == torch.bool:
        raise ValueError(
            f"masks: expected bool, got {thought_mask_BT.dtype} for thoughts "
            f"and {action_mask_BT.dtype} for actions"
        )
    shared = int((thought_mask_BT & action_mask_BT).sum())
    if shared > 0:
        raise ValueError(f"a token is thought or action, never both: got {shared} that are both")
    if not 0 <= thought_weight <= 1:
        raise ValueError(f"thought_weight: expected 0 to 1, got {thought_weight}")
    weight_BT = thought_weight * thought_mask_BT.float() + action_mask_BT.float()
    # Chosen, not multiplied, where the weight is 0: 0 times minus infinity is not 0.
    return torch.where(weight_BT > 0, weight_BT * logprobs_BT, 0.0)


def sequence_logprob(
    *,
    logprobs_BT: Tensor,
    thought_mask_BT: Tensor,
    action_mask_BT: Tensor,
    thought_weight: float,
) -> Tensor:
    """Log-prob of each step of a thinking agent.

        log π(y|x) := λ log π(T|x) + log π(a|x, T)

    RL4VLM, Eq. 4.3: the sum over tokens of `thought_scaled_logprobs`, which
    documents the arguments and what is refused.

    Returns:
        [B], nats, fp32.
    """
    scaled_BT = thought_scaled_logprobs(
        logprobs_BT=logprobs_BT,
        thought_mask_BT=thought_mask_BT,
        action_mask_BT=action_mask_BT,
        thought_weight=thought_weight,
    )
    return scaled_BT.sum(dim=1)


# Exact entropy of every next-token distribution.


def token_entropy(*, logprobs_V: Tensor) -> Tensor:
    """How undecided the policy is at each token.

        H = -sum_v p_v log p_v

    Over the whole vocabulary, not an estimate from the sampled tokens. Reduce with
    `masked_mean`; an entropy bonus subtracts its multiple from the loss.

    Args:
        logprobs_V: [..., V], normalized log-probs of all tokens, nats, fp32: the output
            of a log-softmax, at whichever temperature the tokens are sampled. A
            forbidden token has minus infinity.

    Returns:
        [...], nats, fp32, from 0 to log V.

    Raises:
        ValueError: not float32.
    """
    require_float32(logprobs_V=logprobs_V)
    # p log p is 0 where p is 0; the finite floor keeps it from becoming 0 times infinity.
    finite_V = logprobs_V.clamp(min=torch.finfo(torch.float32).min)
    return -(logprobs_V.exp() * finite_V).sum(dim=-1)


# Divergence from a reference policy, estimated on the tokens that were sampled.


def kl_to_reference(
    *, logprobs_BT: Tensor, reference_logprobs_BT: Tensor, mask_BT: Tensor
) -> Tensor:
    """Mean per token of an estimate of KL(pi || pi_ref) that is never negative.

        kl_t = exp(d_t) - 1 - d_t,   d_t = log pi_ref(y_t) - log pi(y_t)

    Schulman 2020, "Approximating KL divergence", k3; GRPO's Eq. 4 (Shao et al. 2024).
    Unbiased where y_t is drawn from pi. Its gradient, 1 - exp(d_t) per log-prob, pulls a
    token back to the reference's probability from either side, and is 0 where both agree.

    Args:
        logprobs_BT: under the policy that is trained, nats, fp32.
        reference_logprobs_BT: under the reference, likewise, without gradient, at the same
            temperature.
        mask_BT: bool, True where the token counts; what is masked may hold anything.

    Returns:
        A scalar, nats per token.

    Raises:
        ValueError: shapes differ, a tensor is not fp32, the reference carries a gradient, or
            no token counts.
    """
    require_axes("BT", logprobs_BT=logprobs_BT)
    require_one_shape(logprobs_BT=logprobs_BT, reference_logprobs_BT=reference_logprobs_BT)
    require_float32(logprobs_BT=logprobs_BT, reference_logprobs_BT=reference_logprobs_BT)
    require_constant(reference_logprobs_BT=reference_logprobs_BT)
    mask_BT = checked_mask(mask_BT, like=logprobs_BT)
    gap_BT = torch.where(mask_BT, reference_logprobs_BT - logprobs_BT, 0.0)
    return masked_mean(values=gap_BT.expm1() - gap_BT, mask=mask_BT)


class ValueLoss(NamedTuple):
    """The critic's loss, with its statistics, which carry no gradient."""

    loss: Tensor  # scalar, to minimize, in squared units of return
    clip_fraction: Tensor  # share of steps whose value moved by more than clip; 0 without clip
    explained_variance: Tensor  # of these steps alone: do not average it over micro-batches


def clipped_value_loss(
    *,
    values_B: Tensor,
    old_values_B: Tensor,
    returns_B: Tensor,
    clip: float | None,
    mask_B: Tensor | None,
) -> ValueLoss:
    """Squared error of the critic, without reward for moving far in one iteration.

        L = 0.5 mean(max((v - R)², (v_clip - R)²)),   v_clip = v_old + clamp(v - v_old, -c, c)

    Without clip L = 0.5 mean((v - R)²): Schulman et al. 2017, Eq. 9. The clipped form
    is the customary companion of PPO's clipped ratio (Engstrom et al. 2020) and the one
    that RL4VLM uses. A value that moved more than c towards its return has no gradient:
    moving further earns nothing. One that moved away, or far past, is pulled back.

    Args:
        values_B: of the critic being trained, in units of return, fp32.
        old_values_B: of the critic when the steps were taken, fp32, no gradient.
        returns_B: what to predict, fp32, no gradient.
        clip: c > 0 in units of return; None: no clipping.
        mask_B: bool, True where the step counts; None: all do.

    Raises:
        ValueError: not [B], shapes differ, a wrong dtype, data that require gradient,
            c not positive, or no step counts.
    """
    require_axes("B", values_B=values_B)
    require_one_shape(values_B=values_B, old_values_B=old_values_B, returns_B=returns_B)
    require_float32(values_B=values_B, old_values_B=old_values_B, returns_B=returns_B)
    require_constant(old_values_B=old_values_B, returns_B=returns_B)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip: expected more than 0, or None, got {clip}")
    mask_B = checked_mask(mask_B, like=values_B)
    values_B = torch.where(mask_B, values_B, 0.0)  # what is masked may not even be a number
    moved_B = values_B - old_values_B
    squared_error_B = (values_B - returns_B).square()
    if clip is not None:
        clipped_values_B = old_values_B + moved_B.clamp(-clip, clip)
        squared_error_B = torch.maximum(squared_error_B, (clipped_values_B - returns_B).square())
    loss = 0.5 * masked_mean(values=squared_error_B, mask=mask_B)
    with torch.no_grad():
        beyond_B = moved_B.abs() > (torch.inf if clip is None else clip)
        clip_fraction = masked_mean(values=beyond_B.float(), mask=mask_B)
        explained = explained_variance(values_B=values_B, returns_B=returns_B, mask_B=mask_B)
    return ValueLoss(loss, clip_fraction, explained)


def explained_variance(*, values_B: Tensor, returns_B: Tensor, mask_B: Tensor | None) -> Tensor:
    """How much of the returns' variation the critic foresaw.

        1 - Var(R - v) / Var(R)

    1 is a perfect critic up to a constant, 0 one that knows no more than a constant,
    below 0 one that misleads. 0 also where all returns are equal: nothing to explain.

    Args:
        values_B: the critic's, in units of return, fp32.
        returns_B: what came, fp32.
        mask_B: bool, True where the step counts; None: all do.

    Returns:
        A scalar of at most 1, without gradient.

    Raises:
        ValueError: not [B], shapes differ, a wrong dtype, or no step counts.
    """
    require_axes("B", values_B=values_B)
    require_one_shape(values_B=values_B, returns_B=returns_B)
    require_float32(values_B=values_B, returns_B=returns_B)
    mask_B = checked_mask(mask_B, like=values_B)
    returns, values = returns_B[mask_B].detach(), values_B[mask_B].detach()
    if returns.max() == returns.min():
        return torch.zeros_like(returns[0])
    return 1 - (returns - values).var(correction=0) / returns.var(correction=0)
