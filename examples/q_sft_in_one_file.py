"""The whole of Q-SFT in one file, to be read from top to bottom (Hong et al. 2024).

The data are walks of a random policy in a corridor of rooms. Behavior cloning of them walks as
randomly; Q-SFT walks straight to the goal. There is no value head: a second language model p_θ
learns to give each token the probability π_φ(token) · Q(token), by a weighted cross-entropy, so
that the value is the ratio p_θ / π_φ. The model class and the optimizer are Hugging Face's and
torch's; everything else is here. All prompts have one length, so nothing is padded.

    python examples/q_sft_in_one_file.py
"""

import copy
import math
import random
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

ROOMS, START, LIMIT = 6, 1, 12  # room 0 is a pit, room 5 the goal; 12 steps at most
GAMMA = 0.8  # discount per environment step; between the tokens of one completion there is none
MIN_PROBABILITY, FLOOR = 1e-3, 1e-3  # rarer tokens have no value; denominators of ratios
POLYAK_TAU = 0.1  # the target network moves so far towards p_θ after every update
BETA = 32.0  # the acting policy is π_φ exp(β Q)
WALKS, BATCH, BC_UPDATES, Q_UPDATES = 400, 20, 80, 300

WORDS = ["room", *map(str, range(ROOMS)), "left", "right"]
END, RESIDUAL = len(WORDS), len(WORDS) + 1
VOCABULARY = len(WORDS) + 2
"""The words, the end of a completion, and a token that no data hold: it gets what is not value."""


# --- The data: episodes of a policy that goes left or right at random ---------------------------


class Step(NamedTuple):
    prompt: list[int]
    completion: list[int]
    reward: float


class Episode(NamedTuple):
    steps: list[Step]
    terminated: bool
    """True: goal or pit. False: the limit cut it, and what would have followed is not known."""


def encode(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


def walk(dice: random.Random) -> Episode:
    room, steps = START, []
    while len(steps) < LIMIT and 0 < room < ROOMS - 1:
        prompt, direction = encode(f"room {room}"), dice.choice(["left", "right"])
        room += 1 if direction == "right" else -1
        reward = 1.0 if room == ROOMS - 1 else 0.0
        steps.append(Step(prompt, [*encode(direction), END], reward))
    return Episode(steps, terminated=room in (0, ROOMS - 1))


# --- Models -------------------------------------------------------------------------------------


def make_model() -> LlamaForCausalLM:
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    more = {"num_attention_heads": 4, "initializer_range": 64**-0.5, "bos_token_id": None}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, eos_token_id=END, **sizes, **more))


def steps_of(episodes: list[Episode]) -> list[Step]:
    return [step for episode in episodes for step in episode.steps]


def logprobs_of(model: nn.Module, steps: list[Step]) -> Tensor:
    """log p of every token [N, V] in the N states in which the agent chose a token."""
    ids_BL = torch.tensor([step.prompt + step.completion for step in steps])
    chosen = len(steps[0].completion)
    return model(ids_BL).logits[:, -chosen - 1 : -1].flatten(0, 1).log_softmax(-1)


def tokens_of(steps: list[Step]) -> Tensor:
    """The N tokens that the data chose: [N, 1]."""
    return torch.tensor([[token] for step in steps for token in step.completion])


# --- Losses and targets ---------------------------------------------------------------------------


def cloning_loss(behavior: nn.Module, steps: list[Step]) -> Tensor:
    """L = -mean log π_φ(a|s): Eq. 2."""
    return -logprobs_of(behavior, steps).gather(1, tokens_of(steps)).mean()


def ratios(likelihood_NV: Tensor, behavior_NV: Tensor) -> Tensor:
    """Q(s, a) = p(a|s) / π_φ(a|s) of tokens that the data hold often enough, 0 of all others."""
    words_NV = behavior_NV.index_fill(1, torch.tensor([RESIDUAL]), -math.inf)
    support_NV = words_NV >= math.log(MIN_PROBABILITY)
    support_NV = support_NV.scatter(1, words_NV.argmax(1, keepdim=True), True)
    floored_NV = behavior_NV.clamp(min=math.log(FLOOR))
    return (likelihood_NV - floored_NV).exp().masked_fill(~support_NV, 0.0)


class Targets(NamedTuple):
    targets_N: Tensor
    is_known_N: Tensor


@torch.no_grad()
def bellman_targets(behavior: nn.Module, target: nn.Module, episodes: list[Episode]) -> Targets:
    """B(s, a) = clip(r + d max_a' Q(s', a'), 0, 1), Q by the target network: Sec. 4.1.

    The state after a token is the one in which the next token is chosen: in the same completion,
    or, after its last token, in the next step's. Rewards come with a completion's last token.
    """
    steps = steps_of(episodes)
    values_N = ratios(logprobs_of(target, steps), logprobs_of(behavior, steps)).amax(1)
    rewards, discounts, known = list[float](), list[float](), list[bool]()
    for episode in episodes:
        for step in episode.steps:
            inside = len(step.completion) - 1
            rewards += [0.0] * inside + [step.reward]
            discounts += [1.0] * inside + [GAMMA]
            known += [True] * len(step.completion)
        if episode.terminated:
            discounts[-1] = 0.0  # nothing follows
        else:
            known[-1] = False  # something follows, and nobody knows what
    backup_N = torch.tensor(rewards) + torch.tensor(discounts) * values_N.roll(-1)
    return Targets(backup_N.clamp(0.0, 1.0), torch.tensor(known))


def q_sft_loss(likelihood: nn.Module, steps: list[Step], targets: Targets) -> Tensor:
    """L = -mean(B log p_θ(a|s) + (1 - B) log p_θ(residual|s)): Eq. 3, the rest on one token."""
    logprobs_NV = logprobs_of(likelihood, steps)
    own_N, rest_N = logprobs_NV.gather(1, tokens_of(steps))[:, 0], logprobs_NV[:, RESIDUAL]
    losses_N = -(targets.targets_N * own_N + (1 - targets.targets_N) * rest_N)
    return losses_N[targets.is_known_N].mean()


# --- Acting: π ∝ π_φ exp(β Q) ---------------------------------------------------------------------


@torch.no_grad()
def success_rate(behavior: nn.Module, likelihood: nn.Module, beta: float, episodes: int) -> float:
    successes = 0
    for _ in range(episodes):
        room = START
        for _ in range(LIMIT):  # only the direction has to be sampled: the end follows by itself
            state = [Step(encode(f"room {room}"), [END], 0.0)]
            behavior_1V = logprobs_of(behavior, state)
            values_1V = ratios(logprobs_of(likelihood, state), behavior_1V).clamp(max=1.0)
            policy_1V = (behavior_1V + beta * values_1V).softmax(-1)
            token = int(torch.multinomial(policy_1V, 1))
            room += {WORDS.index("right"): 1, WORDS.index("left"): -1}.get(token, 0)
            if room in (0, ROOMS - 1):
                break
        successes += room == ROOMS - 1
    return successes / episodes


def train(model: nn.Module, updates: int) -> Iterator[int]:
    """Adam with a learning rate that falls linearly: the caller computes the gradient."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, updates)
    for update in range(1, updates + 1):
        optimizer.zero_grad()
        yield update
        optimizer.step()
        schedule.step()


def main() -> None:
    torch.manual_seed(0)
    dice = random.Random(0)
    walks = [walk(dice) for _ in range(WALKS)]
    behavior = make_model()
    for _ in train(behavior, BC_UPDATES):  # phase one: π_φ clones the data
        cloning_loss(behavior, steps_of(dice.sample(walks, BATCH))).backward()
    likelihood, target = copy.deepcopy(behavior), copy.deepcopy(behavior)
    for update in train(likelihood, Q_UPDATES):  # phase two: p_θ learns π_φ Q
        with torch.no_grad():  # θ̄ follows θ, which the last update moved
            for slow, fast in zip(target.parameters(), likelihood.parameters(), strict=True):
                slow.lerp_(fast, POLYAK_TAU)
        episodes = dice.sample(walks, BATCH)
        targets = bellman_targets(behavior, target, episodes)
        loss = q_sft_loss(likelihood, steps_of(episodes), targets)
        loss.backward()
        if update % 50 == 0:
            print(f"update {update}   loss {loss.item():.3f}", flush=True)
    cloned, learned = (success_rate(behavior, likelihood, beta, 50) for beta in (0.0, BETA))
    print(f"reaches the goal: behavior cloning {cloned:.0%}, Q-SFT {learned:.0%}")
    assert learned > cloned + 0.4, "Q-SFT did not learn the way"


if __name__ == "__main__":
    main()
