// Steps through the episodes of a page. What a model wrote reaches the page as text
// only: nothing here builds HTML from strings.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("replay-data").textContent);
  if (!data) return;
  const byId = (id) => document.getElementById(id);
  const MARKS = { success: "✓", failure: "✕", unfinished: "…" };
  const FAILURES = {
    no_action: "no action in the response",
    unknown_action: "not an action of this environment",
    trailing_text: "text after the action",
  };
  const PARTS = { thought: "Thoughts", action: "Action", response: "Response" };
  const PLAY_MS = 1200;
  const state = { episode: 0, step: 0, filter: "all", timer: null };

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function number(value, digits = 2) {
    if (value === null) return "–";
    const places = Number.isInteger(value) ? 0 : digits;
    const format = { minimumFractionDigits: places, maximumFractionDigits: places };
    return value.toLocaleString("en", format).replace("-", "−");
  }

  function signed(value) {
    return value > 0 ? `+${number(value)}` : number(value);
  }

  // Characters that are invisible, act on their surroundings or are half a character, made
  // visible. Joiners stay: scripts and emoji are spelt with them.
  function visible(text) {
    return text
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
      .replace(/[\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu, (c) =>
        `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
      );
  }

  // Episodes

  function showFilters() {
    const outcomes = data.episodes.map((episode) => episode.outcome);
    const filters = [["all", "All"], ["failure", "Failures"], ["success", "Successes"]];
    byId("filters").replaceChildren(
      ...filters.map(([filter, title]) => {
        const n = filter === "all" ? outcomes.length : outcomes.filter((o) => o === filter).length;
        return element(
          "button",
          {
            type: "button",
            "aria-pressed": String(state.filter === filter),
            disabled: n === 0 ? "" : null,
            onclick: () => choose(filter),
          },
          `${title} ${n}`,
        );
      }),
    );
  }

  function choose(filter) {
    state.filter = filter;
    const shown = data.episodes[state.episode].outcome;
    if (filter !== "all" && shown !== filter) {
      turnTo(data.episodes.findIndex((episode) => episode.outcome === filter), 0);
    }
    showFilters();
    showList();
    const chosen = [...byId("filters").children].find((b) => b.getAttribute("aria-pressed") === "true");
    chosen.focus();
  }

  function showList() {
    const rows = [];
    data.episodes.forEach((episode, index) => {
      if (state.filter !== "all" && episode.outcome !== state.filter) return;
      const button = element(
        "button",
        {
          type: "button",
          class: `is-${episode.outcome}`,
          "data-episode": index,
          onclick: () => turnTo(index, 0),
        },
        element("span", { class: "mark", "aria-label": episode.outcome }, MARKS[episode.outcome]),
        element("span", {}, element("span", { class: "word" }, "Episode "), String(episode.number)),
        element("small", { title: "Return" }, number(episode.total)),
      );
      rows.push(element("li", {}, button));
    });
    byId("episode-list").replaceChildren(...rows);
    markListed();
  }

  function markListed() {
    for (const button of byId("episode-list").querySelectorAll("button")) {
      button.setAttribute("aria-current", String(Number(button.dataset.episode) === state.episode));
    }
  }

  function open(episode, step = 0) {
    state.episode = episode;
    const current = data.episodes[episode];
    byId("episode-title").textContent = `Episode ${current.number}`;
    const badge = byId("episode-outcome");
    badge.textContent = current.outcome;
    badge.className = `badge is-${current.outcome}`;
    byId("episode-facts").textContent = visible(episodeFacts(current).join(" · "));
    markListed();
    byId("steps").replaceChildren(
      ...current.steps.map((shown, index) => element("li", {}, stripButton(shown, index))),
    );
    go(step);
  }

  function episodeFacts(episode) {
    const metrics = episode.metrics.map(([name, value]) => `${name} ${number(value)}`);
    const n = episode.steps.length;
    const facts = [`return ${number(episode.total)}`, `${n} step${n === 1 ? "" : "s"}`, ...metrics];
    if (episode.first_step > 0) facts.push(`begun earlier: shown from step ${episode.first_step + 1}`);
    return [...facts, `task ${episode.task_type}`, `seed ${episode.seed}`];
  }

  function stripButton(step, index) {
    const kind = step.reward > 0 ? "positive" : step.reward < 0 ? "negative" : "";
    const invalid = step.is_valid ? "" : " invalid";
    const position = numberOf(data.episodes[state.episode], index);
    const label = `Step ${position}, reward ${number(step.reward)}${step.is_valid ? "" : ", invalid action"}`;
    return element(
      "button",
      { type: "button", class: kind + invalid, "aria-label": label, title: label, onclick: () => turnTo(state.episode, index) },
      String(position),
      element("small", {}, step.reward === null ? "–" : signed(step.reward)),
    );
  }

  // Steps

  // Counted from 1, in the whole episode, whose beginning may not be here.
  function numberOf(episode, index) {
    return episode.first_step + index + 1;
  }

  function go(index) {
    const episode = data.episodes[state.episode];
    state.step = Math.max(0, Math.min(index, episode.steps.length - 1));
    const step = episode.steps[state.step];
    [...byId("steps").querySelectorAll("button")].forEach((button, i) => {
      if (i === state.step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    // Not `disabled`, which would take the focus away from who holds it.
    byId("previous").setAttribute("aria-disabled", String(state.step === 0));
    byId("next").setAttribute("aria-disabled", String(state.step === episode.steps.length - 1));
    byId("position").textContent = `Step ${numberOf(episode, state.step)} of ${numberOf(episode, episode.steps.length - 1)}.`;
    showPrompt(step);
    showFacts(step);
    showResponse(step);
    showClaims(step);
    showAction(step);
  }

  // What a reader does changes the link; what the page does by itself leaves it.
  function turn(by) {
    turnTo(state.episode, state.step + by);
  }

  function turnTo(episode, step) {
    stop();
    if (episode === state.episode) go(step);
    else open(episode, step);
    remember();
  }

  function showPrompt(step) {
    const images = step.prompt.filter(([, , image]) => image !== null);
    const diagrams = step.diagram === null ? [] : [data.texts[step.diagram]];
    byId("images").replaceChildren(
      ...images.map(([, , image]) => imageElement(image)),
      ...diagrams.map((diagram) => element("pre", { class: "diagram" }, diagram)),
    );
    const several = step.prompt.length > 1;
    byId("prompt").replaceChildren(
      ...step.prompt.map(([role, text]) =>
        element(
          "div",
          { class: "turn", tabindex: "0", role: "group", "aria-label": `Message of the ${role}` },
          ...(several ? [element("small", {}, role)] : []),
          element("pre", {}, visible(data.texts[text])),
        ),
      ),
    );
  }

  // Small images grow by whole factors, so that every pixel stays a square.
  function imageElement(index) {
    const [address, width] = data.images[index];
    const factor = Math.max(1, Math.floor(300 / width));
    return element("img", {
      src: address,
      width: width * factor,
      class: factor > 1 ? "pixels" : null,
      alt: "What the model saw at this step",
    });
  }

  function showFacts(step) {
    const end = step.terminated ? "terminated" : step.truncated ? "truncated" : "continues";
    const facts = [
      ["Reward", signed(step.reward)],
      ["Return so far", number(step.return_so_far)],
      ["Value (critic)", number(step.value)],
      ["Episode", end],
      ["State", step.state_key],
    ];
    byId("facts").replaceChildren(
      ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, visible(value))]),
    );
  }

  function showResponse(step) {
    const n = step.tokens.length;
    const how = step.temperature === 0 ? "greedy, probabilities at temperature 1" : `temperature ${step.temperature}`;
    const cut = step.finish_reason === "length" ? ", cut at the length limit" : "";
    byId("response-facts").textContent = n ? `${n} tokens, ${how}${cut}` : "no tokens: scripted or empty";
    byId("heat-legend").hidden = n === 0;
    byId("token-detail").hidden = n === 0;
    byId("token-detail").textContent = "Choose a token to see how probable it was.";
    if (n === 0) {
      const text = step.text ? visible(step.text) : "(empty)";
      byId("completion").replaceChildren(element("div", { class: "part" }, element("pre", {}, text)));
      return;
    }
    const parts = step.segments.map(([part, start, stop]) => {
      const pieces = step.tokens.slice(start, stop).map((token, i) => tokenElement(token, step, start + i));
      return element(
        "div",
        { class: `part ${part}` },
        element("small", {}, PARTS[part]),
        element("pre", {}, ...pieces),
      );
    });
    byId("completion").replaceChildren(...parts);
  }

  function tokenElement(token, step, index) {
    const [text, , , heat] = token;
    const isEnd = index === step.tokens.length - 1 && step.finish_reason === "stop";
    const shown = [];
    if (text === "") shown.push(element("span", { class: "mark" }, isEnd ? "end" : "·"));
    visible(text).split(/(\n)/).forEach((piece) => {
      if (piece === "\n") shown.push(element("span", { class: "mark", "aria-hidden": "true" }, "↵"), "\n");
      else if (piece) shown.push(piece);
    });
    const show = () => showToken(token, index);
    return element(
      "span",
      {
        class: `token heat-${heat}`,
        tabindex: index === 0 ? "0" : "-1",
        "data-index": index,
        onmouseenter: show,
        onfocus: show,
        onclick: show,
      },
      ...shown,
    );
  }

  function showToken([text, id, logprob], index) {
    const p = logprob === null ? null : Math.exp(logprob);
    const percent = p === null ? "–" : p >= 0.0995 ? (100 * p).toFixed(1) : (100 * p).toPrecision(2);
    const named = text === "" ? "no text" : JSON.stringify(text).slice(1, -1);
    byId("token-detail").replaceChildren(
      element("code", {}, named),
      ` token ${index + 1}, id ${id}, probability ${percent} %, log-prob ${number(logprob, 4)}`,
    );
  }

  // Claims in the thoughts, each beside the truth where it is another.
  function showClaims(step) {
    if (step.thoughts === null) {
      byId("claims").replaceChildren();
      return;
    }
    const [claims, concluded, consistent] = step.thoughts;
    const line = (text, right) =>
      element(
        "li",
        { class: right ? "right" : "wrong" },
        element("span", { "aria-label": right ? "true" : "false" }, right ? "✓" : "✕"),
        ` ${visible(text)}`,
      );
    const said = claims.map(([name, claimed, truth, right]) =>
      line(right ? `${name}: ${claimed}` : `${name}: ${claimed ?? "not said"}, true is ${truth}`, right),
    );
    const named = concluded.length ? concluded.join(" or ") : "nothing";
    said.push(line(`concludes: ${named}${consistent ? "" : ", does something else"}`, consistent));
    byId("claims").replaceChildren(
      element("h4", {}, "Claims in the thoughts"),
      element("ul", { class: "claims" }, ...said),
    );
  }

  function showAction(step) {
    const shown = [];
    if (step.action !== "") shown.push(element("code", {}, visible(step.action)));
    const badge = (text) => element("span", { class: "badge is-failure" }, text);
    if (!step.is_valid) shown.push(badge(`invalid: ${FAILURES[step.failure] || "unknown reason"}`));
    if (step.was_randomized) shown.push(badge("drawn at random instead"));
    byId("action").replaceChildren(...shown);
  }

  // Playing: one step after the other, from the beginning where the end was reached.

  function play() {
    if (state.timer !== null) return stop();
    const last = data.episodes[state.episode].steps.length - 1;
    if (state.step === last) go(0);
    state.timer = setInterval(() => {
      if (state.step < last) go(state.step + 1);
      if (state.step === last) stop();
    }, PLAY_MS);
    showPlaying();
  }

  function stop() {
    clearInterval(state.timer);
    state.timer = null;
    showPlaying();
  }

  function showPlaying() {
    const playing = state.timer !== null;
    byId("play").textContent = playing ? "❚❚" : "▶";
    byId("play").setAttribute("aria-label", playing ? "Pause" : "Play the episode");
  }

  // Links: `#episode-15-step-3` opens the page there.

  function remember() {
    const episode = data.episodes[state.episode];
    history.replaceState(null, "", `#episode-${episode.number}-step-${numberOf(episode, state.step)}`);
  }

  function openLink() {
    const link = /^#episode-(\d+)-step-(\d+)$/.exec(location.hash);
    const index = link ? data.episodes.findIndex(({ number }) => number === Number(link[1])) : -1;
    if (index < 0) return false;
    open(index, Number(link[2]) - numberOf(data.episodes[index], 0));
    byId("replay").scrollIntoView();
    return true;
  }

  // Keys

  function moveToken(from, by) {
    const tokens = [...byId("completion").querySelectorAll(".token")];
    const target = tokens[tokens.indexOf(from) + by];
    if (!target) return;
    from.tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
  }

  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const focused = document.activeElement;
    const isInReplay = byId("replay").contains(focused);
    if (focused.classList.contains("token") && Number.isFinite(by)) moveToken(focused, by);
    else if (isInReplay || (focused === document.body && Number.isFinite(by))) turn(by);
    else return;
    event.preventDefault();
  });

  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("play").addEventListener("click", play);
  window.addEventListener("hashchange", openLink);
  showFilters();
  showList();
  byId("replay-app").hidden = false;
  if (!openLink()) open(data.opening);
})();
