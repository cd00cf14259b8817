"""Forethought trains vision-language and language models to act.

The model looks, thinks in words, acts, sees what happened, and learns from it.
Data flows one way, and each arrow is one folder:

    environments -> prompts -> policies -> rollouts -> targets -> losses -> training
"""

import importlib
import sys

__version__ = "0.1.0"

if "gymnasium" in sys.modules:
    # Then `gymnasium.make` knows our environments. Where it comes later, see `GymnasiumView`.
    importlib.import_module("forethought.environments")
