"""WebShop's prompt: the page in few words, what can be clicked in brackets."""

from forethought.environments.registry import make_environment
from forethought.environments.webshop.wording import WebShopPrompter, describe_page
from forethought.types import Observation

GOAL = "i need a shirt in navy, and price lower than 40.00 dollars"
RESULTS = (
    f"Instruction:\n{GOAL}\n[button] Back to Search [button_]\nPage 2 (Total results: 13)\n"
    "[button] < Prev [button_]\n[button] Next > [button_]\n"
    "\n[button] B0AAAAAAAA [button_]\nZeno Shirt, Slim Fit\n$31.5\n"
    "\n[clicked button] B0BBBBBBBB [clicked button_]\nZeno Polo\n$12.0 to $15.0\n"
)
ITEM = (
    f"You have clicked navy.\nInstruction:\n{GOAL}\n[button] Back to Search [button_]\n"
    "[button] < Prev [button_]\ncolor\n  [button] white [button_]\n"
    "  [clicked button] navy [clicked button_]\nsize\n  [button] 8 [button_]\n"
    "Zeno Shirt, Slim Fit\nPrice: $31.5\nRating: N.A.\n[button] Description [button_]\n"
    "[button] Buy Now [button_]\n"
)


def test_a_page_of_results() -> None:
    assert describe_page(RESULTS, GOAL) == (
        "[back to search]\npage 2 of 13 results\n[< prev] [next >]\n"
        "[b0aaaaaaaa] zeno shirt, slim fit $31.5\n[[b0bbbbbbbb]] zeno polo $12.0 to $15.0"
    )


def test_a_product_with_its_options() -> None:
    assert describe_page(ITEM, GOAL) == (
        "[back to search] [< prev]\ncolor: [white] [[navy]]\nsize: [8]\nzeno shirt, slim fit\n"
        "price: $31.5\n[description] [buy now]"
    )


def test_the_plain_view_has_bars_between_its_pieces() -> None:
    text = f"Instruction: [SEP] {GOAL} [SEP] Back to Search [SEP] < Prev [SEP] Cotton"
    assert describe_page(text, GOAL) == "back to search | < prev | cotton"


def test_every_page_names_every_click() -> None:
    """On the way of an expert, and one step beside it."""
    environment = make_environment("WebShop", view="text_rich")
    prompter = WebShopPrompter("action_only")
    for seed in range(15):
        observation = environment.reset(seed)
        for action in ("expert", "expert", "click[features]", "click[< prev]", "expert"):
            words = told(prompter, observation)
            for click in observation.admissible_actions or ():
                label = click.removeprefix("click[").removesuffix("]")
                assert f"[{label}]" in words
            assert words.endswith("\nJSON: action")
            chosen = environment.expert().action if action == "expert" else action  # pyright: ignore
            environment.step(chosen)
            observation = environment.observation()


def told(prompter: WebShopPrompter, observation: Observation) -> str:
    (message,) = prompter.messages(observation)
    assert message.text.count(observation.goal) == 1
    return message.text
