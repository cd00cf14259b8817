"""Token ids in and out: what a trainer asks of an engine, asked of a real model."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from forethought.chat.http import Endpoint, post
from forethought.chat.protocol import (
    ChatAnswer,
    ChatRequest,
    read_answer,
    read_error,
    write_request,
)
from forethought.configs.parts import LoraConfig
from forethought.generation.contract import GenerationRequest
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.models.batching import Example
from forethought.models.loading import LoadedModel, load_pretrained
from forethought.models.lora import add_lora, save_weights
from forethought.serving.admission import Limits
from forethought.serving.engine import Engine
from forethought.serving.server import serving
from forethought.serving.weights import ServedWeights
from forethought.types import Completion, FinishReason, Message

MESSAGES = (Message("user", "move the current number"),)
LONGEST = 24


class Served(NamedTuple):
    endpoint: Endpoint
    policy: HuggingFacePolicy
    """Of equal weights, apart from the one that is served."""
    folder: Path
    """Weights may be loaded from it."""

    def ask(self, **fields: Any) -> ChatAnswer:
        """To the usual prompt, in ids."""
        usual: dict[str, Any] = {"prompt_ids": self.policy.prompt(MESSAGES).token_ids, "seed": 7}
        usual |= {"max_tokens": LONGEST, "temperature": 1.0, "return_token_ids": True}
        request = ChatRequest(**({"model": "m", "logprobs": True} | usual | fields))
        reply = post(self.endpoint, write_request(request), request.path, timeout_s=60)
        assert reply.status == 200, reply.body
        return read_answer(reply.body)

    def refusal(self, path: str, **fields: object) -> tuple[int, str]:
        """Status and message."""
        reply = post(self.endpoint, json.dumps(fields).encode(), path, timeout_s=60)
        return reply.status, read_error(reply.body)

    def own(self, **fields: Any) -> Completion:
        """What the policy answers to the same, without a server."""
        usual: dict[str, Any] = {"seed": 7, "max_new_tokens": LONGEST, "temperature": 1.0}
        self.policy.submit(GenerationRequest(0, self.policy.prompt(MESSAGES), **(usual | fields)))
        (result,) = self.policy.advance()
        return result.completion


def policy_of(folder: Path) -> HuggingFacePolicy:
    return HuggingFacePolicy(load_pretrained(str(folder)), slots=4)


@pytest.fixture
def served(tmp_path: Path, saved_model: Path) -> Generator[Served]:
    torch.set_num_threads(1)
    policy = policy_of(saved_model)
    engine = Engine(policy, policy.require_room, seed=0, weights=ServedWeights(policy))
    limits = Limits(
        request_bytes=2**20,
        concurrency=64,
        timeout_s=60.0,
        prompt_bytes=2**20,
        max_new_tokens=LONGEST,
        weights_from=tmp_path / "published",
    )
    with serving(engine, model="m", host="127.0.0.1", port=0, limits=limits) as url:
        yield Served(Endpoint(url), policy_of(saved_model), tmp_path / "published")
    engine.stop()


# What is asked and what comes back


def test_ids_and_logprobs_are_those_of_the_policy_itself(served: Served) -> None:
    answer, own = served.ask(), served.own()
    (choice,) = answer.choices
    assert answer.prompt_ids == served.policy.prompt(MESSAGES).token_ids
    assert choice.token_ids == own.token_ids
    assert choice.logprobs == pytest.approx(own.logprobs, abs=1e-5)
    assert (choice.text, choice.finish_reason) == (own.text, own.finish_reason)


def test_messages_and_ids_are_one_prompt(served: Served) -> None:
    by_ids, by_messages = served.ask(), served.ask(prompt_ids=None, messages=MESSAGES)
    assert by_ids.choices == by_messages.choices
    assert by_ids.prompt_ids == by_messages.prompt_ids


def test_seeds_of_all_128_bits_count(served: Served) -> None:
    seed = (3 << 96) | 5
    assert served.ask(seed=seed).choices[0].token_ids == served.own(seed=seed).token_ids
    assert served.ask(seed=seed).choices != served.ask(seed=5).choices


def test_several_answers_to_one_prompt(served: Served) -> None:
    answer = served.ask(n=3, seed=20)
    alone = [served.own(seed=20 + i).token_ids for i in range(3)]
    assert [choice.token_ids for choice in answer.choices] == alone
    assert answer.completion_tokens == sum(map(len, alone))


def test_a_nucleus_travels_with_the_answer(served: Served) -> None:
    """Each token is drawn from the fewest that together have the probability, and its log-prob is
    that of the distribution over them: recomputed here from the model's own logits."""
    (choice,) = served.ask(top_p=0.5).choices
    assert choice.token_ids is not None
    assert choice.logprobs is not None
    example = Example(served.policy.prompt(MESSAGES), choice.token_ids, choice.allowed_ids)
    scores = served.policy.score([example], temperature=1.0)
    assert choice.logprobs == pytest.approx(scores.logprobs_BT[0].tolist(), abs=1e-4)
    free = served.policy.score([example._replace(allowed_ids=())], temperature=1.0)
    for index, (token, kept) in enumerate(zip(choice.token_ids, choice.allowed_ids, strict=True)):
        assert kept is not None
        assert token in kept
        share = np.exp(float(free.logprobs_BT[0, index]) - choice.logprobs[index])
        assert share >= 0.5 - 1e-5  # What the nucleus has of all probability.
    assert any(len(kept) < served.policy.module.vocabulary for kept in choice.allowed_ids if kept)
    assert served.ask(top_p=1).choices[0].allowed_ids == ()


def test_actions_can_be_held_to_a_choice(served: Served) -> None:
    (choice,) = served.ask(action_choices=("+", "-")).choices
    assert choice.token_ids == served.own(choices=("+", "-")).token_ids


def test_a_text_ends_the_answer(served: Served) -> None:
    whole = served.own()
    stop = whole.text[3:6]
    (choice,) = served.ask(stop=(stop, "never written")).choices
    assert choice.finish_reason is FinishReason.STOP
    assert stop not in choice.text
    assert whole.text.startswith(choice.text)
    assert choice.token_ids is not None
    assert whole.token_ids[: len(choice.token_ids)] == choice.token_ids
    assert len(choice.token_ids) < len(whole.token_ids)


@pytest.mark.parametrize(
    ("ids", "complaint"),
    [([10**9], "token id 1000000000 — expected 0 to"), ([-1], "token id -1 — expected 0 to")],
)
def test_ids_that_are_none_are_refused(served: Served, ids: list[int], complaint: str) -> None:
    status, message = served.refusal("/completions", model="m", prompt=ids)
    assert status == 400
    assert message.startswith(complaint)
    assert served.ask().choices  # And the server lives.


def test_places_of_images_without_images_are_refused(served: Served) -> None:
    ids = list(served.policy.encoder.placeholder_ids)
    status, message = served.refusal("/completions", model="m", prompt=ids)
    assert (status, message) == (
        400,
        "the prompt's ids hold places for images — send its messages instead",
    )


# Weights


def adapters(model: Path, folder: Path, *, seed: int) -> tuple[HuggingFacePolicy, Path]:
    """A policy with adapters that change what it says, and where they are stored."""
    loaded = load_pretrained(str(model))
    adapter = add_lora(loaded.model, LoraConfig(("language_model",), rank=4, dropout=0), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in loaded.model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    save_weights(loaded.model, adapter, folder)
    return HuggingFacePolicy(LoadedModel(loaded.model, loaded.processor, adapter), slots=4), folder


def test_adapters_answer_under_their_name(served: Served, saved_model: Path) -> None:
    before = served.ask().choices
    named = {f"a{n}": adapters(saved_model, served.folder / f"a{n}", seed=n) for n in (1, 2)}
    for name, (_, folder) in named.items():
        loaded = {"lora_name": name, "lora_path": str(folder)}
        assert served.refusal("/load_lora_adapter", **loaded)[0] == 200
    for name, (policy, _) in named.items():
        policy.submit(GenerationRequest(0, policy.prompt(MESSAGES), 7, LONGEST, 1.0))
        own = policy.advance()[0].completion
        (choice,) = served.ask(model=name).choices
        assert choice.token_ids == own.token_ids
        assert choice.logprobs == pytest.approx(own.logprobs, abs=1e-4)
    assert served.ask(model="a1").choices != served.ask(model="a2").choices
    assert served.ask().choices == before
    assert served.refusal("/unload_lora_adapter", lora_name="a2")[0] == 200
    status, message = served.refusal("/completions", model="a2", prompt=[1])
    assert (status, message) == (404, "model 'a2' is not served — known: m, a1")
    assert served.refusal("/unload_lora_adapter", lora_name="a1")[0] == 200
    assert served.ask().choices == before


def test_all_weights_can_be_exchanged(served: Served, saved_model: Path) -> None:
    other = policy_of(saved_model)
    with torch.no_grad():
        for parameter in other.module.model.parameters():
            parameter.mul_(1.1)
    other.module.model.save_pretrained(str(served.folder / "v3"))
    other.submit(GenerationRequest(0, other.prompt(MESSAGES), 7, LONGEST, 1.0))
    assert served.ask().weight_version is None
    update = {"model_path": str(served.folder / "v3"), "weight_version": "3"}
    root = Endpoint(served.endpoint.url.removesuffix("/v1"))
    reply = post(root, json.dumps(update).encode(), "/update_weights_from_disk", timeout_s=60)
    assert reply.status == 200
    answer = served.ask()
    assert answer.weight_version == "3"
    assert answer.choices[0].token_ids == other.advance()[0].completion.token_ids


@pytest.mark.parametrize(
    ("path", "status", "complaint"),
    [
        ("/etc", 403, "/etc is not below"),
        ("{folder}/../..", 403, "is not below"),
        ("{folder}/absent", 400, "got no adapters to load as 'a'"),
    ],
)
def test_weights_come_from_one_folder_alone(
    served: Served, path: str, status: int, complaint: str
) -> None:
    path = path.format(folder=served.folder)
    found = served.refusal("/load_lora_adapter", lora_name="a", lora_path=path)
    assert found[0] == status
    assert complaint in found[1]


def test_adapters_of_another_model_are_refused_and_the_server_lives(
    served: Served, saved_model: Path
) -> None:
    before = served.ask().choices
    _, folder = adapters(saved_model, served.folder / "odd", seed=1)
    settings = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(settings | {"r": 8}))
    status, message = served.refusal("/load_lora_adapter", lora_name="a", lora_path=str(folder))
    assert status == 400
    assert "these adapters do not fit the model" in message
    assert served.ask().choices == before
