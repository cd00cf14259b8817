"""`evaluate`: what is refused before a model is loaded."""

from tests.unit.cli.terminal import Type


def test_a_memory_of_pictures_is_refused_before_the_model_is_loaded(type_: Type) -> None:
    """There is no such model, which would be the complaint otherwise."""
    outcome = type_(
        "evaluate no/model --environment.id ALFWorld --environment.options view=picture "
        "--prompt.history memory"
    )
    assert outcome.code == 2
    assert outcome.lines == [
        "error: prompt.history is 'memory' — expected none or last_k with view=picture, which has "
        "no text to sum up; view=both has"
    ]
