"""Which package may import which, from the ground floor up.

`docs/reference/data_flow.md` tells it in words. To give a package a new neighbor, or to add a
package, write it here: the table is the only place where that is decided.
"""

import re

PACKAGES: dict[str, set[str]] = {
    "types": set(),
    "errors": set(),
    "durable": {"errors"},
    "configs": {"errors"},
    "algorithm_configs": {"configs"},
    "algorithm_registry": {"errors", "configs"},
    "config_file": {"errors", "configs", "algorithm_registry"},
    "environments": {"types", "errors", "durable", "configs"},
    "libraries": {"configs"},
    "losses": set(),
    "targets": {"types", "errors", "losses"},
    "prompts": {"types", "configs", "environments"},
    "models": {"types", "errors", "durable", "configs", "losses"},
    "generation": {"types", "errors", "durable", "models"},
    "value_guided": {"types", "errors", "configs", "losses", "models", "generation"},
    "chat": {"types", "errors", "configs", "models", "generation"},
    "rollouts": {
        *("types", "errors", "configs", "durable"),
        *("environments", "prompts", "generation"),
    },
    "runs": {"types", "errors", "durable"},
    "offline": {
        *(
            "types",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
            "environments",
            "targets",
        ),
        *("prompts", "models", "generation", "rollouts"),
    },
    "training": {
        *(
            "libraries",
            "types",
            "durable",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
            "losses",
            "environments",
            "prompts",
        ),
        *("models", "generation", "chat", "rollouts", "runs", "offline"),
    },
    "algorithms": {
        *(
            "types",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
            "environments",
            "losses",
        ),
        *("targets", "prompts", "models", "generation", "value_guided", "rollouts", "runs"),
        *("offline", "training"),
    },
    "evaluation": {
        *(
            "types",
            "durable",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
            "environments",
        ),
        *("prompts", "models", "generation", "value_guided", "chat", "rollouts"),
    },
    "agents": {
        *(
            "types",
            "durable",
            "errors",
            "libraries",
            "configs",
            "algorithm_registry",
            "config_file",
        ),
        *(
            "prompts",
            "environments",
            "models",
            "generation",
            "value_guided",
            "chat",
            "rollouts",
            "runs",
        ),
        *("algorithms", "evaluation"),
    },
    "serving": {"types", "errors", "configs", "models", "generation", "chat"},
    "data": {
        *(
            "types",
            "errors",
            "durable",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
        ),
        *("targets", "prompts", "models", "generation", "chat", "rollouts", "evaluation"),
    },
    "reports": {
        *(
            "types",
            "durable",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
        ),
        *("environments", "rollouts", "runs", "evaluation", "data"),
    },
    "studies": {
        *(
            "durable",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
            "runs",
            "evaluation",
            "reports",
        ),
    },
    "api": {
        *("types", "errors", "libraries", "configs", "config_file", "algorithm_registry"),
        *("environments", "generation", "rollouts", "runs", "training", "evaluation"),
        *("reports", "agents"),
    },
    "cli": {
        *(
            "types",
            "durable",
            "errors",
            "configs",
            "algorithm_configs",
            "algorithm_registry",
            "config_file",
        ),
        *("environments", "targets", "models", "generation", "value_guided", "chat"),
        *("rollouts", "runs", "offline", "training", "algorithms", "evaluation", "serving"),
        *("data", "reports", "studies", "agents", "libraries"),
    },
    "__main__": {"cli"},
}
"""From the ground floor up: a room may import those that stand above it in this table, and
of them only these."""

WITHOUT_TORCH = {
    *("types", "errors", "durable", "libraries"),
    *(
        "configs",
        "algorithm_configs",
        "algorithm_registry",
        "config_file",
        "environments",
        "prompts",
        "runs",
    ),
}
"""An environment, a prompt or a run folder is read in milliseconds, and by those who have no
torch."""


def package_of(name: str) -> str:
    """The package; an algorithm's settings are read without its loop, and by more."""
    if re.fullmatch(r"algorithms\.\w+\.config", name):
        return "algorithm_configs"
    if name == "algorithms.registry" or re.fullmatch(r"algorithms\.(?!registry)\w+", name):
        return "algorithm_registry"
    return "config_file" if name == "configs.file" else name.partition(".")[0]
