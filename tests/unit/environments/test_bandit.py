"""Bandit: the prompt names the answer, and only that answer pays."""

from forethought.environments.bandit import Bandit


def test_only_the_named_letter_pays() -> None:
    for seed in range(20):
        environment = Bandit(arms=3)
        assert environment.actions == ("a", "b", "c")
        text = environment.reset(seed).text
        assert text is not None
        right = text.removeprefix("The right answer is ")[0]
        for letter in environment.actions:
            environment.reset(seed)
            assert environment.step(letter) == (float(letter == right), True, False)
            assert environment.success() == (letter == right)


def test_another_text_ends_the_episode_without_an_answer() -> None:
    environment = Bandit()
    before = environment.reset(0)
    assert environment.step("the first one") == (0.0, False, True)
    assert environment.observation().state_key == before.state_key
    assert not environment.success()


def test_every_answer_comes_up() -> None:
    environment = Bandit(arms=26)
    assert len({environment.reset(seed).text for seed in range(400)}) == 26


def test_the_expert_reads() -> None:
    environment = Bandit(arms=2)
    environment.reset(3)
    action, fields = environment.expert()
    assert fields == (("thoughts", f'"the right answer is {action}, so I choose {action}"'),)
    assert environment.step(action).reward == 1.0
