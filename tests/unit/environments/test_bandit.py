"""Bandit: the prompt names the answer, and only that answer pays."""

from forethought.environments.bandit import Bandit


def test_only_the_named_letter_pays() -> None:
    for seed in range(20):
        world = Bandit(arms=3)
        assert world.actions == ("a", "b", "c")
        text = world.reset(seed).text
        assert text is not None
        right = text.removeprefix("The right answer is ")[0]
        for letter in world.actions:
            world.reset(seed)
            assert world.step(letter) == (float(letter == right), True, False)
            assert world.success() == (letter == right)


def test_another_text_ends_the_episode_without_an_answer() -> None:
    world = Bandit()
    before = world.reset(0)
    assert world.step("the first one") == (0.0, False, True)
    assert world.observation().state_key == before.state_key
    assert not world.success()


def test_every_answer_comes_up() -> None:
    world = Bandit(arms=26)
    assert len({world.reset(seed).text for seed in range(400)}) == 26


def test_the_expert_reads() -> None:
    world = Bandit(arms=2)
    world.reset(3)
    action, fields = world.expert()
    assert fields == (("thoughts", f'"the right answer is {action}, so I choose {action}"'),)
    assert world.step(action).reward == 1.0
