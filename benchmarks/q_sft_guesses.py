"""Do Q-SFT's values know the guess, or only the state? Wordle, two guesses in one state.

    python benchmarks/q_sft_guesses.py runs/wordle_q_sft_exact data/wordle_other_seed
    python benchmarks/q_sft_guesses.py RUN DATA --episodes 300

In every state behind the first guess one word that agrees with all marks so far is set beside
one that does not, both drawn at random. Printed is how often the first has the higher number, in
per cent, by guess: 50 says that the number knows nothing of it. The numbers: π_φ of the whole
answer; p/π at the first token in which the guesses differ, where the policy would have to choose;
p/π at the answer's last token, where π_φ is nearly 1 and p is the value of the whole answer.
"""

import argparse
from collections import defaultdict
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from forethought.configs.acting import ActingConfig
from forethought.environments.contract import ExpertAction
from forethought.environments.parts import read_transcript
from forethought.environments.wordle.marks import SIGNS, code, load_words, spelled
from forethought.environments.wordle.wordle import Candidates, all_candidates, consistent
from forethought.models.batching import Example, build_batch
from forethought.offline.dataset import stored
from forethought.prompts.responses import write_response
from forethought.runs.checkpoints import model_source
from forethought.types import Step
from forethought.value_guided.policy import WeightedPolicy, load_reweighted

NUMBERS = ("π of the answer", "p/π where they differ", "p/π at the end")


def candidates_of(step: Step) -> Candidates:
    """Words that agree with the marks told so far."""
    numbers = {word: number for number, word in enumerate(load_words("small"))}
    left = all_candidates("small")
    for turn in read_transcript("" if step.state_key == "start" else step.state_key):
        guess = numbers.get("".join(turn.action.split()))
        signs = turn.reply.partition(",")[0].split()
        if guess is not None:
            marks = tuple(SIGNS.index(sign) for sign in signs)
            left = consistent(left, guess, code(marks), "small", "official")
    return left


@torch.no_grad()
def compare(
    policy: WeightedPolicy[ActingConfig], step: Step, guesses: tuple[str, str]
) -> tuple[float, float, float]:
    """Whether the first guess has the higher number, by `NUMBERS`: 1, 0, or 0.5 for equal ones."""
    encoder, behavior = policy.behavior.encoder, policy.behavior
    texts = [write_response(ExpertAction(guess, ()), "action_only") for guess in guesses]
    prompt = behavior.prompt(step.prompt.messages)
    examples = [Example(prompt, encoder.tokenize_response(text)) for text in texts]
    batch = build_batch([examples], encoder)
    own_BT = behavior.module(batch).logprobs_BT
    ratios_BT = policy.worth(batch).logprobs_BT - own_BT
    first, second = (example.completion_ids for example in examples)
    differ = next(
        place for place, ids in enumerate(zip(first, second, strict=False)) if ids[0] != ids[1]
    )
    pairs = (
        own_BT.sum(1),
        ratios_BT[:, differ],
        torch.stack([ratios_BT[0, len(first) - 1], ratios_BT[1, len(second) - 1]]),
    )
    won = [0.5 * (1 + torch.sign(pair[0] - pair[1]).item()) for pair in pairs]
    return won[0], won[1], won[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("run", help="a run of train q-sft on Wordle")
    parser.add_argument("data", help="a file or folder of Wordle's episodes")
    parser.add_argument("--episodes", type=int, default=200)
    typed = parser.parse_args()
    policy = load_reweighted(Path(model_source(typed.run)), slots=1)
    randomness = np.random.default_rng(0)
    words = load_words("small")
    letters = tuple(spelled(word) for word in words)
    found: defaultdict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for trajectory in islice(stored(Path(typed.data)), typed.episodes):
        for number, step in enumerate(trajectory.steps[1:], start=2):
            left = candidates_of(step)
            others = np.setdiff1d(all_candidates("small"), left)
            if not len(others):
                continue  # Nothing was told yet: the guess before was no word.
            said = letters if " " in step.action.action else words
            pair = said[randomness.choice(left)], said[randomness.choice(others)]
            found[number].append(compare(policy, step, pair))
    print(f"{'guess':>5} {'states':>7}  " + "  ".join(NUMBERS))
    for number, rows in sorted(found.items()):
        shares = 100 * np.mean(rows, axis=0)
        told = "  ".join(f"{s:{len(name)}.0f}" for s, name in zip(shares, NUMBERS, strict=True))
        print(f"{number:5} {len(rows):7}  {told}")


if __name__ == "__main__":
    main()
