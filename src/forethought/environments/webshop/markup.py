"""The shop's pages as HTML, for people: the same pieces as the text observations, as forms.

All text of products, goals and agents is escaped; pages hold no script and load nothing but
`/style.css`.
"""

from collections.abc import Sequence
from hashlib import sha256
from html import escape
from typing import NamedTuple

from forethought.environments.webshop.pages import (
    BUY,
    SEARCH,
    TABS,
    Piece,
    Place,
    Shop,
    parse_action,
)
from forethought.environments.webshop.products import Goal, Product
from forethought.environments.webshop.reward import Reward

STYLE = """
*{box-sizing:border-box}
body{margin:0;background:#f4f5f7;color:#1c2430;font:16px/1.45 system-ui,sans-serif}
header{background:#14324a;color:#fff;padding:.8rem 1rem}
header b{font-size:1.15rem}
header .link{background:none;border-color:#7f97aa}
main,.goal,.replay{max-width:60rem;margin:0 auto;padding:0 1rem}
.goal{margin:1rem auto;padding:.8rem 1rem;background:#fff7dc;border-left:4px solid #d49b00}
.replay{margin:1rem auto;padding:.8rem 1rem;background:#e6f0fa;border-left:4px solid #2a6fb0}
.replay nav{display:flex;gap:1rem;flex-wrap:wrap}
form{display:inline}
button,.link{font:inherit;border:1px solid #9fb0c0;border-radius:.4rem;background:#fff;
 padding:.45rem .8rem;margin:.15rem .1rem;cursor:pointer;color:inherit;text-decoration:none;
 display:inline-block}
button:hover,main .link:hover,.replay .link:hover{background:#eef3f8}
button.buy{background:#d49b00;border-color:#a87b00;font-weight:600}
button.chosen{background:#14324a;color:#fff}
.acted{outline:3px solid #d4380d;outline-offset:2px}
input[type=text]{font:inherit;padding:.55rem;border:1px solid #9fb0c0;border-radius:.4rem;
 width:min(32rem,100%)}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem;margin:.6rem 0}
.row{display:flex;gap:1rem;background:#fff;border:1px solid #dde3ea;border-radius:.5rem;
 padding:.8rem;margin:.6rem 0}
.row h3{margin:.1rem 0 .3rem;font-size:1rem}
.row svg{flex:0 0 72px}
.price{font-weight:700}
.item{display:grid;grid-template-columns:220px 1fr;gap:1.2rem;background:#fff;padding:1rem;
 border:1px solid #dde3ea;border-radius:.5rem}
fieldset{border:0;margin:.4rem 0;padding:0}
legend{font-weight:600;padding:0}
table{border-collapse:collapse;margin:.6rem 0}
td,th{border-bottom:1px solid #dde3ea;padding:.3rem .8rem .3rem 0;text-align:left;
 vertical-align:top}
.score{font-size:2.4rem;font-weight:700}
.said{white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:640px){.item{grid-template-columns:1fr}.row svg{flex-basis:48px;width:48px}}
"""


class Replay(NamedTuple):
    """Where a stored episode is being looked at."""

    address: str
    """Address of the episode; a step's number follows."""
    step: int
    steps: int
    action: str | None
    """What the agent did on this page; None: nothing, the episode is over."""
    thoughts: str


def as_page(
    shop: Shop,
    place: Place,
    goal: Goal,
    pieces: Sequence[Piece],
    reward: Reward,
    replay: Replay | None = None,
) -> str:
    """A page of the shop.

    Args:
        reward: of the purchase, for the last page.
        replay: where an agent's episode is shown; its buttons do nothing then.
    """
    acted = parse_action(replay.action or "") if replay else None
    view = _View(is_live=replay is None, acted=acted)
    if place.name == "done":
        inside = _done(shop, place, goal, reward, view)
    elif place.name == "search":
        inside = _search_form(view)
    else:
        inside = _with_buttons(shop, place, pieces, view)
    top = f'<div class="goal" id="goal">{escape(goal.instruction)}</div>'
    return whole("WebShop", (_replayed(replay) if replay else "") + top + f"<main>{inside}</main>")


def whole(title: str, body: str) -> str:
    """A document."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="/style.css"></head><body>'
        f'<header><b>WebShop</b> <a class="link" href="/">start</a></header>{body}</body></html>'
    )


class _View(NamedTuple):
    is_live: bool
    acted: tuple[str, str] | None
    """What the replayed agent did here: verb and argument."""

    def button(self, label: str, kind: str = "") -> str:
        """A button that clicks what is called so."""
        if self.acted == ("click", label.lower()):
            kind = f"{kind} acted"
        return (
            f'<form method="post"><button name="action" value="{escape(f"click[{label}]")}" '
            f'class="{kind.strip()}"{"" if self.is_live else " disabled"}>{escape(label)}'
            "</button></form>"
        )


def _search_form(view: _View) -> str:
    typed = view.acted[1] if view.acted and view.acted[0] == "search" else ""
    mark = ' class="acted"' if typed else ""
    held = "" if view.is_live else " disabled"
    return (
        f'<form method="post" class="bar"><input type="text" name="query" value="{escape(typed)}" '
        f'aria-label="search" autofocus{mark}{held}><button{held}>{SEARCH}</button></form>'
    )


def _with_buttons(shop: Shop, place: Place, pieces: Sequence[Piece], view: _View) -> str:
    special = {*TABS, BUY}
    labels = [piece.text for piece in pieces if piece.role == "button"]
    bar = "".join(view.button(label) for label in labels if label not in special)
    searched = f"<p>results for <i>{escape(place.keywords)}</i></p>" if place.keywords else ""
    if view.acted and view.acted[0] == "search":
        searched = _search_form(view)
    if place.name == "results":
        return f'<div class="bar">{bar}</div>{searched}{_results(shop, place, pieces, view)}'
    if place.name != "item":
        texts = "".join(
            f"<p>{escape(piece.text)}</p>" for piece in pieces[3:] if not piece.role[4:]
        )
        texts = texts or "<p>nothing is written here</p>"
        return f'<div class="bar">{bar}</div><div class="row"><div>{texts}</div></div>'
    return f'<div class="bar">{bar}</div>{_item(shop.product(place), place, view)}'


def _results(shop: Shop, place: Place, pieces: Sequence[Piece], view: _View) -> str:
    counted = next(piece.text for piece in pieces[3:] if piece.role == "text")
    rows = "".join(_row(shop.catalogue.by_asin[asin], place, view) for asin in shop.hits(place))
    return f"<h2>{escape(counted)}</h2>{rows}"


def _row(product: Product, place: Place, view: _View) -> str:
    seen = "chosen" if product.asin in place.visited else ""
    return (
        f'<div class="row">{_drawing(product, 72)}<div><h3>{escape(product.title)}</h3>'
        f'<span class="price">{escape(product.price_tag)}</span> '
        f"{view.button(product.asin, seen)}</div></div>"
    )


def _item(product: Product, place: Place, view: _View) -> str:
    chosen = dict(place.chosen)
    groups = "".join(
        f"<fieldset><legend>{escape(name)}</legend>"
        + "".join(
            view.button(value, "chosen" if chosen.get(name.lower()) == value else "")
            for value in values
        )
        + "</fieldset>"
        for name, values in product.options
    )
    tabs = "".join(view.button(tab) for tab in TABS)
    return (
        f'<div class="item"><div>{_drawing(product, 200)}</div><div><h2>{escape(product.title)}'
        f'</h2><p class="price">Price: {escape(product.price_tag)}</p><p>Rating: N.A.</p>{groups}'
        f'<div class="bar">{tabs}{view.button(BUY, "buy")}</div></div></div>'
    )


def _done(shop: Shop, place: Place, goal: Goal, reward: Reward, view: _View) -> str:
    bought = shop.product(place)
    chosen = ", ".join(f"{name}: {value}" for name, value in place.chosen) or "none"
    wanted = ", ".join(str(option) for option in goal.options) or "none"
    rows = (
        ("kind", f"{reward.type_factor:g}", f"{goal.query} — bought: {bought.query}"),
        ("attributes", f"{reward.attributes:.0%}", ", ".join(goal.attributes)),
        ("options", f"{reward.options:.0%}", f"{wanted} — chosen: {chosen}"),
        (
            "price",
            "within" if reward.price else "above",
            f"{goal.price_cap:.2f} at most — {bought.price_tag}",
        ),
    )
    table = "".join(
        f"<tr><th>{name}</th><td>{escape(value)}</td><td>{escape(asked)}</td></tr>"
        for name, value, asked in rows
    )
    again = '<a class="link" href="/new">another goal</a>' if view.is_live else ""
    return (
        f"<h2>Thank you for shopping with us!</h2><p>Your score (min 0.0, max 1.0)</p>"
        f'<p class="score" id="score">{reward.total:.2f}</p><p>{escape(bought.title)}</p>'
        f"<table>{table}</table>{again}"
    )


def _replayed(replay: Replay) -> str:
    def link(step: int, text: str) -> str:
        if 0 <= step <= replay.steps:
            return f'<a class="link" href="{replay.address}/{step}">{text}</a>'
        return ""

    did = "the episode is over" if replay.action is None else f"the agent does: {replay.action}"
    thought = f'<p class="said">{escape(replay.thoughts)}</p>' if replay.thoughts else ""
    return (
        f'<div class="replay"><nav>{link(replay.step - 1, "previous")}'
        f"<span>page {replay.step + 1} of {replay.steps + 1}</span>{link(replay.step + 1, 'next')}"
        f'</nav>{thought}<p class="said" id="action">{escape(did)}</p></div>'
    )


def _drawing(product: Product, size: int) -> str:
    """A drawing in place of the photograph: the first letters of the kind, on a color."""
    hue = sha256(product.asin.encode("utf-8", "surrogatepass")).digest()[0] * 360 // 256
    words = (product.query or product.title or "?").split() or ["?"]
    letters = escape("".join(word[0] for word in words[:2]).upper())
    return (
        f'<svg width="{size}" height="{size}" viewBox="0 0 100 100" aria-hidden="true">'
        f'<rect width="100" height="100" rx="12" fill="hsl({hue} 45% 82%)"/>'
        f'<text x="50" y="64" text-anchor="middle" font-size="40" fill="hsl({hue} 45% 28%)">'
        f"{letters}</text></svg>"
    )
