"""The network without words: what it takes, gives, keeps, and refuses."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from cnn_baseline.config import CNNConfig
from cnn_baseline.network import CNNPolicy, Shape, load_cnn, make_cnn
from cnn_baseline.train import make_policy, train_cnn
from cnn_baseline.vision_tower import take_tower
from safetensors.torch import load_file

from forethought.algorithms.registry import algorithm_of
from forethought.cli.evaluate import Evaluate, evaluate_with_bar
from forethought.cli.main import main
from forethought.configs.file import dump_config, load_any_config
from forethought.configs.parts import (
    ComputeConfig,
    EnvironmentConfig,
    RolloutConfig,
    SamplingConfig,
)
from forethought.errors import ConfigError, PolicyError
from forethought.evaluation.evaluate import EvaluationSettings
from forethought.generation.contract import GenerationRequest
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.tiny import TinySize, make_tiny
from forethought.prompts.responses import parse_response
from forethought.types import Message
from tests.entry_points import EXAMPLES, declare_on_path

CORNERS = EnvironmentConfig("tests.unit.algorithms.corners:Corners")
SHAPE = Shape(actions=("+", "-", 'a"b'), height=36, width=40, text_length=4, hidden_size=8)


CONFIGS = sorted((EXAMPLES / "cnn_baseline" / "configs").glob("*.yaml"))


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example, as an installer leaves it."""
    declare_on_path(tmp_path, monkeypatch, "cnn", "cnn_baseline:ALGORITHM")


def small(output: Path) -> CNNConfig:
    """Three iterations of one update."""
    return CNNConfig(
        output=str(output),
        total_steps=48,
        hidden_size=8,
        epochs=1,
        batch_size=16,
        checkpoint_every=1,
        environment=CORNERS,
        rollout=RolloutConfig(
            num_envs=4, steps_per_iteration=16, sampling=SamplingConfig(temperature=1.0)
        ),
        compute=ComputeConfig(threads=1),
    )


def image(brightness: int) -> np.ndarray:
    return np.full((36, 40, 3), brightness, dtype=np.uint8)


def asked(policy: CNNPolicy, temperature: float, text: str = "1+2+3") -> GenerationRequest:
    prompt = policy.prompt([Message("user", text, image(9))])
    return GenerationRequest(5, prompt, seed=7, max_new_tokens=1, temperature=temperature)


def test_one_score_per_action_and_one_value() -> None:
    policy = make_cnn(SHAPE, None, seed=0)
    prompts = [policy.prompt([Message("user", "", image(b))]) for b in (0, 100, 255)]
    scores = policy.module(policy.encode(prompts))
    assert scores.logits_BA.shape == (3, 3)
    assert scores.values_B.shape == (3,)


def test_the_end_of_the_text_is_read() -> None:
    policy = make_cnn(SHAPE, None, seed=0)
    assert asked(policy, 0.0, "12+34").prompt.token_ids == tuple(map(ord, "2+34"))
    assert asked(policy, 0.0, "7é").prompt.token_ids == (ord("7"), 0, 0, 0)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.5])
def test_an_answer_is_one_action_with_its_log_prob(temperature: float) -> None:
    policy = make_cnn(SHAPE, None, seed=0)
    request = asked(policy, temperature)
    policy.submit(request)
    (result,) = policy.advance()
    assert policy.advance() == []
    (index,), completion = result.completion.token_ids, result.completion
    parsed = parse_response(completion, SHAPE.actions)
    assert parsed.is_valid
    assert parsed.action == SHAPE.actions[index]
    assert (len(parsed.thought_span), len(parsed.action_span)) == (0, 1)
    with torch.no_grad():
        logits_A = policy.module(policy.encode([request.prompt])).logits_BA[0]
    expected = torch.log_softmax(logits_A / (temperature or 1.0), dim=0)[index]
    assert completion.logprobs[0] == pytest.approx(float(expected), abs=1e-6)


def test_another_image_is_refused() -> None:
    policy = make_cnn(SHAPE, None, seed=0)
    with pytest.raises(PolicyError, match=r"expected one image of shape \(36, 40, 3\), got none"):
        policy.prompt([Message("user", "no image")])


def test_an_environment_without_an_image_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"environment.id is 'Bandit', but it has no image"):
        make_policy(CNNConfig(environment=EnvironmentConfig("Bandit")))


@pytest.mark.parametrize("path", CONFIGS, ids=[path.stem for path in CONFIGS])
def test_a_config(path: Path) -> None:
    config = load_any_config(path)
    assert algorithm_of(config).name == "cnn"
    assert f"--config examples/cnn_baseline/configs/{path.name}\n" in path.read_text()
    assert make_policy(cast(CNNConfig, config))[1].shape.actions


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "cnn", "--help"]) == 0
    assert "A small network that sees and acts" in capsys.readouterr().out


def test_settings_come_back_equal(tmp_path: Path) -> None:
    config = small(tmp_path)
    (tmp_path / "config.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_any_config(tmp_path / "config.yaml") == config
    with pytest.raises(ConfigError, match="batch_size is 17 — expected 1 to"):
        replace(config, batch_size=17)


def test_resumed_equals_never_stopped_and_is_judged(tmp_path: Path) -> None:
    run = train_cnn(small(tmp_path / "run"))
    last = Path("checkpoints/step_3")
    whole = load_file(run / last / "model/cnn.safetensors")
    shutil.rmtree(run / last)
    train_cnn(small(tmp_path / "run"), existing="resume")
    resumed = load_file(run / last / "model/cnn.safetensors")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert len((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    settings = EvaluationSettings(episodes=8, num_envs=4)
    evaluate_with_bar(Evaluate(str(run), evaluation=settings, threads=1, environment=CORNERS))
    assert json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["checkpoint"]


def test_a_frozen_tower_sees_for_the_network(tmp_path: Path) -> None:
    size = TinySize(hidden_size=16, intermediate_size=16, layers=1, heads=2, vision_hidden_size=8)
    model = HuggingFacePolicy(make_tiny(["look"], seed=0, size=size), slots=1)
    model.save(tmp_path / "model")
    features, image_size = take_tower(str(tmp_path / "model"), "mean")
    assert image_size == 64
    assert features([image(0)]).shape == (1, 8)
    config = replace(small(tmp_path / "run"), model=str(tmp_path / "model"), total_steps=16)
    run = train_cnn(config)
    policy = load_cnn(run / "checkpoints/step_1/model")
    prompt = make_policy(config)[1].prompt([Message("user", "", np.zeros((36, 36, 3), np.uint8))])
    again = make_policy(config)[1].encode([prompt]).image
    assert torch.equal(policy.encode([prompt]).image, again)
    assert not any("tower" in name for name, _ in policy.module.named_parameters())
