"""Programs that speak UCI, more or less."""

from pathlib import Path

_SCRIPT = """#!/bin/sh
while read -r word rest; do
  case "$word" in
    uci) echo uciok ;;
    go) {go} ;;
    quit) exit 0 ;;
  esac
done
"""

ANSWER = 'echo "info depth 1 multipv 1 score cp 10 pv e7e5"; echo "bestmove e7e5"'
HANG = "while :; do sleep 0.05; done"
DIE = "exit 3"


def fake_engine(folder: Path, go: str) -> str:
    """The path of an engine that does this, in shell, when it is asked for a move."""
    path = folder / "engine"
    path.write_text(_SCRIPT.format(go=go))
    path.chmod(0o755)
    return str(path)


def first(trouble: str, folder: Path) -> str:
    """Trouble the first time any such engine is asked; an answer from then on."""
    mark = folder / "asked"
    return f'if [ -e "{mark}" ]; then {ANSWER}; else : > "{mark}"; {trouble}; fi'
