"""The arm and the objects in motion: from a pose that the gripper is to take to joint angles."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forethought.environments.manipulation.scene import (
    ARM_JOINTS,
    COLORS,
    OBJECTS,
    OPEN,
    SHAPES,
    MujocoData,
    MujocoModel,
    give_shape,
    mujoco,
    scene_xml,
)

Vector = NDArray[np.float64]


def _pass_over(_warning: str) -> None:
    """MuJoCo prints what it warns of, and writes it into a file of the working directory. What
    matters of it raises here: a state that is not finite."""


mujoco.set_mju_user_warning(_pass_over)

SUBSTEPS = (4, 4)
"""Steps of physics of 5 ms behind each half of a control step: 40 ms."""
CORRECTIONS = 3
"""Corrections of the joint angles towards the pose, in a control step."""
DAMPING = 1e-3
"""Damping of the least squares: small beside the squares of a good posture's singular values."""
MAX_TURN = 0.5
"""Radians of a joint in a control step."""

LOWEST, HIGHEST = np.array([-0.21, -0.14, 0.012]), np.array([0.21, 0.22, 0.30])
"""Where the middle between the finger tips may be, meters."""
TILT, YAW = 0.35, 1.6
"""How far the gripper may turn from straight down, and about its axis, radians."""
START = np.array([0.0, 0.02, 0.17])
"""The gripper at the start, meters."""


class Placed(NamedTuple):
    """An object at the start of an episode."""

    shape: str
    color: str
    x: float
    """Meters."""
    y: float
    yaw: float
    """Radians."""


class Looks(NamedTuple):
    """What domain randomization changes; the defaults are the plain scene."""

    table: tuple[float, float, float] = (0.74, 0.74, 0.70)
    floor: tuple[float, float, float] = (0.35, 0.40, 0.45)
    light: float = 1.0
    """Beside the plain scene's brightness."""
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Shift of the camera, meters."""
    drawer: float = 0.0
    """How far it is open, meters."""


class CrashedSimulationError(RuntimeError):
    """The state of the simulation is not finite: the episode is no outcome of any action."""


class Simulator:
    """One scene. All that happens is a function of `reset` and the moves."""

    def __init__(self, image_size: int) -> None:
        self.model: MujocoModel = mujoco.MjModel.from_xml_string(scene_xml(image_size))
        self.data: MujocoData = mujoco.MjData(self.model)
        self._kinematics: MujocoData = mujoco.MjData(self.model)
        model = self.model
        joints = [model.joint(int(model.actuator_trnid[n, 0])) for n in range(ARM_JOINTS)]
        self._arm = np.array([int(joint.qposadr[0]) for joint in joints])
        self._arm_dofs = np.array([int(joint.dofadr[0]) for joint in joints])
        self._fingers = [int(model.joint(side).qposadr[0]) for side in ("left", "right")]
        self._free = [int(model.body(f"object{n}").jntadr[0]) for n in range(OBJECTS)]
        self._free = [int(model.jnt_qposadr[joint]) for joint in self._free]
        self._drawer = int(model.joint("drawer").qposadr[0])
        self._site = int(model.site("grip").id)
        self._body_of = np.array(model.geom_bodyid)
        self._finger_bodies = [int(model.body(side).id) for side in ("left", "right")]
        self._limits = np.array(model.actuator_ctrlrange[:ARM_JOINTS])
        self._camera_at = np.array(model.cam_pos[0])
        self._light = np.array(model.light_diffuse[0])
        self._jacobian = np.zeros((6, model.nv))
        self._home = self._posture(START)
        self._target = START.copy()
        self._turn = np.zeros(3)

    def reset(self, objects: tuple[Placed, ...], looks: Looks) -> None:
        """Begins with these objects on the table, the arm at its start and the gripper open."""
        model, data = self.model, self.data
        for number, one in enumerate(objects):
            give_shape(model, number, SHAPES[one.shape], COLORS[one.color])
        model.geom_rgba[model.geom("table").id, :3] = looks.table
        model.geom_rgba[model.geom("floor").id, :3] = looks.floor
        model.light_diffuse[0] = self._light * looks.light
        model.cam_pos[0] = self._camera_at + looks.shift
        mujoco.mj_resetData(model, data)
        data.qpos[self._arm] = self._home
        data.qpos[self._fingers] = OPEN
        data.qpos[self._drawer] = looks.drawer
        for at, one in zip(self._free, objects, strict=True):
            turned = (np.cos(one.yaw / 2), 0.0, 0.0, np.sin(one.yaw / 2))
            data.qpos[at : at + 7] = (one.x, one.y, SHAPES[one.shape].rest, *turned)
        data.ctrl[:ARM_JOINTS] = self._home
        data.ctrl[ARM_JOINTS:] = OPEN
        mujoco.mj_forward(model, data)
        self._target, self._turn = START.copy(), np.zeros(3)

    def move(self, shift: Vector, turn: Vector, opening: float) -> None:
        """One control step of 40 ms.

        Args:
            shift: of the gripper, meters [3].
            turn: of the gripper: tilt about x and y, and yaw, radians [3].
            opening: of the fingers, 0 closed to 1 open.

        Raises:
            CrashedSimulationError: a position or a velocity is not finite.
        """
        limit = np.array([TILT, TILT, YAW])
        self._target = np.clip(self._target + shift, LOWEST, HIGHEST)
        self._turn = np.clip(self._turn + turn, -limit, limit)
        before = np.array(self.data.ctrl[:ARM_JOINTS])
        after = self._solve(before, self._target, _rotation(self._turn), CORRECTIONS)
        self.data.ctrl[ARM_JOINTS:] = opening * OPEN - (1 - opening) * 0.01
        for part, steps in enumerate(SUBSTEPS, start=1):
            self.data.ctrl[:ARM_JOINTS] = before + (after - before) * part / len(SUBSTEPS)
            mujoco.mj_step(self.model, self.data, steps)
        self._require_finite()

    def object_at(self, number: int) -> Vector:
        """The middle of an object, meters [3]."""
        at = self._free[number]
        return np.array(self.data.qpos[at : at + 3])

    def object_yaw(self, number: int) -> float:
        """How an object is turned about the vertical, radians."""
        at = self._free[number] + 3
        w, x, y, z = self.data.qpos[at : at + 4]
        return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))

    def object_speed(self, number: int) -> float:
        """Meters per second."""
        dof = int(self.model.body(f"object{number}").dofadr[0])
        return float(np.linalg.norm(self.data.qvel[dof : dof + 3]))

    def holds(self, number: int) -> bool:
        """Whether both fingers touch an object."""
        body = int(self.model.body(f"object{number}").id)
        pairs = self._body_of[self.data.contact.geom]
        touching = set(pairs[(pairs == body).any(axis=1)].ravel().tolist())
        return touching.issuperset(self._finger_bodies)

    @property
    def grip(self) -> Vector:
        """The middle between the finger tips, meters [3]."""
        return np.array(self.data.site_xpos[self._site])

    @property
    def target(self) -> Vector:
        """Where the gripper is to be, meters [3]."""
        return self._target.copy()

    @property
    def yaw(self) -> float:
        """How the gripper is to be turned about its axis, radians."""
        return float(self._turn[2])

    @property
    def opening(self) -> float:
        """Opening of the fingers, 0 closed to 1 open."""
        return float(np.mean(self.data.qpos[self._fingers]) / OPEN)

    def digest(self) -> bytes:
        """All that the future depends on."""
        state = (self.data.qpos, self.data.qvel, self.data.ctrl, self._target, self._turn)
        return b"".join(np.ascontiguousarray(one).tobytes() for one in state)

    def _require_finite(self) -> None:
        if not (np.isfinite(self.data.qpos).all() and np.isfinite(self.data.qvel).all()):
            joint = int(np.argmax(~np.isfinite(self.data.qpos)))
            raise CrashedSimulationError(
                f"position {joint} of the simulation is {self.data.qpos[joint]}, expected a number"
            )

    def _solve(self, joints: Vector, at: Vector, rotation: Vector, rounds: int) -> Vector:
        """Joint angles that bring the gripper there, from others near by: damped least squares."""
        model, data = self.model, self._kinematics
        joints = joints.copy()
        error = np.zeros(6)
        wanted, now, apart = np.zeros(4), np.zeros(4), np.zeros(4)
        mujoco.mju_mat2Quat(wanted, rotation.ravel())
        for _ in range(rounds):
            data.qpos[self._arm] = joints
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_jacSite(model, data, self._jacobian[:3], self._jacobian[3:], self._site)
            error[:3] = at - data.site_xpos[self._site]
            mujoco.mju_mat2Quat(now, data.site_xmat[self._site])
            mujoco.mju_negQuat(now, now)
            mujoco.mju_mulQuat(apart, wanted, now)
            mujoco.mju_quat2Vel(error[3:], apart, 1.0)
            rows = self._jacobian[:, self._arm_dofs]
            square = rows @ rows.T + DAMPING * np.eye(6)
            change = rows.T @ np.linalg.solve(square, error)
            joints = np.clip(
                joints + np.clip(change, -MAX_TURN, MAX_TURN),
                self._limits[:, 0],
                self._limits[:, 1],
            )
        return joints

    def _posture(self, at: Vector) -> Vector:
        """Joint angles for a gripper that points down there."""
        bent = np.array([0.0, 0.15, 0.0, 2.05, 0.0, 0.94, 0.0])
        return self._solve(bent, at, _rotation(np.zeros(3)), 60)


def _rotation(turn: Vector) -> Vector:
    """The gripper's axes, [3, 3]: downwards, turned about the vertical, then tilted."""
    x, y, yaw = turn
    down = np.diag([1.0, -1.0, -1.0])
    c, s = np.cos(yaw), np.sin(yaw)
    about = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    c, s = np.cos(x), np.sin(x)
    tilt_x = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    c, s = np.cos(y), np.sin(y)
    tilt_y = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return tilt_x @ tilt_y @ about @ down
