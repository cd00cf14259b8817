"""Draws docs/images/manipulation.gif: the script plays an episode of each of the robot's tasks.

python docs/robot_image.py
"""

from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from forethought.environments.manipulation.manipulation import Manipulation, TaskName

DRAWING = Path(__file__).parent / "images" / "manipulation.gif"
SIZE, FRAME_MS, LAST_FRAME_MS, SEED = 240, 160, 1500, 7


def frames(task: TaskName) -> list[np.ndarray]:
    """The images of one episode."""
    environment = Manipulation(task, image_size=SIZE)
    environment.reset(SEED)
    drawn = [environment.render()]
    ended = False
    while not ended:
        _, terminated, truncated = environment.step(environment.expert().action)
        drawn.append(environment.render())
        ended = terminated or truncated
    return drawn


def main() -> None:
    """Both tasks side by side; the shorter episode waits at its end."""
    episodes = [frames("pick"), frames("place_near")]
    count = max(map(len, episodes))
    joined = [
        np.concatenate([one[min(number, len(one) - 1)] for one in episodes], axis=1)
        for number in range(count)
    ]
    images = [Pillow.fromarray(one).quantize(64) for one in joined]
    times = [FRAME_MS] * (count - 1) + [LAST_FRAME_MS]
    images[0].save(
        DRAWING, save_all=True, append_images=images[1:], duration=times, loop=0, optimize=True
    )
    print(DRAWING)


if __name__ == "__main__":
    main()
