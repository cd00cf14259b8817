"""An answer's action field can name actions only, and its log-probs say so."""

import json
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from forethought.generation.contract import GenerationRequest
from forethought.generation.decoding import DecodeLoop
from forethought.generation.sampling import ActionField
from forethought.models.actor_critic import ActorCritic
from forethought.models.batching import Example, build_batch
from forethought.models.encoding import Encoder
from forethought.models.token_text import TokenBytes
from forethought.prompts.responses import parse_response
from forethought.types import Completion, Prompt

VOCABULARY = [
    *("", "{", '"', "action", '":', ":", " ", ' "', "go", "go ", "north", "s", "south", '"}', '",'),
    *("}", "o", "x", 'go"', "thoughts", "\\", 'north"}', "é", '\\"'),
]
TOKENS = TokenBytes(
    len(VOCABULARY), 1, lambda ids: "".join(VOCABULARY[i] for i in ids), VOCABULARY.__getitem__
)
STOP = ""
"""The vocabulary's first."""


def field(*choices: str) -> ActionField:
    return ActionField(TOKENS, choices, [VOCABULARY.index(STOP)])


def allowed_after(held: ActionField, *tokens: str) -> set[str] | None:
    for token in tokens:
        held.write(VOCABULARY.index(token))
    ids = held.allowed()
    return None if ids is None else {VOCABULARY[i] for i in ids}


KEY = ("{", '"', "action")


@pytest.mark.parametrize(
    ("written", "allowed"),
    [
        pytest.param((), None, id="nothing yet: free"),
        pytest.param((*KEY, '"'), {":"}, id="behind the key, a colon"),
        pytest.param((*KEY, '":'), {'"', ' "', " "}, id="behind the colon, a quote"),
        pytest.param((*KEY, '":', " "), {'"'}, id="one space, and no second"),
        pytest.param(
            (*KEY, '":', ' "'), {"go", "go ", "s", "south"}, id="the beginnings of actions"
        ),
        pytest.param(
            (*KEY, '":', ' "', "go "), {"north", 'north"}'}, id="what is left of the only one"
        ),
        pytest.param((*KEY, '":', ' "', "s"), {"o"}, id="letters of a longer piece"),
        pytest.param((*KEY, '":', ' "', "go ", "north"), {'"', '"}'}, id="its end, and more"),
        pytest.param((*KEY, '":', ' "', "go ", "north", '"'), {"}", " ", STOP}, id="behind it"),
        pytest.param((*KEY, '":', ' "', "go ", "north", '"}'), {" ", STOP}, id="behind the brace"),
        pytest.param((*KEY, '":', ' "', "x"), None, id="no action any more: free"),
        pytest.param(("{", '"', "thoughts", '":', ' "', "go"), None, id="another field: free"),
        pytest.param(
            ("{", '\\"', "action", '\\"', ":", ' "'), None, id="a key that is quoted: free"
        ),
        pytest.param(
            (*KEY, '":', ' "', "x", '",', '"', "action", '":', ' "', "s"),
            {"o"},
            id="the last key counts",
        ),
    ],
)
def test_what_may_come_next(written: Sequence[str], allowed: set[str] | None) -> None:
    assert allowed_after(field("go north", "south"), *written) == allowed


def test_names_are_written_as_json() -> None:
    """A quotation mark in a name is escaped in the answer, and ends nothing."""
    assert allowed_after(field('s"o'), *KEY, '":', ' "', "s") == {"\\", '\\"'}
    assert allowed_after(field('s"o'), *KEY, '":', ' "', "s", "\\") == {'"'}
    assert allowed_after(field("é"), *KEY, '":', ' "') == {"é", "\\"}


def test_no_way_to_write_an_action_leaves_all_free() -> None:
    assert allowed_after(field("Z"), *KEY, '":', ' "') is None


# The decode loop


CHOICES = ("move", "answer", "number to")


def held_answer(
    tiny: tuple[ActorCritic, Encoder], prompt: Prompt, *, seed: int, temperature: float
) -> tuple[Completion, int]:
    """What the model writes after `{"action"`, which is put into its mouth; and how many
    tokens that was."""
    module, encoder = tiny
    forced = encoder.tokenize_response('{"action"')[:-1]
    count = iter(range(10**6))

    def mouth(logits: Sequence[Tensor]) -> Tensor:
        step = next(count)
        if step >= len(forced):
            return logits[0]
        return torch.full_like(logits[0], -50.0).index_fill(-1, torch.tensor([forced[step]]), 50.0)

    loop = DecodeLoop(module, encoder, slots=1, mix=mouth)
    loop.submit(GenerationRequest(0, prompt, seed, len(forced) + 16, temperature, CHOICES))
    (result,) = loop.advance()
    return result.completion, len(forced)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 2.0])
def test_a_model_that_knows_nothing_names_an_action(
    temperature: float,
    tiny: tuple[ActorCritic, Encoder],
    make_prompts: Callable[[int], list[Prompt]],
) -> None:
    (prompt,) = make_prompts(1)
    named: set[str] = set()
    for seed in range(12):
        completion, _ = held_answer(tiny, prompt, seed=seed, temperature=temperature)
        parsed = parse_response(completion, CHOICES)
        assert parsed.is_valid, completion.text
        named.add(parsed.action)
    assert len(named) > 1 or temperature == 0


def test_log_probs_are_of_what_was_drawn_from_and_training_finds_the_same(
    tiny: tuple[ActorCritic, Encoder], make_prompts: Callable[[int], list[Prompt]]
) -> None:
    module, encoder = tiny
    (prompt,) = make_prompts(1)
    completion, forced = held_answer(tiny, prompt, seed=3, temperature=0.7)
    held = [t for t, ids in enumerate(completion.allowed_ids) if ids is not None]
    assert held
    assert min(held) >= forced
    example = Example(prompt, completion.token_ids, completion.allowed_ids)
    batch = build_batch([[example, example]], encoder)
    with torch.no_grad():
        scores = module(batch, temperature=0.7)
        free = module(batch._replace(held=None), temperature=0.7)
    after = slice(forced, len(completion.token_ids))
    for row in range(2):
        ours = scores.logprobs_BT[row][after].tolist()
        assert ours == pytest.approx(list(completion.logprobs[after]), abs=1e-4)
    for t in held:
        ids = completion.allowed_ids[t]
        assert ids is not None
        assert completion.token_ids[t] in ids
        assert scores.logprobs_BT[0, t] >= free.logprobs_BT[0, t]
        if len(ids) == 1:
            assert scores.logprobs_BT[0, t].item() == pytest.approx(0.0, abs=1e-5)
            assert scores.entropies_BT[0, t].item() == pytest.approx(0.0, abs=1e-5)
    others = [t for t in range(forced, len(completion.token_ids)) if t not in held]
    torch.testing.assert_close(scores.entropies_BT[0, others], free.entropies_BT[0, others])


def test_an_answer_that_is_not_held_says_so(
    tiny: tuple[ActorCritic, Encoder], make_prompts: Callable[[int], list[Prompt]]
) -> None:
    module, encoder = tiny
    (prompt,) = make_prompts(1)
    loop = DecodeLoop(module, encoder, slots=1)
    loop.submit(GenerationRequest(0, prompt, 1, 8, 1.0))
    assert loop.advance()[0].completion.allowed_ids == ()
    text = json.dumps({"action": "x"})
    assert Completion((), (), (), text, "stop", 0.0).allowed_ids == ()  # pyright: ignore[reportArgumentType]
