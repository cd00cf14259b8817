"""What LLaVA-v1.6-Mistral-7B needs on cards of 80 GB, predicted from its published sizes.

python -m benchmarks.plan_llava
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.plan import batch_of, halve
from forethought.configs.parts import LoraConfig
from forethought.models.loading import LoadedModel, load_outline
from forethought.models.lora import add_lora
from forethought.training.cost import update_cost
from tests.contract.architectures.builders import ARCHITECTURES

LLAVA_7B: dict[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32064,
    "max_position_embeddings": 32768,
    "head_dim": 128,
}
CLIP_LARGE: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
GRID = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


def llava_outline(folder: Path) -> LoadedModel:
    """LLaVA-v1.6-Mistral-7B by its published sizes, no weights; prompts of a simple tokenizer."""
    ARCHITECTURES["llava_next"][0](folder)
    path = folder / "config.json"
    config: dict[str, Any] = json.loads(path.read_text())
    config["text_config"] |= LLAVA_7B
    config["vision_config"] |= CLIP_LARGE
    config["image_grid_pinpoints"] = GRID
    path.write_text(json.dumps(config))
    outline = load_outline(str(folder))
    processor: Any = outline.processor
    processor.patch_size = CLIP_LARGE["patch_size"]
    images = processor.image_processor
    images.size = type(images.size)(shortest_edge=336)
    images.crop_size = type(images.crop_size)(height=336, width=336)
    images.image_grid_pinpoints = GRID
    return outline


def show_llava(sides: int = 300) -> None:
    """GiB of one process of PPO: while it learns, and while 16 environments are played."""
    print("| | trained | tokens of a prompt | learning | acting |\n|---|---|---|---|---|")
    for rank in (128, None):
        with TemporaryDirectory() as name:
            outline = llava_outline(Path(name))
        if rank is not None:
            with torch.device("meta"):
                halve(outline)
                outline.model.name_or_path = "llava"
                parts = LoraConfig(
                    components=("vision_tower", "projector", "language_model"), rank=rank
                )
                outline = outline._replace(adapter=add_lora(outline.model, parts, seed=0))
        sizes = [(p.numel(), p.nbytes, p.requires_grad) for p in outline.model.parameters()]
        trained = sum(count for count, _, is_trained in sizes if is_trained)
        batch = batch_of(outline, 1, sides)
        cost = update_cost(outline, batch, critic=True, precision="bf16", recomputes=True)
        length = batch.input_ids_RL.shape[1]
        cache = 16 * length * LLAVA_7B["num_hidden_layers"] * 2 * 8 * 128 * 2
        shared, layer = cost.weights + cost.moments + 4 * trained, cost.weights / 56
        activations = cost.peak - 4 * trained
        for processes in (1, 4, 8):
            learning = cost.total if processes == 1 else shared / processes + layer + activations
            acting = cost.weights + cost.moments / processes + cache
            what = "all weights" if rank is None else f"LoRA, rank {rank}"
            print(
                f"| {processes} × 80 GB, {what} | {trained / 1e6:,.0f} M | {length} "
                f"| {learning / 2**30:.1f} | {acting / 2**30:.1f} |"
            )


if __name__ == "__main__":
    show_llava()
