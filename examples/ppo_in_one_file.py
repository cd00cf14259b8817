"""The whole of λ-PPO in one file, to be read from top to bottom.

A randomly initialized language model learns a one-step environment: first SFT on a few
answers of an expert, most of them wrong on purpose, then PPO finds what the reward pays
for. Only the model, the optimizer and the environment come from elsewhere; generating, scoring,
judging and the loss are all here, one completion at a time and as slowly as that is.

    python examples/ppo_in_one_file.py
"""

import json
import random
import re

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from forethought.environments import make_environment

GAMMA, GAE_LAMBDA, CLIP = 0.9, 0.95, 0.2
THOUGHT_WEIGHT = 0.5  # λ of RL4VLM's Eq. 4.3
ITERATIONS, EPISODES, EPOCHS, TEMPERATURE = 12, 64, 2, 1.0
ACTION_KEY = "action"

torch.manual_seed(0)
environment = make_environment("Bandit")
assert environment.actions is not None


# --- A model of words: one token per word or sign -----------------------------------------


def answer_of(letter: str, action: str) -> str:
    return json.dumps({"thoughts": f"the right answer is {letter}", "action": action})


def pieces(text: str) -> list[str]:
    return [piece for piece, _ in splitter.pre_tokenize_str(text)]


splitter = pre_tokenizers.Whitespace()
texts = [answer_of(a, a) + f" The right answer is {a}. <end>" for a in environment.actions]
words = sorted({piece for text in texts for piece in pieces(text)} | {"end"})
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}))
END = words.index("end")
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        initializer_range=64**-0.5,
    )
)
critic = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))


def encode(text: str) -> list[int]:
    return [words.index(piece) for piece in pieces(text)]


def score(prompt: list[int], completion: list[int]) -> tuple[Tensor, Tensor]:
    """Log-prob of each completion token [T], and the critic's value of the prompt."""
    output = model(torch.tensor([prompt + completion]), output_hidden_states=True)
    logits_TV = output.logits[0, len(prompt) - 1 : -1] / TEMPERATURE
    logprobs_T = logits_TV.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])[:, 0]
    return logprobs_T, critic(output.hidden_states[-1][0, len(prompt) - 1])[0]


# --- Supervised start: the form of an answer, with the action drawn at random ---------------

optimizer = torch.optim.Adam([*model.parameters(), *critic.parameters()], lr=2e-3)
dice = random.Random(0)
for _ in range(150):
    loss = torch.zeros(())
    for _ in range(8):
        letter = dice.choice(environment.actions)
        action = letter if dice.random() < 0.3 else dice.choice(environment.actions)
        prompt = encode(f"The right answer is {letter}.")
        logprobs_T, _ = score(prompt, [*encode(answer_of(letter, action)), END])
        loss = loss - logprobs_T.mean() / 8
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# --- Act: generate, find the action, step the environment -----------------------------------


@torch.no_grad()
def act(seed: int) -> tuple[list[int], list[int], int, Tensor, float, float]:
    """One episode: prompt, completion, where the action starts, log-probs, value, reward."""
    prompt, completion = encode(environment.reset(seed).text or ""), []
    while len(completion) < 40 and END not in completion:
        logits_V = model(torch.tensor([prompt + completion])).logits[0, -1] / TEMPERATURE
        completion.append(int(torch.multinomial(logits_V.softmax(-1), 1)))
    text = " ".join(words[i] for i in completion)
    found = re.search(r'action ": " (\w)', text)
    reward = environment.step(found.group(1) if found else "").reward
    keys = [i for i, token in enumerate(completion) if words[token] == ACTION_KEY]
    action_start = keys[-1] if keys else len(completion)
    logprobs_T, value = score(prompt, completion)
    return prompt, completion, action_start, logprobs_T, float(value), reward


def advantages(rewards_T: list[float], values_T: list[float]) -> list[float]:
    """Generalized advantage estimation of an episode that terminates at its last step."""
    result, advantage, next_value = [], 0.0, 0.0
    for reward, value in zip(reversed(rewards_T), reversed(values_T), strict=True):
        advantage = reward + GAMMA * next_value - value + GAMMA * GAE_LAMBDA * advantage
        result.append(advantage)
        next_value = value
    return result[::-1]


def scaled(logprobs_T: Tensor, action_start: int) -> Tensor:
    """log π = λ log π(thoughts) + log π(action | thoughts): Eq. 4.3."""
    return THOUGHT_WEIGHT * logprobs_T[:action_start].sum() + logprobs_T[action_start:].sum()


# --- Improve ---------------------------------------------------------------------------------

for group in optimizer.param_groups:
    group["lr"] = 5e-4
rewards: list[float] = []
for iteration in range(ITERATIONS):
    episodes = [act(iteration * EPISODES + index) for index in range(EPISODES)]
    rewards = [reward for *_, reward in episodes]
    judged = torch.tensor([advantages([r], [v])[0] for *_, v, r in episodes])
    judged = (judged - judged.mean()) / (judged.std() + 1e-8)
    for epoch in range(EPOCHS):
        for start in range(0, EPISODES, 32):
            loss = torch.zeros(())
            for index in range(start, start + 32):
                prompt, completion, split, old_logprobs_T, _, reward = episodes[index]
                logprobs_T, value = score(prompt, completion)
                ratio = (scaled(logprobs_T, split) - scaled(old_logprobs_T, split)).exp()
                if epoch == 0 and start == 0:  # nothing was updated yet: the data are ours
                    assert abs(ratio.item() - 1) < 1e-4
                gain = torch.minimum(
                    ratio * judged[index], ratio.clamp(1 - CLIP, 1 + CLIP) * judged[index]
                )
                loss = loss + (-gain + 0.5 * (value - reward) ** 2) / 32
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"iteration {iteration + 1:2d}   mean reward {sum(rewards) / EPISODES:.2f}", flush=True)

assert sum(rewards) / EPISODES > 0.8, "PPO did not learn the environment"
