// What needs a script: keys, live news, and steps that are fetched as they come into view. All pages work without it.
"use strict";
(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  document.documentElement.classList.add("js");

  // Whatever is asked of the server goes through here, so that one that is gone, or ill, is never taken for a quiet one
  const away = one("[data-away]");
  let leaving = false, since = "";
  window.addEventListener("pagehide", () => { leaving = true; });
  window.addEventListener("pageshow", () => { leaving = false; });
  const tell = (text) => {
    if (!away || away.textContent === text) return;
    const back = away.textContent && !text;
    away.textContent = text;
    document.documentElement.classList.toggle("away", Boolean(text));
    if (back) document.dispatchEvent(new Event("server-back"));
  };
  const ask = async (url, given) => {
    let answer;
    try {
      answer = await fetch(url, given);
    } catch {
      since = since || new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      if (!leaving) tell(`The server has not answered since ${since}. What stands here may be old; it is asked again and again.`);
      return null;
    }
    since = "";
    const out = answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/sign-in");
    if (out) tell("You are signed out: what stands here may be old. Sign in again to go on.");
    else if (answer.status >= 500) tell(`The server answers that something is wrong (${answer.status}). What stands here may be old.`);
    else tell("");
    return out ? null : answer;
  };

  // Menu on narrow screens
  const menu = one(".menu");
  if (menu) {
    menu.hidden = false;
    menu.addEventListener("click", () => {
      const open = one(".side").classList.toggle("open");
      menu.setAttribute("aria-expanded", String(open));
    });
  }
  // A choice that is sent at once
  all("[data-submit]").forEach((field) => field.addEventListener("change", () => field.form.requestSubmit()));
  const browse = one("[data-live-form]");
  if (browse) {
    browse.addEventListener("change", (event) => {
      if (event.target.matches("input[type=checkbox], input[type=radio], select")) browse.requestSubmit();
    });
    browse.addEventListener("submit", () => all("input[type=search]", browse).forEach((f) => { f.disabled = !f.value; }));
    window.addEventListener("pageshow", () => all("input[type=search]", browse).forEach((f) => { f.disabled = false; }));
  }
  if (window.matchMedia("(min-width: 901px)").matches) all("[data-wide-open]").forEach((d) => { d.open = true; });
  // A form that was refused: on to the field that is at fault, with the reason beside it
  const fault = one("input[aria-describedby~=problem], textarea[aria-describedby~=problem], select[aria-describedby~=problem], button[aria-describedby~=problem]");
  if (fault) fault.focus();
  // A question before what cannot be undone
  all("[data-ask]").forEach((form) => form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.ask)) event.preventDefault();
  }));

  // Keys
  const keys = one("#keys");
  const typing = (target) => target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
  const handlers = new Map();
  handlers.set("?", () => keys.showModal());
  handlers.set("/", () => { const field = one("[data-search], input[type=search]"); if (field) field.focus(); else return false; });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open || typing(event.target)) return;
    const handler = handlers.get(event.key);
    if (handler && handler(event) !== false) event.preventDefault();
  });

  // The list of sessions
  const rows = all("[data-row]");
  if (rows.length) {
    const around = () => document.activeElement && document.activeElement.closest("li, tr");
    const move = (by) => {
      const at = rows.findIndex((row) => row.closest("li, tr") === around());
      rows[Math.min(Math.max(at + by, 0), rows.length - 1)].focus();
    };
    handlers.set("j", () => move(1));
    handlers.set("k", () => move(-1));
    // What is done with the row that has the focus
    handlers.set("t", () => { const act = around() && one("[data-draft]", around()); if (act) act.click(); else return false; });
    handlers.set("x", () => {
      const fold = around() && one("[data-dismiss]", around());
      if (!fold) return false;
      fold.parentElement.open = true;
      one("input[name=reason]", fold.parentElement).focus();
    });
  }

  // A search that goes on through all sessions, until it is stopped or has found enough
  const further = one("[data-further]");
  if (further) {
    const enough = 500;
    const places = one("[data-places]"), said = one("[data-status]"), all_of = Number(further.dataset.of);
    let going = false, next = new URL(further.href).searchParams.get("after");
    const number = (n) => Number(n).toLocaleString("en");
    const found = () => all("li:not([data-lost])", places).length;
    const say = (end) => { said.textContent = `${end} ${number(found())} places in the first ${number(next || all_of)} of ${number(all_of)} sessions.`; };
    const go = async () => {
      const url = new URL(further.href);
      url.pathname = "/sessions/further";
      const until = found() + enough;
      while (going && next && found() < until) {
        url.searchParams.set("after", next);
        const answer = await ask(url);
        if (!answer || !answer.ok) break;
        places.insertAdjacentHTML("beforeend", await answer.text());
        next = answer.headers.get("x-next");
        say("Reading:");
      }
      going = false;
      say(next ? "Not everything has been read yet:" : "All have been read:");
      if (next) further.textContent = "Look further"; else further.remove();
    };
    further.setAttribute("role", "button");
    further.addEventListener("click", (event) => {
      event.preventDefault();
      going = !going;
      if (going) { further.textContent = "Stop"; go(); }
    });
  }

  // News of the store, and whether the server is there at all
  let shown = document.body.dataset.version;
  const news = one("[data-new]");
  const live = Boolean(news && shown);
  if (live) news.querySelector("a").href = location.href;
  let tag = "", latest = shown;
  // Whoever types, chooses or marks something is in the middle of it. A click beside everything leaves the focus on the
  // page itself, or on the part of it that scrolls: that is nothing.
  const PLACES = "body, [tabindex='-1'], [role=region]";
  const idle = () => (!document.activeElement || document.activeElement.matches(PLACES)) && (window.getSelection() || { isCollapsed: true }).isCollapsed;
  const refresh = async () => {
    const answer = await ask(location.href, { headers: { Accept: "text/html" } });
    const text = answer && answer.ok ? await answer.text() : "";
    if (!text || !idle()) return;  // asked last, when nothing is waited for any more
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const at = document.activeElement, name = at && at.getAttribute("aria-label"), left = at ? at.scrollLeft : 0;
    for (const part of [".head", ".results"]) {
      const old = one(part), made = one(part, fresh);
      if (old && made) old.replaceWith(document.adoptNode(made));
    }
    const same = at && !at.isConnected && (at.id ? document.getElementById(at.id) : all("[role=region]").find((r) => r.getAttribute("aria-label") === name));
    if (same) { same.focus({ preventScroll: true }); same.scrollLeft = left; }
    document.body.dataset.version = fresh.body.dataset.version;
    shown = fresh.body.dataset.version;
  };
  const look = async () => {
    if (document.hidden) return;
    const answer = await ask("/api/version", { headers: tag ? { "If-None-Match": tag } : {} });
    if (answer && answer.status === 200) {
      tag = answer.headers.get("etag") || "";
      latest = (await answer.json()).sessions;
    }
    if (!live || !answer || latest === shown) return;
    // Whoever is in the middle of something is told; nobody else is kept waiting.
    if (idle()) await refresh();
    else one("[data-new]").hidden = false;
  };
  if (one("#nav")) {
    const tick = () => look().finally(() => window.setTimeout(tick, live ? 2000 : 5000));
    window.setTimeout(tick, live ? 1500 : 5000);
  }

  // The rest of a long text
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-rest]");
    if (!link) return;
    event.preventDefault();
    const at = new URL(link.href);
    at.searchParams.set("alone", "no");
    link.setAttribute("aria-busy", "true");
    const answer = await ask(at);
    if (!answer) { link.removeAttribute("aria-busy"); return; }
    if (!answer.ok) { location.href = link.href; return; }
    const piece = document.createElement("div");
    piece.className = "text";
    piece.dir = "auto";
    piece.innerHTML = await answer.text();
    const rest = link.closest(".rest");
    rest.before(piece);
    const next = answer.headers.get("x-next");
    if (next) {
      const url = new URL(link.href);
      url.searchParams.set("from", next);
      link.href = url;
      link.textContent = "more";
      link.removeAttribute("aria-busy");
    } else rest.remove();
  });

  // Steps
  const steps = one("[data-steps]");
  if (steps) {
    const chunks = all(".chunk", steps);
    const id = steps.dataset.id;
    const guess = 118;
    const loads = new Map();
    const hold = (chunk) => { chunk.style.height = (Number(chunk.dataset.to) - Number(chunk.dataset.from)) * guess + "px"; };
    const load = (chunk) => {
      if (!chunk.classList.contains("wait")) return Promise.resolve();
      if (!loads.has(chunk)) {
        const url = "/session/steps?" + new URLSearchParams({ id, from: chunk.dataset.from, to: chunk.dataset.to });
        loads.set(chunk, ask(url).then((answer) => (answer && answer.ok ? answer.text() : Promise.reject(new Error("steps")))).then((text) => {
          steady(chunk, () => {
            chunk.innerHTML = text;
            chunk.classList.remove("wait");
            delete chunk.dataset.said;
            chunk.style.height = "";
          });
        }).finally(() => loads.delete(chunk)));
      }
      return loads.get(chunk);
    };
    // What is being read stays where it is when something above it changes its height.
    const steady = (chunk, change) => {
      const before = chunk.getBoundingClientRect();
      change();
      if (before.bottom <= 60) window.scrollBy(0, chunk.getBoundingClientRect().height - before.height);
    };
    const drop = (chunk) => steady(chunk, () => {
      chunk.style.height = chunk.offsetHeight + "px";
      chunk.classList.add("wait");
      chunk.replaceChildren();
    });
    chunks.filter((c) => c.classList.contains("wait")).forEach(hold);
    const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
      if (entry.isIntersecting) {
        load(entry.target).catch(() => { entry.target.dataset.said = "These steps could not be fetched."; });
        const at = chunks.indexOf(entry.target);
        chunks.forEach((c, i) => { if (Math.abs(i - at) > 12 && !c.classList.contains("wait")) drop(c); });
      }
    }), { rootMargin: "1400px 0px" });
    document.addEventListener("server-back", () => chunks.filter((c) => c.dataset.said).forEach((c) => { near.unobserve(c); near.observe(c); }));

    const settle = (element) => {
      element.scrollIntoView({ block: "start" });
      window.requestAnimationFrame(() => element.scrollIntoView({ block: "start" }));
    };
    const show = async (index, anchor) => {
      const chunk = chunks.find((c) => Number(c.dataset.first) <= index && index <= Number(c.dataset.last)) || chunks[chunks.length - 1];
      try { await load(chunk); } catch { return null; }
      let step = document.getElementById("s" + index);
      if (!step) step = all(".step", chunk).filter((s) => Number(s.dataset.step) <= index).pop() || one(".step", chunk);
      if (!step) return null;
      const place = (anchor && document.getElementById(anchor)) || step;
      const fold = place.closest("details");
      if (fold) fold.open = true;
      all(".step.target").forEach((s) => s.classList.remove("target"));
      step.classList.add("target");
      settle(step);
      step.focus({ preventScroll: true });
      all("mark.ev.here").forEach((m) => m.classList.remove("here"));
      if (place !== step) { place.classList.add("here"); place.scrollIntoView({ block: "center" }); }
      all(".strip .b").forEach((b, i, list) => {
        const next = list[i + 1];
        b.classList.toggle("here", Number(b.dataset.step) <= index && (!next || index < Number(next.dataset.step)));
      });
      return step;
    };
    const current = () => {
      const focused = document.activeElement && document.activeElement.closest(".step");
      if (focused) return focused;
      const target = one(".step.target");
      if (target) return target;
      return all(".step", steps).find((s) => s.getBoundingClientRect().bottom > 40) || null;
    };
    const move = async (by) => {
      const here = current();
      if (!here) return;
      if (!here.classList.contains("target") && document.activeElement !== here && by > 0 && here.getBoundingClientRect().top >= 0) {
        await show(Number(here.dataset.step));
        return;
      }
      const list = all(".step", steps);
      let next = list[list.indexOf(here) + by];
      const chunk = here.closest(".chunk");
      if (!next || next.closest(".chunk") !== chunk) {
        const beside = chunks[chunks.indexOf(chunk) + by];
        if (!beside) return;
        try { await load(beside); } catch { return; }
        const inside = all(".step", beside);
        next = by > 0 && one(".step:last-of-type", chunk) === here ? inside[0] : by < 0 && one(".step", chunk) === here ? inside[inside.length - 1] : next;
      }
      if (next) await show(Number(next.dataset.step));
    };
    const signals = all("[data-signal]");
    let signal = -1;
    const toSignal = (at) => {
      if (at < 0 || at >= signals.length) return;
      signal = at;
      signals.forEach((s, i) => s.classList.toggle("here", i === at));
      show(Number(signals[at].dataset.step), signals[at].dataset.signal);
    };
    signals.forEach((link, at) => link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      toSignal(at);
    }));
    handlers.set("j", () => { move(1); });
    handlers.set("k", () => { move(-1); });
    handlers.set("n", () => toSignal(signal + 1));
    handlers.set("p", () => toSignal(signal < 0 ? signals.length - 1 : signal - 1));
    handlers.set("g", () => { one("[data-goto]").focus(); one("[data-goto]").select(); });
    handlers.set("e", () => {
      const here = current();
      if (!here) return;
      const folds = all("details", here);
      const open = folds.some((d) => !d.open);
      folds.forEach((d) => { d.open = open; });
    });
    handlers.set("Home", () => { show(Number(chunks[0].dataset.first)); });
    handlers.set("End", () => { show(Number(chunks[chunks.length - 1].dataset.last)); });
    one(".goto").addEventListener("submit", (event) => {
      event.preventDefault();
      const wanted = Number(one("[data-goto]").value);
      if (Number.isFinite(wanted)) show(wanted);
    });
    all(".strip .b").forEach((b) => b.addEventListener("click", () => show(Number(b.dataset.step))));
    const begin = async () => {
      const anchor = location.hash.slice(1);
      if (steps.dataset.target) await show(Number(steps.dataset.target), anchor);
      else if (/^s\d+$/.test(anchor)) await show(Number(anchor.slice(1)));
      chunks.forEach((chunk) => near.observe(chunk));
    };
    begin();
  }

  // Labelling
  const labelling = one("[data-label]");
  if (labelling) {
    const boxes = all("[data-key]", labelling);
    const send = () => labelling.requestSubmit();
    boxes.forEach((box) => handlers.set(box.dataset.key, () => {
      if (labelling.dataset.label === "turn") {
        box.checked = !box.checked;
        const alone = boxes.find((b) => b.value === "other");
        if (box.checked && alone) boxes.forEach((b) => { if ((b === alone) !== (box === alone)) b.checked = false; });
      } else { box.checked = true; send(); }
    }));
    handlers.set("Enter", (event) => { if (event.target.closest("button, a")) return false; send(); });
    handlers.set("s", () => labelling.requestSubmit(one("[data-skip]")));
    handlers.set("u", () => { const back = one("[data-back]"); if (back) back.click(); else return false; });
  }

  // Jobs
  const jobs = one("[data-jobs]");
  if (jobs) {
    const states = (within) => all("tbody tr", within).map((row) => one("th", row).firstChild.textContent + ": " + one(".state", row).textContent.trim());
    const look = async () => {
      const answer = await ask(location.href, { headers: { Accept: "text/html" } });
      if (answer && answer.ok) {
        const before = states(one("[data-jobs]"));
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        const made = one("[data-jobs]", fresh);
        if (made) {
          const open = all("details[open]", one("[data-jobs]")).map((d) => d.id);
          const focused = document.activeElement && document.activeElement.id;
          one("[data-jobs]").replaceWith(document.adoptNode(made));
          open.forEach((o) => { const d = document.getElementById(o); if (d) d.open = true; });
          const again = focused && document.getElementById(focused);
          if (again) again.focus();
          const news = states(made).filter((line) => !before.includes(line));
          if (news.length) one("[data-jobs-said]").textContent = news.join(". ");
        }
      }
      if (one("[data-jobs]").dataset.jobs === "busy") window.setTimeout(look, 1000);
    };
    if (jobs.dataset.jobs === "busy") window.setTimeout(look, 800);
  }
})();
