"""Peak memory and processor time of one training step's log-probs, in chunks and all at once.

    python -m benchmarks.projection_memory --model smollm2

Each side is a process of its own, so that neither pays for the other's memory. The work is one
forward and backward pass of the supervised loss with LoRA adapters (rank 16) over a micro-batch.
"""

import argparse
import multiprocessing
import time
from functools import partial

import torch

from benchmarks.speed.memory import with_peak
from forethought.configs.parts import LoraConfig
from forethought.libraries import load_quietly
from forethought.losses.cross_entropy import token_mean_cross_entropy
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import Example, build_batch
from forethought.models.encoding import Encoder
from forethought.models.loading import load_pretrained
from forethought.models.lora import add_lora
from forethought.types import Prompt


def measure(model: str, rows: int, prompt: int, answer: int, largest: int | None) -> str:
    """One pass, in words."""
    load_quietly(threads=1)
    loaded = load_pretrained(model)
    add_lora(loaded.model, LoraConfig(("language_model",), rank=16, alpha=32, dropout=0.0), seed=0)
    module = ActorCritic(loaded.model, None)
    if largest is not None:
        module.largest_projection = largest
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(20, 1000, (rows, prompt + answer), generator=generator).tolist()
    examples = [[Example(Prompt((), tuple(r[:prompt])), tuple(r[prompt:]))] for r in ids]
    batch = build_batch(examples, Encoder(loaded.model, loaded.processor))

    def learn() -> float:
        loss = token_mean_cross_entropy(
            logprobs_BT=module(batch).logprobs_BT, mask_BT=batch.mask_BT
        ).loss
        loss.backward()
        return loss.item()

    _, before = with_peak(lambda: None)
    started = time.process_time()
    loss, peak = with_peak(learn)
    seconds = time.process_time() - started
    norm = torch.stack([p.grad.norm() for p in module.parameters() if p.grad is not None]).norm()
    held = (peak.resident_mib or 0.0) - (before.resident_mib or 0.0)
    return (
        f"peak {peak.resident_mib:.0f} MiB, {held:.0f} of them for the pass; {seconds:.1f} s of "
        f"processor time; loss {loss:.7f}; gradient {norm.item():.7f}"
    )


def main() -> None:
    """Both sides, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2", help="a folder or the name of a model")
    parser.add_argument("--rows", type=int, default=16, help="answers in the micro-batch")
    parser.add_argument("--prompt", type=int, default=64, help="tokens of a prompt")
    parser.add_argument("--answer", type=int, default=64, help="tokens of an answer")
    asked = parser.parse_args()
    one = partial(measure, asked.model, asked.rows, asked.prompt, asked.answer)
    for name, largest in (("all at once", 2**62), ("in chunks", None)):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(f"{name}: {pool.apply(one, (largest,))}", flush=True)


if __name__ == "__main__":
    main()
