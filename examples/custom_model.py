"""A model of your own: any folder that Hugging Face's `save_pretrained` wrote, or a hub id.

Here a GPT-2 with a tokenizer of its own, both made here. Nothing below is said
about spans, stop tokens or chat templates: Forethought reads them from the model's files.

    python examples/custom_model.py

With a folder of yours, the middle part is two commands:

    forethought train sft --model FOLDER --environment.id Bandit --output runs/own
    forethought evaluate runs/own
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from forethought.algorithms.sft.config import SFTConfig
from forethought.algorithms.sft.train import train_sft
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    OptimizerConfig,
    PromptConfig,
)
from forethought.evaluation.evaluate import EvaluationSettings, evaluate
from forethought.generation.huggingface import load_policy
from forethought.rollouts.task import Task, open_task
from forethought.runs.checkpoints import model_source

BANDIT = EnvironmentConfig(id="Bandit")
END = "<|endoftext|>"


def make_model(folder: str, task: Task) -> None:
    """A text-only model of 0.1 million parameters, and a tokenizer for this environment's words."""
    environment = task.factory()
    texts = [task.prompter.messages(environment.reset(seed))[0].text for seed in range(16)]
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(texts, vocab_size=400, special_tokens=[END], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=trained._tokenizer, eos_token=END)
    end = trained.token_to_id(END)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=256,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=end,
        eos_token_id=end,
        initializer_range=64**-0.5,  # GPT-2's 0.02 is for a width of 768
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def judge(model: str, task: Task) -> str:
    """Success on held-out episodes, with its 95 % interval."""
    policy = load_policy(model, slots=32)
    row = evaluate(policy, task, EvaluationSettings(episodes=200), checkpoint=None)
    found = row.evaluation.policy
    assert found.success_rate is not None
    assert found.success_interval is not None
    low, high = found.success_interval
    return f"{found.success_rate:.0%} [{low:.0%}, {high:.0%}]"


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        folder, run = f"{place}/model", f"{place}/run"
        task = open_task(BANDIT, PromptConfig(), default_image_size=None)
        make_model(folder, task)
        print("randomly initialized:", judge(folder, task), flush=True)
        train_sft(
            SFTConfig(
                model=folder,
                output=run,
                environment=BANDIT,
                expert_steps=3200,
                optimizer=OptimizerConfig(learning_rate=3e-3, warmup_steps=10, epsilon=1e-8),
                compute=ComputeConfig(threads=1),  # more would wait for each other here
            )
        )
        print("after 100 updates:", judge(model_source(run), task))
        print("saved as usual:", *sorted(p.name for p in Path(model_source(run)).iterdir()))
