"""What Q-SFT's probabilities say that tokens are worth, and the policy that follows from it."""

import torch
from torch import Tensor

from forethought.config_q_sft import ActingConfig, Extraction, SupportConfig
from forethought.errors import PolicyError
from forethought.losses.support import likelihood_ratios, support_mask
from forethought.policies.weighted import Look, tilted


def worth_by_likelihood(
    *,
    behaviour_logprobs_BV: Tensor,
    likelihood_logprobs_BV: Tensor,
    support_BV: Tensor,
    extraction: Extraction,
    floor: float,
) -> Tensor:
    """What tokens are worth by how likely they are.

        w(a|s) = p_θ(a|s)                           "probability": Hong et al. 2024, Sec. 4.2
        w(a|s) = clip(p_θ(a|s) / π_φ(a|s), 0, 1)    "ratio", which is Q* with a dummy token

    Args:
        behaviour_logprobs_BV: nats, fp32.
        likelihood_logprobs_BV: nats, fp32.
        support_BV: bool; elsewhere w is 0.
        floor: of the ratio's denominator.

    Returns:
        [B, V], in [0, 1].
    """
    if extraction == "probability":
        return likelihood_logprobs_BV.exp().masked_fill(~support_BV, 0.0)
    return likelihood_ratios(
        likelihood_logprobs_NV=likelihood_logprobs_BV,
        behaviour_logprobs_NV=behaviour_logprobs_BV,
        support_NV=support_BV,
        floor=floor,
    ).clamp(max=1.0)


def worth_by_lookahead(
    *, worth_BV: Tensor, behaviour_logprobs_BV: Tensor, is_open_BV: Tensor, look: Look, dummy: int
) -> Tensor:
    """What tokens are worth by the state that they lead to.

        w(a|s) = V(s a) = 1 - p_θ(dummy | s a)

    What p_θ leaves to the tokens that can be said is sum_a π_φ Q = V of the policy that it values,
    and behind a token the next state is known for sure. One probability of one model says it, so
    that nothing is divided; it costs a token step of p_θ for each token that is asked about.

    Args:
        worth_BV: of the tokens that are not open.
        behaviour_logprobs_BV: nats, fp32.
        is_open_BV: bool, the tokens that are asked about: none that ends an answer, for what the
            world replies is not known.
        look: p_θ's logits behind one token of each row.
        dummy: the token to which p_θ gives what a state is not worth.

    Returns:
        [B, V], in [0, 1].
    """
    count = int(is_open_BV.sum(1).max())
    ranked_BV = behaviour_logprobs_BV.masked_fill(~is_open_BV, -torch.inf)
    for ids_B in ranked_BV.topk(count, dim=1).indices.unbind(1):
        ids_B1 = ids_B[:, None]
        dummy_B1 = torch.log_softmax(look(ids_B), -1)[:, dummy, None].exp()
        own_B1 = torch.where(is_open_BV.gather(1, ids_B1), 1 - dummy_B1, worth_BV.gather(1, ids_B1))
        worth_BV = worth_BV.scatter(1, ids_B1, own_B1)
    return worth_BV


def weigh_by_likelihood(
    behaviour_BV: Tensor,
    likelihood_BV: Tensor,
    look: Look,
    acting: ActingConfig,
    *,
    support: SupportConfig,
    dummy: int | None,
    ends: Tensor,
) -> Tensor:
    """Logits of the acting policy: log π^(a|s) = log π_φ(a|s) + β w(a|s) + constant.

    Outside π_φ's support w is 0. β = 0 is π_φ.

    Args:
        behaviour_BV, likelihood_BV: logits of π_φ and p_θ, fp32.
        look: p_θ's logits behind one token of each row.
        acting: β, what w is, and the nucleus.
        dummy: the token to which p_θ gives what a state is not worth, if it is one.
        ends: tokens that end an answer.

    Raises:
        PolicyError: a look ahead where no token is the dummy.
    """
    logprobs_BV = torch.log_softmax(behaviour_BV, -1)
    support_BV = support_mask(
        logprobs_NV=logprobs_BV, top_p=support.top_p, min_probability=support.min_probability
    )
    worth_BV = worth_by_likelihood(
        behaviour_logprobs_BV=logprobs_BV,
        likelihood_logprobs_BV=torch.log_softmax(likelihood_BV, -1),
        support_BV=support_BV,
        extraction=acting.extraction,
        floor=support.floor,
    )
    if acting.extraction == "lookahead" and acting.beta > 0:
        if dummy is None:
            raise PolicyError(
                "extraction is 'lookahead', but this policy was trained with its leftover "
                "spread — expected ratio or probability"
            )
        is_choice_B1 = support_BV.sum(1, keepdim=True) > 1
        worth_BV = worth_by_lookahead(
            worth_BV=worth_BV,
            behaviour_logprobs_BV=logprobs_BV,
            is_open_BV=(support_BV & is_choice_B1).index_fill(1, ends, False),
            look=look,
            dummy=dummy,
        )
    return tilted(logprobs_BV, worth_BV, beta=acting.beta, top_p=acting.top_p)
