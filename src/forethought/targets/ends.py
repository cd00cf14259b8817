"""What is worth how much after the last step of a run of steps."""

from math import isfinite


def value_after_last_step(*, terminated: bool, bootstrap_value: float | None) -> float:
    """The discounted return still to come when the run of steps is over.

    A run stops in one of three ways. The world *terminated* it: nothing follows,
    the value is zero. A limit *truncated* it, or the *collection was cut* in the
    middle of an episode: more would have followed, and the critic says how much.
    The first never merges with the other two.

    Args:
        terminated: whether the world reached an end of its own.
        bootstrap_value: the critic's value of the state after the last step;
            None exactly when terminated.

    Raises:
        ValueError: a bootstrap value after termination, none without it, or one
            that is not finite.
    """
    if terminated:
        if bootstrap_value is not None:
            raise ValueError(
                f"bootstrap_value: expected None after termination, got {bootstrap_value}"
            )
        return 0.0
    if bootstrap_value is None:
        raise ValueError(
            "bootstrap_value: expected the value of the state after the last step, because "
            "the run was truncated or cut and not terminated; got None"
        )
    if not isfinite(bootstrap_value):
        raise ValueError(f"bootstrap_value: expected a finite number, got {bootstrap_value}")
    return bootstrap_value
