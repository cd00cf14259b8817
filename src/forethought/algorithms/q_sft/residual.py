"""The dummy token gets its share before p_θ learns anything.

p_θ starts as a copy of π_φ, which gives the dummy nothing, and what an action is worth is what the
dummy is not given. Were that left to learning, the first hundred updates would move all weights
for the sake of one token, and what they do to the others on the way is noise in every p/π.
"""

import torch
from torch import Tensor

from forethought.algorithms.q_sft.models import Learner
from forethought.algorithms.q_sft.targets import returns_of
from forethought.offline.episodes import lay_out

EPISODES, ACTIONS = 256, 8192
"""What the share is fitted to: so many episodes, spread evenly over the data, or their first so
many tokens."""

RIDGE = 1e-4
"""Beside the mean square of a hidden state's components."""

LEAST = 0.05
"""Of either share: data that all ended well leave something to the dummy."""


@torch.no_grad()
def raise_dummy(learner: Learner, dummy: int) -> None:
    """Makes p(a|s) = b π_φ(a|s) of every token and leaves 1 - b to the dummy.

        min over r of Σ_n (r·h_n - log Σ_a exp z_a(n) - log((1 - b) / b))²

    r is the dummy's own row of the output projection, and nothing else is changed; h are the last
    hidden states, z the logits; b is the mean mapped return-to-go of the data. Where the
    projection is not trained (LoRA) the row is π_φ's, too, and stays as it is; so it does where
    every episode was cut and no return is known.
    """
    models, data, config, _ = learner
    assert models.likelihood is not None
    module = models.likelihood.module
    projection = module.model.get_output_embeddings()
    assert projection is not None
    if not projection.weight.requires_grad:
        return
    sample = data.episodes[:: -(-len(data.episodes) // EPISODES)]
    returns_N = torch.cat([returns_of(episode, learner).targets_N for episode in sample])
    if len(returns_N) == 0:
        return
    share = returns_N.mean().clamp(LEAST, 1 - LEAST).to(models.behavior.device)
    module.eval()
    hidden: list[Tensor] = []
    wanted: list[Tensor] = []
    encoder, device = models.behavior.encoder, models.behavior.device
    for part in lay_out(sample, encoder, device, config.compute.micro_batch_tokens):
        hidden.append(module.action_hidden(part.tokens, part.is_action_BT))
        nats_N = module.log_normalizers(hidden[-1])
        wanted.append(nats_N + torch.logit(1 - share))
        if sum(map(len, wanted)) >= ACTIONS:
            break
    row_H = least_squares(torch.cat(hidden), torch.cat(wanted))
    projection.weight[dummy] = row_H.to(projection.weight.dtype)


def least_squares(inputs_NH: Tensor, wanted_N: Tensor) -> Tensor:
    """The row [H], float64, whose products with the inputs are nearest to what is wanted, held
    short by a ridge, so that there is one even where inputs are fewer than components."""
    x_NH, y_N = inputs_NH.double(), wanted_N.double()
    square_HH = x_NH.T @ x_NH
    ridge = RIDGE * square_HH.diagonal().mean()
    return torch.linalg.solve(square_HH + ridge * torch.eye(len(square_HH)).to(x_NH), x_NH.T @ y_N)
