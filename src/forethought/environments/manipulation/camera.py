"""Images of the scene without a display: through EGL, or OSMesa where there is no EGL."""

import os
import sys
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from forethought.environments.manipulation.scene import MujocoData, MujocoModel, mujoco, scene_xml
from forethought.errors import MissingDependencyError
from forethought.types import Image

PACKAGES = "apt-get install libegl1 libgl1-mesa-dri, or libosmesa6"
"""What brings a renderer on Debian and Ubuntu."""

_BACKENDS = ("egl", "osmesa")


class Renderer(NamedTuple):
    """What draws in this process."""

    name: str
    """egl or osmesa."""
    context_class: Any
    """Context class of MuJoCo's: takes width and height, and has `make_current` and `free`."""


@cache
def find_renderer() -> Renderer:
    """EGL if it works here, else OSMesa; MUJOCO_GL, where it names one of both, decides.

    Raises:
        MissingDependencyError: none of them works.
    """
    # Mesa's software renderer would start a thread per core, for 64 × 64 pixels.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    named = os.environ.get("PYOPENGL_PLATFORM")
    reasons: list[str] = []
    is_named = wanted in _BACKENDS
    for name in (wanted,) if is_named else _BACKENDS:
        try:
            context_class = import_module(f"mujoco.{name}").GLContext
            _try(context_class)
        except Exception as error:  # Each library of the system fails in a way of its own.
            reasons.append(f"{name}: {' '.join(str(error).split())[:100]}")
            _forget(named)
        else:
            return Renderer(name, context_class)
    tried = f"MUJOCO_GL={wanted}" if is_named else "EGL or OSMesa"
    raise MissingDependencyError(
        f"Manipulation draws its images by {tried}, which does not work here "
        f"({'; '.join(reasons)}) — run: {PACKAGES}"
    )


def _try(context_class: Any) -> None:
    """Draws a pixel."""
    context = context_class(1, 1)
    try:
        context.make_current()
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
        mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value).free()
    finally:
        context.free()


def _forget(platform: str | None) -> None:
    """PyOpenGL chooses its platform when it is first imported: it is to choose again."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "OpenGL"]:
        del sys.modules[module]
    os.environ.pop("PYOPENGL_PLATFORM", None)
    if platform is not None:
        os.environ["PYOPENGL_PLATFORM"] = platform


class Camera:
    """Draws states of one scene, square; all cameras of a size in a process share their buffers."""

    def __init__(self, model: MujocoModel, size: int) -> None:
        """
        Args:
            model: its primitives may change later; no meshes or textures are used.
            size: pixels on a side.

        Raises:
            MissingDependencyError: nothing draws here.
        """
        self._model = model
        self._size = size
        self._option = mujoco.MjvOption()
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._view.fixedcamid = 0
        self._scene = mujoco.MjvScene(model, maxgeom=64)
        for flag in ("SHADOW", "REFLECTION", "SKYBOX", "HAZE", "FOG"):
            self._scene.flags[getattr(mujoco.mjtRndFlag, f"mjRND_{flag}")] = 0
        _buffers(size)

    def draw(self, data: MujocoData) -> Image:
        """The present state, uint8 [size, size, 3]."""
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._option,
            None,
            self._view,
            mujoco.mjtCatBit.mjCAT_ALL.value,
            self._scene,
        )
        context, drawn = _buffers(self._size)
        context.make_current()
        window = mujoco.MjrRect(0, 0, self._size, self._size)
        mujoco.mjr_render(window, self._scene, drawn)
        image = np.empty((self._size, self._size, 3), np.uint8)
        mujoco.mjr_readPixels(image, None, window, drawn)
        return np.ascontiguousarray(image[::-1])


@cache
def _buffers(size: int) -> tuple[Any, Any]:
    """A GL context with what MuJoCo keeps in it; kept for the life of the process, since making
    one takes longer than an episode."""
    context = find_renderer().context_class(size, size)
    context.make_current()
    model = mujoco.MjModel.from_xml_string(scene_xml(size))
    drawn = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, drawn)
    return context, drawn
