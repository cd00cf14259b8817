"""Where p_θ begins: as π_φ, every state worth what π_φ's own features tell of the returns.

As a copy of π_φ, p_θ says that everything is worth 1. Until it leaves the dummy action what it
should, all its layers are pulled there, and what they do to the other tokens takes longer to
mend than values take to learn. The dummy's row of the output layer can do most of it alone, and
its best value is a logistic regression: nothing else moves.
"""

import torch
from torch import Tensor
from torch.nn import functional

from forethought.policies.actor_critic import ActorCritic
from forethought.policies.reweighted import Twin
from forethought.training.episodes import Part, lay_out
from forethought.training.q_sft_models import Learner
from forethought.training.q_sft_targets import read_returns

EPISODES = 512
"""From which the row is fitted."""
ITERATIONS = 100
RIDGE = 1e-4
"""Of the row's squared distance from where it was, beside nats per action."""


def fit_dummy(learner: Learner) -> None:
    """Sets the dummy's row in p_θ and p_θ̄ to what foretells the data's returns best.

    Where the output layer is not trained (LoRA), it stays as it is.
    """
    models, dummy = learner.models, learner.data.dummy
    assert models.likelihood is not None
    assert models.target is not None
    assert dummy is not None
    row = _output(models.likelihood)
    if not row.requires_grad:
        return
    policy = models.behaviour
    episodes = [one for one in learner.data.episodes if one.known_returns][:EPISODES]
    budget = learner.config.compute.micro_batch_tokens
    parts = lay_out(episodes, policy.encoder, policy.device, budget)
    judged, _ = read_returns(episodes, parts, learner)
    features = [_features(policy.module, one.part, row[dummy], dummy) for one in judged]
    fitted_H = fit_row(
        start_H=row[dummy].detach().double(),
        hidden_NH=torch.cat([hidden_NH for hidden_NH, _ in features]),
        others_N=torch.cat([others_N for _, others_N in features]),
        targets_N=torch.cat([one.targets_N for one in judged]).double(),
    )
    with torch.no_grad():
        for twin in (models.likelihood, models.target):
            _output(twin)[dummy] = fitted_H.to(row.dtype)


def fit_row(*, start_H: Tensor, hidden_NH: Tensor, others_N: Tensor, targets_N: Tensor) -> Tensor:
    """The row w whose probability σ(w·h - c) is nearest to 1 - B in cross-entropy.

    Args:
        start_H: where it was.
        hidden_NH: last hidden states h.
        others_N: c, the logarithm of all other tokens' exponentiated logits together.
        targets_N: B in [0, 1].
    """
    row_H = start_H.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([row_H], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        odds_N = hidden_NH @ row_H - others_N
        loss = functional.binary_cross_entropy_with_logits(odds_N, 1 - targets_N)
        loss = loss + RIDGE * (row_H - start_H).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return row_H.detach()


@torch.no_grad()
def _features(module: ActorCritic, part: Part, row_H: Tensor, dummy: int) -> tuple[Tensor, Tensor]:
    """Last hidden states [N, H], and what the dummy's logit [N] competes with; fp64."""
    module.without_dropout()
    hidden_NH = module.action_hidden(part.tokens, part.is_action_BT).double()
    own_N = module.action_logprobs(part.tokens, part.is_action_BT)[:, dummy].double()
    odds_N = own_N - torch.log1p(-own_N.exp())
    return hidden_NH, hidden_NH @ row_H.double() - odds_N


def _output(twin: Twin) -> Tensor:
    """[V, H]"""
    projection = twin.module.model.get_output_embeddings()
    assert projection is not None
    weight = projection.weight
    assert isinstance(weight, Tensor)
    return weight
