"""Is the plan true? The memory and the time that an update needs, predicted and measured.

    python -m benchmarks.plan [NAME…]

Each row is a model of random weights (SmolLM2: the real ones). One fresh process predicts from the
configuration alone, another does the update and notes by how much its resident memory grew: a
small optimizer step first, in which Adam makes its moments, then one of two micro-batches. Then
three more of these, of which the fastest counts, in processor time. Exits with 1 if a prediction of
memory is off by more than 15 %.

The C library is told to take blocks from 64 KiB on from the system and to give them back at once.
By default it keeps smaller ones than 32 MiB in a heap with holes in it: FORETHOUGHT_HEAP=1. Time is
taken in other processes, with the default: to get each block from the system costs half as much
again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from forethought.configs.parts import LoraConfig, OptimizerConfig
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.actor_critic import Scores, ValueHead
from forethought.models.batching import Example, TokenBatch, build_batch
from forethought.models.encoding import Encoder
from forethought.models.loading import LoadedModel, load_outline, load_pretrained
from forethought.models.lora import add_lora
from forethought.models.tiny import SIZES, make_tiny
from forethought.training.cost import fastest, speed_of, update_cost
from forethought.training.optim import Updater
from forethought.training.processes import autocast
from forethought.types import Message
from tests.contract.architectures.builders import ARCHITECTURES

TOLERANCE = 0.15
DECODER: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "vocab_size": 8192,
}
TOWER: dict[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "depth": 6,
    "out_hidden_size": 512,
}
GPT2: dict[str, Any] = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    model: str
    """`tiny`, `smollm2`, or an architecture whose configuration is enlarged."""
    precision: Literal["fp32", "bf16"] = "fp32"
    has_adapters: bool = False
    recomputes: bool = False
    tokens: int = 256
    """Of a micro-batch, about."""


CASES = {
    "tiny full fp32": Case("tiny", tokens=4096),
    "tiny full bf16": Case("tiny", "bf16", tokens=4096),
    "smollm2 full fp32": Case("smollm2"),
    "smollm2 LoRA bf16": Case("smollm2", "bf16", has_adapters=True),
    "smollm2 LoRA fp32 recomputed": Case("smollm2", has_adapters=True, recomputes=True),
    "gpt2 full fp32": Case("gpt2"),
    "gpt2 LoRA fp32": Case("gpt2", has_adapters=True),
    "llava_next full fp32": Case("llava_next", tokens=512),
    "llava_next LoRA bf16": Case("llava_next", "bf16", has_adapters=True, tokens=512),
    "qwen2_5_vl full bf16": Case("qwen2_5_vl", "bf16", tokens=512),
    "qwen3_vl LoRA fp32": Case("qwen3_vl", has_adapters=True, tokens=512),
}


def outline_of(case: Case, folder: Path) -> LoadedModel:
    """The model without weights."""
    if case.model in SIZES:
        return make_tiny(["left right up down"], seed=0, size=SIZES[case.model])
    if case.model == "smollm2":
        return load_outline("smollm2")
    ARCHITECTURES[case.model][0](folder)
    path = folder / "config.json"
    config: dict[str, Any] = json.loads(path.read_text())
    if case.model == "gpt2":
        config |= GPT2
    elif "text_config" in config:
        text, tower = config["text_config"], config["vision_config"]
        text |= DECODER
        text.pop("layer_types", None)
        if (rope := text.get("rope_parameters")) and "mrope_section" in rope:
            rope["mrope_section"] = [16, 8, 8]
        tower |= {name: size for name, size in TOWER.items() if name in tower}
    path.write_text(json.dumps(config))
    return load_outline(str(folder))


def with_weights(case: Case, outline: LoadedModel) -> LoadedModel:
    """The same model, to be trained."""
    dtype = torch.bfloat16 if case.precision == "bf16" and case.has_adapters else torch.float32
    if case.model == "smollm2":
        return load_pretrained("smollm2", dtype=dtype)
    kind: Any = type(outline.model)
    config = outline.model.config
    return outline._replace(
        model=kind._from_config(config, attn_implementation="sdpa", dtype=dtype)
    )


def halve(loaded: LoadedModel) -> None:
    """Keeps weights in bf16, as training does where they are frozen."""
    model: Any = loaded.model
    model.to(torch.bfloat16)


def with_adapters(case: Case, loaded: LoadedModel) -> LoadedModel:
    """Adapters of rank 16 on the language model, where the case has them."""
    if not case.has_adapters:
        return loaded
    loaded.model.name_or_path = case.model
    settings = LoraConfig(components=("language_model",), rank=16, alpha=32)
    return loaded._replace(adapter=add_lora(loaded.model, settings, seed=0))


def batch_of(loaded: LoadedModel, tokens: int, sides: int = 64) -> TokenBatch:
    """Prompts of some sixty words, with an image where the model reads one; 32 tokens each.

    Args:
        tokens: of all, about.
        sides: pixels on a side of the image.
    """
    encoder = Encoder(loaded.model, loaded.processor)
    image = np.full((sides, sides, 3), 200, dtype=np.uint8) if encoder.reads_images else None
    text = " ".join(f"the number is {i}" for i in range(15))
    prompt = encoder.encode((Message("user", text, image),))
    known = next(i for i in range(len(encoder.tokenizer)) if i not in encoder.placeholder_ids)
    example = Example(prompt, (known,) * 32)
    count = max(1, tokens // example.length)
    return build_batch([[example] for _ in range(count)], encoder)


class Needs(NamedTuple):
    """Of an optimizer step of two micro-batches."""

    nbytes: float
    seconds: float
    """Of processor time."""


def predict(case: Case, folder: Path) -> Needs:
    """From the configuration."""
    torch.set_num_threads(1)
    outline = outline_of(case, folder)
    batch = batch_of(outline, case.tokens)
    if case.precision == "bf16" and case.has_adapters:
        halve(outline)
    with torch.device("meta"):
        outline = with_adapters(case, outline)
    cost = update_cost(
        outline, batch, critic=True, precision=case.precision, recomputes=case.recomputes
    )
    return Needs(cost.total, speed_of(cost, micro_batches=2).update)


def measure(case: Case) -> Needs:
    """From a process that does it."""
    torch.set_num_threads(1)
    accelerator = Accelerator(mixed_precision="no" if case.precision == "fp32" else "bf16")
    do_update(Case("tiny-small", case.precision, tokens=1), accelerator)  # What the libraries
    # load and allocate when they are first used is no part of a model.
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    step = do_update(case, accelerator)
    grown = _status("VmHWM") - before
    return Needs(grown, fastest(step))


def do_update(case: Case, accelerator: Accelerator) -> Callable[[], None]:
    """Two optimizer steps of a model.

    Returns:
        Does another like the second.
    """
    with TemporaryDirectory() as folder:
        outline = outline_of(case, Path(folder))
    loaded = with_adapters(case, with_weights(case, outline))
    batch, small = batch_of(loaded, case.tokens), batch_of(loaded, 1)
    if case.recomputes:
        loaded.model.activation_checkpointing_enable({"use_reentrant": False})
    width = loaded.model.config.get_text_config().hidden_size
    head = ValueHead(width, generator=torch.Generator().manual_seed(0))
    policy = HuggingFacePolicy(loaded, slots=1, value_head=head)
    updater = Updater(
        module=policy.module, accelerator=accelerator, config=OptimizerConfig(), total_steps=9
    )
    policy.module.without_dropout()

    def loss(tokens: TokenBatch) -> Tensor:
        with autocast(accelerator, recomputes=case.recomputes):
            scores: Scores = policy.module(tokens)
        assert scores.values_B is not None
        return 1e-4 * (scores.logprobs_BT.sum() + scores.values_B.sum())

    def step() -> None:
        updater.step([lambda: loss(batch)] * 2)

    updater.step([lambda: loss(small)])
    step()
    return step


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _ask(what: str, name: str, settings: dict[str, str]) -> Needs:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.plan", what, name],
        env=os.environ | settings,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Needs(*map(float, done.stdout.split()[-2:]))


def main() -> int:
    """The table, or, in a process of its own, one number of it."""
    if sys.argv[1:2] in (["predict"], ["measure"]):
        case = CASES[sys.argv[2]]
        with TemporaryDirectory() as folder:
            needs = measure(case) if sys.argv[1] == "measure" else predict(case, Path(folder))
        print(*needs)
        return 0
    print("| | MiB predicted | measured | ratio | seconds predicted | measured | ratio |")
    print(f"|{'---|' * 7}")
    worst = 0.0
    blocks = {} if "FORETHOUGHT_HEAP" in os.environ else {"MALLOC_MMAP_THRESHOLD_": "65536"}
    for name in sys.argv[1:] or CASES:
        predicted, measured = (
            Needs(_ask(what, name, blocks).nbytes / 2**20, _ask(what, name, {}).seconds)
            for what in ("predict", "measure")
        )
        memory, time = predicted.nbytes / measured.nbytes, predicted.seconds / measured.seconds
        worst = max(worst, abs(memory - 1))
        print(
            f"| {name} | {predicted.nbytes:,.0f} | {measured.nbytes:,.0f} | {memory:.2f} "
            f"| {predicted.seconds:.2f} | {measured.seconds:.2f} | {time:.2f} |",
            flush=True,
        )
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
