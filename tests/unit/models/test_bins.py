"""Every bin of a robot's action is one token of the tiny model's tokenizer."""

from forethought.models.tiny import train_tokenizer

BINS = [f"b{number:03d}" for number in range(256)]


def test_each_bin_is_one_token_whether_the_text_holds_it_or_not() -> None:
    action = '{\n"action": "b127b120b140b127b255b000b000b255"\n}'
    tokenizer = train_tokenizer(["".join(BINS)] * 2 + [action] * 5)
    assert [len(tokenizer.tokenize(name)) for name in BINS] == [1] * 256
    tokens = tokenizer.tokenize(action)
    assert [token for token in tokens if token in BINS] == [
        *("b127", "b120", "b140", "b127", "b255", "b000", "b000", "b255")
    ]
