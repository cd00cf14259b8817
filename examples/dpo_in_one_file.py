"""The whole of step-wise DPO in one file, to be read from top to bottom (InteractiveCOT, Eq. 1).

A language model trained from scratch learns a one-step environment: after a short SFT on an expert
that is right too rarely, it answers every prompt several times; a completion with a higher reward
is chosen over one with a lower reward, and the policy learns from these pairs, held to the model
after SFT as its reference. Only model, optimizer and environment come from elsewhere.

    python examples/dpo_in_one_file.py
"""

import copy
import json
import random
import re
from typing import NamedTuple

import torch
from tokenizers import pre_tokenizers
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from transformers import LlamaConfig, LlamaForCausalLM

from forethought.environments import make_environment

BETA = 0.3  # scale of log-ratios: the larger, the nearer to the reference
ITERATIONS, STARTS, GROUP_SIZE, EPOCHS, BATCH = 10, 16, 6, 2, 16
SFT_UPDATES, MAX_NEW_TOKENS = 100, 24

environment = make_environment("Bandit")
ACTIONS = environment.actions or ()
splitter = pre_tokenizers.Whitespace()


# --- A model of words: one token per word or sign -------------------------------------------------


def answer_of(letter: str, action: str) -> str:
    return json.dumps({"thoughts": f"the right answer is {letter}", "action": action})


def pieces(text: str) -> list[str]:
    return [piece for piece, _ in splitter.pre_tokenize_str(text)]


TEXTS = [answer_of(a, a) + f" The right answer is {a}. end" for a in ACTIONS]
WORDS = sorted({piece for text in TEXTS for piece in pieces(text)})
END = WORDS.index("end")


def encode(text: str) -> list[int]:
    return [WORDS.index(piece) for piece in pieces(text)]


def make_model() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(WORDS),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            bos_token_id=None,
            eos_token_id=END,
            initializer_range=64**-0.5,
        )
    )


class Sample(NamedTuple):
    """A prompt, and what was answered to it; all prompts of this environment have one length."""

    prompt: list[int]
    completion: list[int]


def logprobs_of(model: nn.Module, samples: list[Sample]) -> Tensor:
    """log π(y|x) of each completion [P], summed over its tokens."""
    longest = max(len(sample.completion) for sample in samples)
    padding = [[END] * (longest - len(sample.completion)) for sample in samples]
    rows = [s.prompt + s.completion + pad for s, pad in zip(samples, padding, strict=True)]
    ids_PL, start = torch.tensor(rows), len(samples[0].prompt)
    logprobs_PTV = model(ids_PL).logits[:, start - 1 : -1].log_softmax(-1)
    logprobs_PT = logprobs_PTV.gather(2, ids_PL[:, start:, None])[:, :, 0]
    lengths_P1 = torch.tensor([[len(sample.completion)] for sample in samples])
    return (logprobs_PT * (torch.arange(longest) < lengths_P1)).sum(1)


# --- Act: several completions of each prompt, and what they earned --------------------------------


@torch.no_grad()
def generate(model: nn.Module, prompts: list[list[int]]) -> list[Sample]:
    """One completion for each prompt, sampled at temperature 1, up to and with its end."""
    ids_PL = torch.tensor(prompts)
    for _ in range(MAX_NEW_TOKENS):
        probabilities_PV = model(ids_PL).logits[:, -1].softmax(-1)
        ids_PL = torch.cat([ids_PL, torch.multinomial(probabilities_PV, 1)], dim=1)
        if bool((ids_PL[:, len(prompts[0]) :] == END).any(1).all()):
            break
    samples: list[Sample] = []
    for prompt, row in zip(prompts, ids_PL.tolist(), strict=True):
        completion = row[len(prompt) :]
        length = completion.index(END) + 1 if END in completion else len(completion)
        samples.append(Sample(prompt, completion[:length]))
    return samples


def reward_of(seed: int, sample: Sample) -> float:
    """Plays the action that the completion names; one that names none earns nothing."""
    environment.reset(seed)
    text = " ".join(WORDS[i] for i in sample.completion)
    found = re.search(r'action ": " (\w)', text)
    return environment.step(found.group(1) if found else "").reward


class Pair(NamedTuple):
    chosen: Sample
    rejected: Sample


def make_pairs(samples: list[Sample], rewards: list[float]) -> list[Pair]:
    """Any two completions of one prompt of which one earned more; ties make no pair."""
    ranked = list(zip(samples, rewards, strict=True))
    return [Pair(one, other) for one, high in ranked for other, low in ranked if high > low]


# --- The loss -------------------------------------------------------------------------------------


def sft_loss(model: nn.Module, samples: list[Sample]) -> Tensor:
    """L = -mean log p per token."""
    return -logprobs_of(model, samples).sum() / sum(len(s.completion) for s in samples)


def dpo_loss(policy: nn.Module, reference: nn.Module, pairs: list[Pair]) -> Tensor:
    """L = -mean log σ(β r(y⁺) - β r(y⁻)),   r(y) = log π_θ(y|x) - log π_ref(y|x).

    At π_θ = π_ref it pushes as REINFORCE does, with advantage β/2 for the chosen completion and
    -β/2 for the rejected one; a pair that is ranked well already teaches little.
    """
    samples = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    with torch.no_grad():
        reference_P = logprobs_of(reference, samples)
    chosen_P, rejected_P = (logprobs_of(policy, samples) - reference_P).chunk(2)
    return -logsigmoid(BETA * (chosen_P - rejected_P)).mean()


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    dice = random.Random(0)
    policy = make_model()
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
    for _ in range(SFT_UPDATES):  # the form of an answer, most actions drawn at random
        samples: list[Sample] = []
        for letter in dice.choices(ACTIONS, k=BATCH):
            action = letter if dice.random() < 0.3 else dice.choice(ACTIONS)
            answer = [*encode(answer_of(letter, action)), END]
            samples.append(Sample(encode(f"The right answer is {letter}."), answer))
        update(optimizer, sft_loss(policy, samples))
    reference = copy.deepcopy(policy).eval()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    success = 0.0
    for iteration in range(ITERATIONS):
        seeds = range(iteration * STARTS, (iteration + 1) * STARTS)
        prompts = [encode(environment.reset(seed).text or "") for seed in seeds]
        pairs: list[Pair] = []
        success = 0.0
        for seed, prompt in zip(seeds, prompts, strict=True):
            samples = generate(policy, [prompt] * GROUP_SIZE)
            rewards = [reward_of(seed, sample) for sample in samples]
            pairs += make_pairs(samples, rewards)
            success += sum(rewards) / (GROUP_SIZE * STARTS)
        for _ in range(EPOCHS):
            dice.shuffle(pairs)
            for start in range(0, len(pairs), BATCH):
                update(optimizer, dpo_loss(policy, reference, pairs[start : start + BATCH]))
        print(f"iteration {iteration + 1}   success {success:.0%}   {len(pairs)} pairs", flush=True)
    assert success > 0.8, "DPO did not learn the environment"


if __name__ == "__main__":
    main()
