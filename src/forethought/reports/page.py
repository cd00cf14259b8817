"""Puts a run's report together: one HTML page that needs nothing beside itself."""

import base64
import hashlib
from pathlib import Path
from string import Template

from forethought.reports.before_after import before_after_section
from forethought.reports.curves import curves_section, timing_section
from forethought.reports.faithfulness import faithfulness_section
from forethought.reports.formatting import counted
from forethought.reports.header import header_section, page_title, setup_section
from forethought.reports.inputs import Episodes, RunRecord, read_run
from forethought.reports.markup import asset, document, embed_json, escape
from forethought.reports.preferences import preferences_section
from forethought.reports.replay import make_replay
from forethought.reports.results import table_section
from forethought.reports.selection import Selection, select_episodes
from forethought.reports.static_replay import static_replay
from forethought.runs.run_folder import RunFolder, write_text


def write_report(run: str | Path) -> Path:
    """Writes `report.html` into a run folder, and returns its path.

    An unchanged run gives the same bytes again.

    Raises:
        ForethoughtError: the folder is no run, a file in it is damaged, or the page
            cannot be written.
    """
    folder = RunFolder(Path(run))
    page = render(read_run(folder.path))
    path = folder.report_path
    write_text(path, page)
    return path


def render(run: RunRecord) -> str:
    """The page as text."""
    script = asset("report.js")
    replay, data = _replay_section(run)
    body = Template(asset("report.html")).substitute(
        header=header_section(run),
        table=table_section(run),
        curves=curves_section(run),
        timing=timing_section(run),
        comparisons="\n".join(
            (
                before_after_section(run),
                faithfulness_section(run.faithfulness),
                preferences_section(run),
            )
        ),
        replay=replay,
        setup=setup_section(run),
        data=data,
        script=script,
    )
    return document(title=page_title(run), policy=_content_policy(script), body=body)


def _content_policy(script: str) -> str:
    """Lets a browser run this one script, show pictures held in the page, and load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _replay_section(run: RunRecord) -> tuple[str, str]:
    """HTML of the viewer, and the data that it shows."""
    if run.episodes is None:
        notice = "No episodes are stored: there is nothing to replay yet."
        return f'<p class="notice">{notice}</p>', embed_json(None)
    selection = select_episodes(run.episodes.trajectories)
    note = _what_is_shown(run.episodes, selection)
    if not selection.episodes:
        return f'<p class="notice">{escape(note)}</p>', embed_json(None)
    replay = make_replay(selection.episodes)
    html = Template(asset("replay.html")).substitute(
        note=escape(note), static=static_replay(replay)
    )
    return html, replay.to_json()


def _what_is_shown(episodes: Episodes, selection: Selection) -> str:
    source = (
        "Held-out episodes"
        if episodes.played_for == "evaluation"
        else f"Training episodes of {episodes.file_name}, as no held-out ones are stored"
    )
    successes = counted(selection.successes, "success", "successes")
    failures = counted(selection.failures, "failure", "failures")
    shown = counted(len(selection.episodes), "is shown", "are shown")
    sentences = [f"{source}: {successes} and {failures}; {shown}."]
    if selection.unfinished and not selection.successes + selection.failures:
        sentences.append("None of them is finished.")
    if selection.lost:
        lost = counted(selection.lost, "episode was", "episodes were")
        sentences.append(f"{lost} lost to crashes or timeouts of the world.")
    return " ".join(sentences)
