"""Engines write in a policy's name: the same responses, and what is done where something breaks."""

import shutil
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from forethought.chat import engines as engines_module
from forethought.chat.remote import RemotePolicy
from forethought.configs.acting import GenerationConfig
from forethought.configs.parts import LoraConfig
from forethought.errors import PolicyError, StorageError
from forethought.generation.contract import GenerationRequest, Policy
from forethought.generation.huggingface import HuggingFacePolicy
from forethought.generation.published import Publisher, read_current
from forethought.models.actor_critic import ValueHead
from forethought.models.loading import load_pretrained
from forethought.models.lora import add_lora
from forethought.serving import answers
from forethought.serving.weights import ServedWeights
from forethought.types import Completion, Message
from tests.engines import bandit, engine_of, save_model

NOISE = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
CONVERSATIONS = (
    (Message("user", "Which letter is marked?"),),
    (Message("user", "look", NOISE),),
    (Message("system", "Be brief."), Message("user", "look", NOISE[::-1].copy())),
)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("remote") / "model", bandit())


class Trainer(NamedTuple):
    """A policy with a critic, and where it publishes its weights."""

    policy: HuggingFacePolicy
    publisher: Publisher

    def remote(self, *urls: str, **settings: float) -> RemotePolicy:
        config = replace(GenerationConfig(tuple(urls), concurrency=4, patience_s=30.0), **settings)
        return RemotePolicy(
            self.policy.encoder,
            config,
            published=self.publisher.current,
            critic=self.policy,
            version=lambda: self.policy.version,
        )

    def move(self) -> None:
        """As an update does."""
        with torch.no_grad():
            for parameter in self.policy.module.model.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.05 * torch.randn(parameter.shape))
        self.policy.weights_changed()


def trainer_of(model: Path, folder: Path, lora: LoraConfig | None = None) -> Trainer:
    torch.manual_seed(0)
    loaded = load_pretrained(str(model))
    if lora is not None:
        loaded = loaded._replace(adapter=add_lora(loaded.model, lora, seed=0))
    head = ValueHead(32, generator=torch.Generator().manual_seed(0))
    torch.nn.init.normal_(head.layers[-1].weight)
    policy = HuggingFacePolicy(loaded, slots=4, value_head=head)
    return Trainer(policy, Publisher(policy, folder, keep=1))


@pytest.fixture
def trainer(model: Path, tmp_path: Path) -> Trainer:
    return trainer_of(model, tmp_path)


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Generator[str]:
    with engine_of(model, tmp_path) as url:
        yield url


def ask(
    policy: Policy, count: int = len(CONVERSATIONS), *, temperature: float = 1.0
) -> list[tuple[Completion, float | None]]:
    """One response to each conversation, again and again, with its value."""
    for key in range(count):
        prompt = policy.prompt(CONVERSATIONS[key % len(CONVERSATIONS)])
        policy.submit(GenerationRequest(key, prompt, (1 << 100) + key, 8, temperature))
    found: dict[int, tuple[Completion, float | None]] = {}
    while results := policy.advance():
        found |= {result.key: (result.completion, result.value) for result in results}
    return [pair for _, pair in sorted(found.items())]


def assert_equal(
    found: Sequence[tuple[Completion, float | None]],
    expected: Sequence[tuple[Completion, float | None]],
) -> None:
    for (completion, value), (own, own_value) in zip(found, expected, strict=True):
        assert completion.token_ids == own.token_ids
        assert completion.logprobs == pytest.approx(own.logprobs, abs=1e-4)
        assert (completion.text, completion.token_offsets) == (own.text, own.token_offsets)
        assert completion.finish_reason == own.finish_reason
        assert value == pytest.approx(own_value, abs=1e-4)


# What comes back


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_responses_are_the_policy_s_own(trainer: Trainer, engine: str, temperature: float) -> None:
    """With images and without; before an update and after two; the values are the critic's."""
    remote = trainer.remote(engine)
    before = ask(trainer.policy, temperature=temperature)
    assert_equal(ask(remote, temperature=temperature), before)
    for _ in range(2):
        trainer.move()
    after = ask(trainer.policy, temperature=temperature)
    assert_equal(ask(remote, temperature=temperature), after)
    assert [c.token_ids for c, _ in after] != [c.token_ids for c, _ in before]
    remote.close()


def test_the_newest_adapters_alone_stay_in_the_engine(
    model: Path, engine: str, tmp_path: Path
) -> None:
    trainer = trainer_of(model, tmp_path, LoraConfig(("language_model",), rank=4, dropout=0.0))
    remote = trainer.remote(engine)
    for _ in range(3):
        trainer.move()
        assert_equal(ask(remote), ask(trainer.policy))
    names = [
        name
        for name, _ in engines_module.read_models(
            engines_module.Engine(engine).send("/v1/models", None, 60).body
        )
    ]
    (current,) = read_current(tmp_path)
    assert names == ["policy", current.name]
    assert current.name.endswith("-v3")
    assert [path.name for path in (tmp_path / "adapters").iterdir()] == ["v3"]
    assert current.components == ("language_model",)
    assert not list((tmp_path / "adapters" / "v3").glob("value_head*"))
    remote.close()


def test_a_value_alone_needs_no_engine(trainer: Trainer) -> None:
    remote = trainer.remote("http://127.0.0.1:9", patience_s=0.1)
    prompt = remote.prompt(CONVERSATIONS[0])
    results = []
    for policy in (remote, trainer.policy):
        policy.submit(GenerationRequest(5, prompt, 0, 0, 1.0))
        results += policy.advance()
    found, own = results
    assert (found.key, found.value) == (5, own.value)
    assert found.completion.token_ids == ()


# What breaks


def test_another_chat_template_is_noticed_before_anything_is_learned(
    trainer: Trainer, model: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(model, other)
    template = next(other.glob("chat_template*"))
    template.write_text(template.read_text().replace("{%", "Hear: {%", 1))
    with engine_of(other, tmp_path) as url:
        remote = trainer.remote(url)
        with pytest.raises(PolicyError, match="it read other token ids than it was given") as error:
            ask(remote, 2)
    assert "nothing was learned from it" in str(error.value)


def test_a_lost_replica_costs_its_requests_only(
    trainer: Trainer, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = ask(trainer.policy, 24)
    with ExitStack() as stack, engine_of(model, tmp_path) as second:
        first = stack.enter_context(engine_of(model, tmp_path))
        remote = trainer.remote(first, second)
        assert_equal(ask(remote, 24), expected)
        stack.close()
        assert_equal(ask(remote, 24), expected)
        remote.close()
    said = capfd.readouterr().err
    assert f"engine {first}: " in said
    assert f"engine {second}: " not in said


def test_an_engine_that_was_restarted_gets_the_present_weights(
    trainer: Trainer, model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It comes back with the model that it was started with: those responses do not count."""
    with engine_of(model, tmp_path) as url:
        port = int(url.rpartition(":")[2])
        remote = trainer.remote(url)
        trainer.move()
        expected = ask(trainer.policy)
        assert_equal(ask(remote), expected)
    with engine_of(model, tmp_path, port=port):
        assert_equal(ask(remote), expected)
        remote.close()
    said = capfd.readouterr().err
    assert "wrote the answer, expected" in said
    assert "its weights are loaded again" in said


def test_an_engine_that_keeps_its_old_weights_is_given_up(
    trainer: Trainer, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it has loaded the new ones, and answers with those before."""
    remote = trainer.remote(engine)
    ask(remote, 1)
    old = trainer.publisher.current()[0].name
    trainer.move()
    new = trainer.publisher.current()[0].name
    monkeypatch.setattr(ServedWeights, "reload", lambda *_: None)
    with pytest.raises(PolicyError) as error:
        ask(remote, 1)
    assert str(error.value) == (
        f"{engine}: weights {old} wrote the answer, expected {new}, 6 times in a row — restart it, "
        "then go on with --resume"
    )


def test_without_an_engine_the_run_stops_with_a_line(trainer: Trainer) -> None:
    remote = trainer.remote("http://127.0.0.1:9", patience_s=0.2)
    with pytest.raises(PolicyError) as error:
        ask(remote)
    assert str(error.value) == (
        "no engine answers (http://127.0.0.1:9); the last problem: Connection refused — start one, "
        "then go on with --resume"
    )


def test_an_engine_that_may_not_load_weights_is_refused(trainer: Trainer, model: Path) -> None:
    with engine_of(model, None) as url, pytest.raises(PolicyError) as error:
        ask(trainer.remote(url))
    assert "--weights-from FOLDER" in str(error.value)


def test_others_serve_no_adapters_on_the_vision_tower(
    model: Path, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lora = LoraConfig(("vision_tower", "projector", "language_model"), rank=4, dropout=0.0)
    trainer = trainer_of(model, tmp_path, lora)
    assert_equal(ask(trainer.remote(engine)), ask(trainer.policy))  # This project's does.
    monkeypatch.setattr(answers, "OWNER", "vllm")
    with pytest.raises(PolicyError) as error:
        ask(trainer.remote(engine))
    assert str(error.value) == (
        f"{engine}: it serves no adapters on the projector and the vision_tower — train with "
        "--lora.components language_model, or serve with `forethought serve`"
    )


def test_a_full_disk_leaves_what_was_published(
    trainer: Trainer, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = trainer.remote(engine)
    ask(remote)
    before = read_current(tmp_path)
    trainer.move()

    def full(temporary: Path, final: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("forethought.generation.published.publish", full)
    with pytest.raises(StorageError, match="No space left on device — make room, then go on"):
        ask(remote)
    assert read_current(tmp_path) == before
    assert [path.name for path in (tmp_path / "weights").iterdir()] == ["v0"]
    monkeypatch.undo()
    assert_equal(ask(remote), ask(trainer.policy))
    remote.close()


def test_runs_that_share_a_folder_publish_each_in_its_own(model: Path, tmp_path: Path) -> None:
    """Two of one name, whose updates have the same numbers; one is killed and goes on."""
    shared, homes = tmp_path / "shared", [tmp_path / host / "run" / "published" for host in "ab"]
    first, second = (
        Trainer(trainer.policy, Publisher(trainer.policy, home, keep=1, shared=str(shared)))
        for home in homes
        for trainer in [trainer_of(model, tmp_path)]
    )
    first.move()
    second.policy.weights_changed()
    with engine_of(model, shared) as url:
        remotes = [first.remote(url), second.remote(url)]
        for remote, trainer in 2 * list(zip(remotes, (first, second), strict=True)):
            assert_equal(ask(remote), ask(trainer.policy))
    paths = [read_current(home)[0].path for home in homes]
    assert paths == [str(shared / name / "weights" / "v1") for name in ("run", "run-2")]
    again = Publisher(second.policy, homes[1], keep=1, shared=str(shared))
    second.move()
    assert again.current() == read_current(homes[1])
    assert {str(path) for path in shared.glob("*/weights/*")} == {paths[0], paths[1][:-1] + "2"}


def test_a_copy_of_a_run_publishes_in_a_folder_of_its_own(model: Path, tmp_path: Path) -> None:
    shared, original = str(tmp_path / "shared"), tmp_path / "run" / "published"
    trainer = trainer_of(model, tmp_path)
    (before,) = Publisher(trainer.policy, original, keep=1, shared=shared).current()
    copied = tmp_path / "copies" / "run" / "published"
    shutil.copytree(original, copied)
    (after,) = Publisher(trainer.policy, copied, keep=1, shared=shared).current()
    assert before.path == f"{shared}/run/weights/v0"
    assert after.path == f"{shared}/run-2/weights/v0"
    assert read_current(original) == (before,)
    assert Path(before.path).is_dir()
    (again,) = Publisher(trainer.policy, copied, keep=1, shared=shared).current()
    assert again == after
