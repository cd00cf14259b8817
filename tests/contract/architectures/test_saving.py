"""A saved policy says and judges what it did before."""

from pathlib import Path

from forethought.generation.huggingface import HuggingFacePolicy, load_policy
from forethought.models.batching import Example
from tests.contract.architectures.helpers import make_prompts


def scores_of(policy: HuggingFacePolicy) -> tuple[list[list[float]], list[float]]:
    examples = [Example(prompt, (11, 12, 13)) for prompt in make_prompts(policy, 6)]
    scores = policy.score(examples, temperature=0.7)
    assert scores.values_B is not None
    return scores.logprobs_BT.tolist(), scores.values_B.tolist()


def test_save_and_load_give_identical_scores(policy: HuggingFacePolicy, tmp_path: Path) -> None:
    policy.save(tmp_path)
    loaded = load_policy(str(tmp_path), slots=1)
    assert scores_of(loaded) == scores_of(policy)
    assert loaded.encoder.stop_ids == policy.encoder.stop_ids
    for before, after in zip(make_prompts(policy, 6), make_prompts(loaded, 6), strict=True):
        assert after.token_ids == before.token_ids


def test_saved_twice_is_saved_once(policy: HuggingFacePolicy, tmp_path: Path) -> None:
    """A folder that was written by this program is as good a start as a download."""
    policy.save(tmp_path / "first")
    load_policy(str(tmp_path / "first"), slots=1).save(tmp_path / "second")
    assert scores_of(load_policy(str(tmp_path / "second"), slots=1)) == scores_of(policy)
