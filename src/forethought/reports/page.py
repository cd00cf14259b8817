"""Puts a run's report together: one HTML page that needs nothing beside itself."""

from pathlib import Path

from forethought.reports.before_after import before_after_section
from forethought.reports.curves import curves_section, timing_section
from forethought.reports.faithfulness import faithfulness_section
from forethought.reports.header import header_section, page_title, setup_section
from forethought.reports.inputs import RunRecord, read_run
from forethought.reports.markup import Section, document, sections_html
from forethought.reports.preferences import preferences_section
from forethought.reports.replay_html import ReplaySection, no_replay, replay_section
from forethought.reports.results import table_section
from forethought.reports.selection import select_episodes
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
    replay = _replay(run)
    sections = (
        Section("replay", "Replay", replay.html),
        Section("before-after", "Before and after", before_after_section(run)),
        Section("results", "Results", table_section(run)),
        Section("curves", "Curves", curves_section(run) + timing_section(run)),
        Section("preferences", "Preference pairs", preferences_section(run)),
        Section("faithfulness", "Causal faithfulness", faithfulness_section(run.faithfulness)),
        Section("setup", "Setup", setup_section(run)),
    )
    header = (
        '<a class="skip" href="#replay">Skip to the replay</a>\n'
        f'<header class="top">\n{header_section(run)}\n</header>\n'
    )
    body = header + sections_html(sections)
    return document(title=page_title(run), body=body, replay_data=replay.data)


def _replay(run: RunRecord) -> ReplaySection:
    episodes = run.episodes
    if episodes is None:
        return no_replay("No episodes are stored: there is nothing to replay yet.")
    source = (
        "Held-out episodes"
        if episodes.played_for == "evaluation"
        else f"Training episodes of {episodes.file_name}, as no held-out ones are stored"
    )
    return replay_section(select_episodes(episodes.trajectories), source)
