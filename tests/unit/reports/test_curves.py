"""Which charts a log gives, and what they say."""

import re
from pathlib import Path

import numpy as np
import pytest

from forethought.evaluation.statistics import wilson_interval
from forethought.reports import curves as curves_module
from forethought.reports import metrics as metrics_module
from forethought.reports.charts import Curve, draw
from forethought.reports.curves import curves_section
from forethought.reports.inputs import read_run
from forethought.reports.metrics import CHARTS, EPISODES, PHASES, SUCCESS_RATE
from tests.unit.reports.builders import PPO_STEPS, SFT, Page, evaluation, make_run


def page_of(run: Path) -> Page:
    return Page(curves_section(read_run(run)))


def titles(page: Page) -> list[str]:
    return [caption.text for caption in page.all("figcaption")]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Curve]:
    """The curves that are drawn."""
    curves: list[Curve] = []

    def remember(given: list[Curve], **options: object) -> str:
        curves.extend(given)
        return draw(given, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(curves_module, "draw", remember)
    return curves


def test_only_what_was_logged_is_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SFT, metrics=['{"loss": 2, "gradient_norm": 3, "odd": 1}'])
    page = page_of(run)
    assert titles(page) == [
        "Losslast 2Cross-entropy of the expert's tokens.",
        "Gradient normlast 3L2 norm of the gradient. Jumps precede instability.",
        "oddlast 1",
    ]
    assert page.all("summary")[0].text == "Other logged metrics 1"
    assert {"updates"} <= {text.text.strip() for text in page.all("text")}


def test_a_log_of_known_numbers_has_nothing_folded(tmp_path: Path) -> None:
    page = page_of(make_run(tmp_path / "run", SFT, metrics=['{"loss": 2}']))
    assert not page.all("details")


def test_before_the_first_line_there_is_nothing(tmp_path: Path) -> None:
    page = page_of(make_run(tmp_path / "run"))
    assert page.all("p", "notice")[0].text.startswith("Nothing is logged yet")
    assert not page.all("figure")


def test_every_chart_can_be_drawn_on_one_page(tmp_path: Path) -> None:
    names = [metric for chart in CHARTS for metric in chart.metrics]
    line = "{" + ", ".join(f'"{name}": 0.5' for name in names) + ', "episodes": 8}'
    page = page_of(make_run(tmp_path / "run", metrics=12 * [line]))
    assert len(page.all("figure")) == len(CHARTS) + 1, "and the number of episodes"
    defined = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(set(defined)) == len(defined)


def test_ppo_counts_environment_steps(tmp_path: Path, drawn: list[Curve]) -> None:
    page_of(make_run(tmp_path / "run", metrics=3 * ['{"entropy": 1}']))
    assert drawn[0].x.tolist() == [PPO_STEPS, 2 * PPO_STEPS, 3 * PPO_STEPS]


def test_success_has_its_interval_and_its_weight(tmp_path: Path, drawn: list[Curve]) -> None:
    """The second iteration ended no episode: it has no rate, and takes no other's number."""
    lines = [
        '{"success_rate": 0.5, "episodes": 10}',
        '{"success_rate": null, "episodes": 0}',
        '{"success_rate": 1.0, "episodes": 4}',
    ]
    page_of(make_run(tmp_path / "run", metrics=lines))
    [curve] = [curve for curve in drawn if curve.low is not None]
    assert curve.x.tolist() == [PPO_STEPS, 3 * PPO_STEPS]
    assert curve.weights is not None
    assert curve.weights.tolist() == [10, 4]
    assert curve.high is not None
    assert curve.low is not None
    bands = list(zip(curve.low, curve.high, strict=True))
    assert bands == [tuple(wilson_interval(5, 10)), tuple(wilson_interval(4, 4))]


def test_a_rate_of_unknown_episodes_may_be_anything(tmp_path: Path, drawn: list[Curve]) -> None:
    lines = ['{"success_rate": 0.5, "episodes": null}', '{"success_rate": 0.5, "episodes": 2}']
    page_of(make_run(tmp_path / "run", metrics=lines))
    [curve] = [curve for curve in drawn if curve.low is not None]
    assert curve.low is not None
    assert curve.high is not None
    assert (curve.low[0], curve.high[0]) == (0.0, 1.0)


def test_a_metric_without_a_number_has_no_chart(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SFT, metrics=['{"loss": 2, "gradient_norm": null}'])
    assert [title.split("last")[0] for title in titles(page_of(run))] == ["Loss"]


def test_the_ceiling_stands_in_the_chart_of_success_alone(tmp_path: Path) -> None:
    lines = ['{"success_rate": 0.5, "mean_return": 1}']
    run = make_run(tmp_path / "run", metrics=lines, judged=evaluation(0.5))
    success, returns = (str(figure.text) for figure in page_of(run).all("figure"))
    assert "ceiling" in success
    assert "ceiling" not in returns
    unjudged = make_run(tmp_path / "other", metrics=lines)
    assert all("ceiling" not in figure.text for figure in page_of(unjudged).all("figure"))


def test_a_share_is_given_in_percent(tmp_path: Path) -> None:
    page = page_of(make_run(tmp_path / "run", metrics=['{"invalid_rate": 0.0625}']))
    assert "last 6.25\u202f%" in titles(page)[0]


def test_two_curves_of_a_chart_share_no_last_value(tmp_path: Path) -> None:
    lines = 2 * ['{"thought_logprob": -4, "action_logprob": -0.25}']
    page = page_of(make_run(tmp_path / "run", metrics=lines))
    [title] = titles(page)
    assert "last" not in title
    label = page.all("svg")[0].attributes["aria-label"]
    assert label == ("Log-probability: thoughts from −4 to −4; action from −0.25 to −0.25")


def test_how_long_curves_are_drawn_is_said(tmp_path: Path) -> None:
    few = page_of(make_run(tmp_path / "few", SFT, metrics=3 * ['{"loss": 1}']))
    many = page_of(make_run(tmp_path / "many", SFT, metrics=500 * ['{"loss": 1}']))
    assert not few.all("p", "footnote")
    assert many.all("p", "footnote")[0].text.startswith("Every 3 neighboring points are drawn")


def test_a_long_run_is_drawn_at_the_size_of_a_short_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f'{{"loss": {value:.6f}}}' for value in rng.uniform(0.5, 1.0, 20_000)]
    html = curves_section(read_run(make_run(tmp_path / "run", SFT, metrics=lines)))
    assert len(html) < 60_000


def test_a_metric_may_have_any_name(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", SFT, metrics=['{"$x_{<img src=x>": 1, "</svg>": 2}'])
    page = page_of(run)
    assert not page.all("img")
    assert len(page.all("svg")) == 2
    assert titles(page)[0].startswith("$x_{<img src=x>last 1")


def test_captions_do_not_break_between_number_and_unit() -> None:
    assert not [chart for chart in CHARTS if re.search(r"\d %", chart.caption)]


def test_every_metric_of_the_map_is_logged_by_some_code() -> None:
    """A metric that is renamed where it is logged is renamed in the map of the report, too."""
    package = Path(metrics_module.__file__).parents[1]
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in package.rglob("*.py")
        if package / "reports" not in path.parents
    )
    named = {*PHASES, SUCCESS_RATE, EPISODES}.union(*(chart.metrics for chart in CHARTS))
    assert [name for name in sorted(named) if not re.search(rf"\b{name}\b", code)] == []
