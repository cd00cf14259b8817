"""Which loss an objective of preference optimization is."""

import torch

from forethought.algorithms.dpo.config import DPOConfig
from forethought.losses.preference import (
    Answers,
    PreferenceLoss,
    dpo_loss,
    hinge_loss,
    ipo_loss,
    kto_loss,
    robust_dpo_loss,
    rpo_loss,
    simpo_loss,
)
from forethought.losses.thought_preference import action_weighted_loss, constant_action_loss


def objective(
    winners: Answers, losers: Answers, config: DPOConfig, reference_point: float
) -> PreferenceLoss:
    """What the settings make of the pairs."""
    match config.loss_type:
        case "sigmoid":
            return dpo_loss(winners=winners, losers=losers, beta=config.beta)
        case "constant_action":
            return constant_action_loss(winners=winners, losers=losers, beta=config.beta)
        case "apw":
            return action_weighted_loss(
                winners=winners,
                losers=losers,
                beta=config.beta,
                weight_gradient=config.weight_gradient,
                weight_normalization=config.weight_normalization,
                reference=config.weighted_reference,
            )
        case "ipo":
            return ipo_loss(winners=winners, losers=losers, beta=config.beta)
        case "robust":
            return robust_dpo_loss(
                winners=winners,
                losers=losers,
                beta=config.beta,
                label_smoothing=config.label_smoothing,
            )
        case "rpo":
            return rpo_loss(
                winners=winners, losers=losers, beta=config.beta, nll_weight=config.rpo_alpha
            )
        case "hinge":
            return hinge_loss(winners=winners, losers=losers, beta=config.beta)
        case "kto":
            return unpaired(winners, losers, config.beta, reference_point)
        case "simpo":
            return simpo_loss(
                winners=winners,
                losers=losers,
                beta=config.beta,
                simpo_gamma=config.simpo_gamma,
            )


def unpaired(
    winners: Answers, losers: Answers, beta: float, reference_point: float
) -> PreferenceLoss:
    """KTO: winners are desirable and losers are not, as many of each."""
    desirable_P = torch.ones_like(winners.log_ratios, dtype=torch.bool)
    loss = kto_loss(
        log_ratios_B=torch.cat([winners.log_ratios, losers.log_ratios]),
        is_desirable_B=torch.cat([desirable_P, ~desirable_P]),
        reference_point=reference_point,
        beta=beta,
    )
    return PreferenceLoss(loss, (beta * (winners.log_ratios - losers.log_ratios)).detach())
