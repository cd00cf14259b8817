"""The scene in MuJoCo's XML: a table with a tray and a drawer, an arm, and three objects."""

import os
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np


def _import_mujoco() -> Any:
    """The library, also where MUJOCO_GL names a renderer that does not work here.

    It loads the renderer of that name for a class of its own, which nothing here uses, and fails
    with it; images are drawn, and what is missing for them said, by `camera.py`.
    """
    try:
        return import_module("mujoco")
    except Exception:  # Of a wrong name, and of each system's library, another one.
        wanted = os.environ.get("MUJOCO_GL")
        if wanted is None:
            raise
        os.environ["MUJOCO_GL"] = "disable"
        try:
            return import_module("mujoco")
        finally:
            os.environ["MUJOCO_GL"] = wanted


mujoco: Any = _import_mujoco()
"""MuJoCo, whose names no stub declares."""
MujocoModel = Any
MujocoData = Any

OBJECTS = 3
ARM_JOINTS = 7
OPEN = 0.042
"""Distance of one finger from the middle, meters; closed is 0."""

COLORS: dict[str, tuple[float, float, float]] = {
    "red": (0.85, 0.08, 0.08),
    "green": (0.10, 0.65, 0.15),
    "blue": (0.10, 0.20, 0.90),
    "yellow": (0.95, 0.90, 0.10),
    "orange": (1.00, 0.50, 0.05),
    "purple": (0.50, 0.10, 0.70),
    "pink": (1.00, 0.55, 0.75),
    "cyan": (0.10, 0.85, 0.90),
    "white": (0.97, 0.97, 0.97),
    "black": (0.05, 0.05, 0.05),
}

_BOX, _BALL = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE
_CYLINDER, _CAPSULE = mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_CAPSULE
_ELLIPSOID = mujoco.mjtGeom.mjGEOM_ELLIPSOID
_UPRIGHT, _LYING = (1.0, 0.0, 0.0, 0.0), (0.5**0.5, 0.0, 0.5**0.5, 0.0)


class Part(NamedTuple):
    """A primitive of a shape; meters, in the object's frame."""

    kind: Any
    """MuJoCo's name for it."""
    size: tuple[float, float, float]
    height: float = 0.0
    """Height of its middle above the object's."""
    quaternion: tuple[float, float, float, float] = _UPRIGHT


class Shape(NamedTuple):
    """What an object is made of."""

    parts: tuple[Part, ...]
    """One or two."""
    rest: float
    """Height of the middle of an object that stands on the table, meters."""
    fold: int = 0
    """In how many turns of a circle it looks the same, where a gripper must turn to hold it: 2 of
    what lies along its x axis, 4 of a cross; 0: it can be held from any side."""


SHAPES: dict[str, Shape] = {
    "cube": Shape((Part(_BOX, (0.020, 0.020, 0.020)),), 0.020),
    "ball": Shape((Part(_BALL, (0.022, 0.0, 0.0)),), 0.022),
    "can": Shape((Part(_CYLINDER, (0.020, 0.028, 0.0)),), 0.028),
    "pill": Shape((Part(_CAPSULE, (0.016, 0.018, 0.0), 0.0, _LYING),), 0.016, fold=2),
    "egg": Shape((Part(_ELLIPSOID, (0.021, 0.021, 0.027)),), 0.027),
    "bar": Shape((Part(_BOX, (0.034, 0.014, 0.016)),), 0.016, fold=2),
    "tower": Shape((Part(_BOX, (0.016, 0.016, 0.036)),), 0.036),
    "disc": Shape((Part(_CYLINDER, (0.024, 0.014, 0.0)),), 0.014),
    "cross": Shape(
        (Part(_BOX, (0.027, 0.011, 0.018)), Part(_BOX, (0.011, 0.027, 0.018))), 0.018, fold=4
    ),
    "mushroom": Shape(
        (Part(_CYLINDER, (0.014, 0.018, 0.0)), Part(_ELLIPSOID, (0.023, 0.023, 0.012), 0.022)),
        0.018,
    ),
}

_LINKS = (
    # name, joint's axis, its range, where the link starts above the one before, length, radius
    ("shoulder_turn", "0 0 1", 2.8, 0.14, 0.16, 0.045),
    ("shoulder_bend", "-1 0 0", 2.2, 0.16, 0.20, 0.040),
    ("arm_turn", "0 0 1", 2.8, 0.20, 0.18, 0.036),
    ("elbow_bend", "-1 0 0", 2.6, 0.18, 0.18, 0.034),
    ("forearm_turn", "0 0 1", 2.8, 0.18, 0.18, 0.030),
    ("wrist_bend", "-1 0 0", 2.4, 0.18, 0.06, 0.028),
    ("wrist_turn", "0 0 1", 3.0, 0.06, 0.04, 0.026),
)


_HAND = """
<geom type="box" size="0.055 0.016 0.012" pos="0 0 0.05" rgba=".25 .25 .28 1"/>
<site name="grip" pos="0 0 0.135"/>
<body name="left" pos="0 0 0.062" gravcomp="1">
  <joint name="left" type="slide" axis="1 0 0" range="0 0.042" damping="6" armature="0.05"/>
  <geom class="finger" pos="0.007 0 0.045" size="0.006 0.011 0.042"/>
</body>
<body name="right" pos="0 0 0.062" gravcomp="1">
  <joint name="right" type="slide" axis="-1 0 0" range="0 0.042" damping="6" armature="0.05"/>
  <geom class="finger" pos="-0.007 0 0.045" size="0.006 0.011 0.042"/>
</body>"""

_DRAWER = """
<body name="cabinet" pos="-0.33 0.04 0">
  <geom class="wood" type="box" size="0.085 0.12 0.006" pos="0 0 0.086"/>
  <geom class="wood" type="box" size="0.085 0.006 0.04" pos="0 0.114 0.04"/>
  <geom class="wood" type="box" size="0.085 0.006 0.04" pos="0 -0.114 0.04"/>
  <geom class="wood" type="box" size="0.006 0.12 0.04" pos="-0.079 0 0.04"/>
  <body name="drawer" pos="0 0 0.035">
    <joint name="drawer" type="slide" axis="1 0 0" range="0 0.07" damping="8"/>
    <geom class="wood" type="box" size="0.07 0.1 0.004" pos="0.01 0 -0.022" mass="0.2"/>
    <geom class="wood" type="box" size="0.005 0.1 0.03" pos="0.08 0 0.005" mass="0.1"
          rgba=".62 .42 .25 1"/>
    <geom class="wood" type="box" size="0.008 0.02 0.006" pos="0.092 0 0.008" mass="0.02"
          rgba=".2 .2 .2 1"/>
  </body>
</body>"""


def scene_xml(image_size: int) -> str:
    """The scene. Shadows and multisampling are off: they cost 50 times the rest of an image.

    Args:
        image_size: pixels on a side of the largest image that is drawn.
    """
    objects = "".join(
        f'<body name="object{n}"><joint type="free" damping="0.0004"/>'
        f'<geom class="object" name="object{n}a"/><geom class="object" name="object{n}b"/></body>'
        for n in range(OBJECTS)
    )
    servos = "".join(
        f'<position joint="{name}" kp="{900 if n < 4 else 300}" '
        f'kv="{60 if n < 4 else 16}" ctrlrange="{-limit} {limit}"/>'
        for n, (name, _, limit, *_) in enumerate(_LINKS)
    )
    fingers = "".join(
        f'<position joint="{side}" kp="400" ctrlrange="-0.01 0.042" forcerange="-14 14"/>'
        for side in ("left", "right")
    )
    return f"""
<mujoco model="manipulation">
  <compiler angle="radian"/>
  <option timestep="0.005" integrator="implicitfast" cone="elliptic" impratio="3"
          iterations="20" ls_iterations="10">
    <flag autoreset="disable" midphase="disable" sleep="enable"/>
  </option>
  <size memory="4M"/>
  <visual>
    <global offwidth="{image_size}" offheight="{image_size}"/>
    <quality shadowsize="0" offsamples="0" numslices="14" numstacks="8"/>
    <headlight ambient=".35 .35 .35" diffuse=".35 .35 .35" specular="0 0 0"/>
    <map znear="0.02" zfar="20"/>
  </visual>
  <default>
    <default class="link"><geom rgba=".82 .82 .86 1" contype="0" conaffinity="0"/></default>
    <default class="finger">
      <geom type="box" friction="1.6 0.02 0.001" condim="4" rgba=".15 .15 .17 1" mass="0.03"
            solref="0.012 1"/>
    </default>
    <default class="wood"><geom rgba=".55 .36 .2 1" contype="2" conaffinity="1"/></default>
    <default class="object">
      <geom type="box" size=".02 .02 .02" mass="0.03" friction="1.0 0.01 0.001" condim="4"
            solref="0.012 1"/>
    </default>
  </default>
  <worldbody>
    <light pos="0.3 0.6 1.5" dir="-0.2 -0.4 -1" diffuse=".55 .55 .55" specular="0 0 0"/>
    <geom name="table" type="box" size="0.5 0.42 0.02" pos="0 0.02 -0.02" rgba=".74 .74 .70 1"
          friction="1.0 0.01 0.001"/>
    <geom name="floor" type="plane" size="3 3 1" pos="0 0 -0.5" rgba=".35 .40 .45 1"
          contype="0" conaffinity="0"/>
    <body name="tray" pos="0.31 0.04 0">
      <geom type="box" size="0.09 0.13 0.004" pos="0 0 0.004" rgba=".45 .55 .75 1"/>
      <geom type="box" size="0.09 0.005 0.012" pos="0 0.13 0.012" rgba=".35 .45 .65 1"/>
      <geom type="box" size="0.09 0.005 0.012" pos="0 -0.13 0.012" rgba=".35 .45 .65 1"/>
      <geom type="box" size="0.005 0.13 0.012" pos="0.09 0 0.012" rgba=".35 .45 .65 1"/>
      <geom type="box" size="0.005 0.13 0.012" pos="-0.09 0 0.012" rgba=".35 .45 .65 1"/>
    </body>
    {_DRAWER}
    <body name="base" pos="0 -0.36 0">
      <geom class="link" type="cylinder" size="0.07 0.07" pos="0 0 0.07" rgba=".3 .3 .33 1"/>
      {_arm()}
    </body>
    {objects}
    <camera name="front" pos="0 0.62 0.64" xyaxes="-1 0 0 0 -0.70 0.72" fovy="33"/>
  </worldbody>
  <actuator>{servos}{fingers}</actuator>
</mujoco>"""


def _arm() -> str:
    """The links, each inside the one before, and the hand inside the last."""
    opening, closing = "", ""
    for n, (name, axis, limit, start, length, radius) in enumerate(_LINKS):
        shade = ".9 .55 .15 1" if n % 2 else ".82 .82 .86 1"
        opening += (
            f'<body name="{name}" pos="0 0 {start}" gravcomp="1">'
            f'<joint name="{name}" axis="{axis}" range="{-limit} {limit}" damping="2" '
            f'armature="0.1"/><geom class="link" type="capsule" size="{radius}" '
            f'fromto="0 0 0 0 0 {length}" mass="{0.8 - 0.09 * n:.2f}" rgba="{shade}"/>'
        )
        closing += "</body>"
    return opening + _HAND + closing


def give_shape(model: MujocoModel, number: int, shape: Shape, color: tuple[float, ...]) -> None:
    """Makes an object of the scene one of this shape and color; its mass stays.

    Args:
        model: of `scene_xml`, changed in place.
        number: of the object, from 0.
        color: red, green, blue, each 0 to 1.
    """
    for place in range(2):
        geom = model.geom(f"object{number}{'ab'[place]}").id
        is_there = place < len(shape.parts)
        part = shape.parts[place if is_there else 0]
        model.geom_type[geom] = part.kind
        model.geom_size[geom] = part.size
        model.geom_pos[geom] = (0.0, 0.0, part.height)
        model.geom_quat[geom] = part.quaternion
        model.geom_sameframe[geom] = 0  # Else place and turn would be taken for the body's.
        model.geom_rbound[geom] = np.linalg.norm(part.size)  # No part is larger than this sphere.
        model.geom_rgba[geom] = (*color, float(is_there))
        model.geom_contype[geom] = model.geom_conaffinity[geom] = int(is_there)
