"""Any environment of ours is a `gymnasium.Env`, and Gymnasium finds it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.custom_environment import Thermostat
from gymnasium.utils.env_checker import check_env

from forethought.environments.gymnasium_view import UNSEEDED_BELOW, GymnasiumView
from forethought.errors import ConfigError
from forethought.rollouts.seeding import Split, episode_seed

ROOT = Path(__file__).parents[3]

FINDS = (
    'import gymnasium; made = "forethought.environments:forethought/NumberLine-v0"',
    'import forethought, gymnasium; made = "forethought.environments:forethought/NumberLine-v0"',
    'import gymnasium, forethought; made = "forethought/NumberLine-v0"',
    'import forethought.environments, gymnasium; made = "forethought/NumberLine-v0"',
)


@pytest.mark.parametrize("code", FINDS)
def test_gymnasium_finds_it(code: str) -> None:
    code += "; print(gymnasium.make(made, image_size=64).reset(seed=0)[0].shape)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("(64, 64, 3)\n", "")


def test_an_environment_of_ones_own() -> None:
    view = GymnasiumView(Thermostat())
    check_env(view, skip_render_check=True)
    text, info = view.reset(seed=3)
    assert text == Thermostat().reset(3).text
    assert info == {"goal": "Reach 20 degrees, then stop."}


def test_resets_without_a_seed_stay_among_the_seeds_of_training() -> None:
    assert episode_seed(Split.EVALUATION, 0, 0) == UNSEEDED_BELOW
    seen: list[int] = []

    class Listening(Thermostat):
        def reset(self, seed: int):  # type: ignore[no-untyped-def]
            seen.append(seed)
            return super().reset(seed)

    view = GymnasiumView(Listening())
    for _ in range(20):
        view.reset()
    assert len(set(seen)) > 15
    assert max(seen) < UNSEEDED_BELOW


def test_images_are_copies_and_texts_fit_their_space() -> None:
    view = GymnasiumView("EZPoints", image_size=64, render_mode="rgb_array")
    shown, _ = view.reset(seed=0)
    assert isinstance(shown, dict)
    shown["image"][:] = 0
    assert np.any(view.render())
    assert view.observation_space.contains(view.reset(seed=1)[0])


@pytest.mark.parametrize(
    ("name", "mode", "allowed"),
    [("Bandit", "rgb_array", "ansi or None"), ("NumberLine", "human", "rgb_array or None")],
)
def test_a_mode_that_cannot_be_shown_is_refused(name: str, mode: str, allowed: str) -> None:
    with pytest.raises(ConfigError, match=f"render_mode is '{mode}' — expected {allowed}"):
        GymnasiumView(name, render_mode=mode)
