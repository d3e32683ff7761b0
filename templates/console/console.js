// The pages work without this file. On all of them it shows times in the reader's zone. In the chat it posts forms without leaving the
// page, and swaps in what the server says has changed. It renders nothing itself: all HTML comes escaped from the server.
"use strict";
(() => {
  const body = document.body, told = body.dataset, $ = (id) => document.getElementById(id);
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const banner = $("banner"), toast = $("toast"), field = $("text");
  let kept = { getItem: () => null, setItem() {}, removeItem() {} };
  try { kept = sessionStorage; } catch { /* A browser that keeps nothing. */ }
  let have = told.have, hide = 0, unsure = null, seen = new Date();

  const clock = (at, more) => at.toLocaleString(document.documentElement.lang, { ...more, hour: "2-digit", minute: "2-digit", hour12: false });
  // Times: the clock of a message, how long ago, how long still.
  function span(ms) {
    const minutes = Math.round(ms / 60000);
    if (minutes < 60) return Math.max(minutes, 1) + told.minutes;
    return minutes < 2880 ? Math.round(minutes / 60) + told.hours : Math.round(minutes / 1440) + told.days;
  }
  function times(root) {
    for (const time of root.querySelectorAll("time")) {
      const at = new Date(time.dateTime), age = Date.now() - at;
      if (isNaN(at)) continue;
      if ("ago" in time.dataset) time.textContent = age < 60000 ? told.now : told.ago.replace("#", span(age));
      else if ("since" in time.dataset) time.textContent = span(age);
      else if ("left" in time.dataset) time.textContent = age > 0 ? told.over : told.left.replace("#", span(-age));
      else {
        const today = at.toDateString() === new Date().toDateString() && !("full" in time.dataset);
        const day = today ? {} : { year: "numeric", month: "2-digit", day: "2-digit" };
        time.textContent = clock(at, day);
      }
      time.title = at.toISOString().slice(0, 16).replace("T", " ") + " UTC";
    }
  }

  times(document);
  setInterval(() => times(document), 30000);
  if (!field) return;

  // What a press came to. It goes soon after the next card comes, beside whose buttons it would seem to mean that one.
  const hush = () => { toast.className = "toast"; };
  function say(word, tone) {
    if (!word) return;
    toast.textContent = word;
    toast.className = "toast on " + (tone || "");
    clearTimeout(hide);
    hide = setTimeout(hush, tone === "bad" ? 6000 : 3000);
  }
  if (toast.textContent) hide = setTimeout(hush, 6000);

  // What is new begins at the top of the window, where it is longer than that. Who scrolls is left alone
  // until they are back at the end, or press something.
  const scroll = $("scroll");
  let away = false;
  for (const kind of ["wheel", "touchmove", "keydown"]) scroll.addEventListener(kind, () => { away = true; }, { passive: true });
  scroll.addEventListener("scroll", () => { if (scroll.scrollTop > -4) away = false; });
  function show(first) {
    // A wheel at the end scrolls nothing: only who is elsewhere is left alone.
    if (away && scroll.scrollTop < -4) return;
    scroll.scrollTop = 0;
    const above = scroll.getBoundingClientRect().top + 12 - first.getBoundingClientRect().top;
    if (above > 0) scroll.scrollTop -= above;
  }

  // Swapping: children of a part are known by their ids; one is replaced only when the server drew it differently, and
  // what the reader has typed, opened or focused in it stays.
  const drawn = new WeakMap();
  function keep(old, fresh) {
    const opened = old.querySelectorAll("details"), next = fresh.querySelectorAll("details");
    if (opened.length === next.length) opened.forEach((one, at) => { if (one.dataset.touched) { next[at].open = one.open; next[at].dataset.touched = 1; } });
    const typed = old.querySelectorAll("textarea"), fields = fresh.querySelectorAll("textarea");
    if (typed.length === fields.length) typed.forEach((one, at) => { if (one.value !== one.defaultValue) fields[at].value = one.value; });
    const active = document.activeElement;
    if (!old.contains(active)) return () => {};
    // The focus goes to the same thing, or to the whole when that is gone: never to another button.
    const same = (one) => [one.tagName, one.name, one.value === undefined ? one.textContent : "", one.tagName === "BUTTON" ? one.value : "",
      one.form ? [...one.form.querySelectorAll("[name=call], [name=review]")].map((id) => id.value) : ""].join();
    const list = [...fresh.querySelectorAll("a, button, summary, textarea, pre")], one = list.find((one) => same(one) === same(active));
    return () => { if (!one) fresh.tabIndex = -1; (one || fresh).focus({ preventScroll: true }); };
  }
  const card = (one) => one.querySelector("section.card")?.getAttribute("aria-label") || "";
  function swap(part, html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").body, known = new Map();
    for (const child of part.children) known.set(child.id, child);
    let before = null, first = null, stands = "";
    for (const child of [...fresh.children]) {
      const text = child.outerHTML, old = known.get(child.id);
      let shown = old;
      if (!old || drawn.get(old) !== text) {
        shown = document.importNode(child, true);
        drawn.set(shown, text);
        times(shown);
        const focus = old ? keep(old, shown) : null;
        if (card(shown) !== (old ? card(old) : "")) stands = card(shown);
        if (!old && shown.classList.contains("bot")) first = first || shown;
        if (old) { old.replaceWith(shown); focus(); } else part.insertBefore(shown, before ? before.nextSibling : part.firstChild);
      }
      const place = before ? before.nextElementSibling : part.firstElementChild;
      if (place !== shown) part.insertBefore(shown, place);
      known.delete(child.id);
      before = shown;
    }
    for (const gone of known.values()) gone.remove();
    // A card is drawn anew as a whole. Those who hear the page are told how it stands now, and no more.
    if (stands) $("told").textContent = stands;
    const waits = document.querySelectorAll("#part-waiting .gate").length;
    document.title = (waits ? `(${waits}) ` : "") + document.title.replace(/^\(\d+\) /, "");
    if (first) { clearTimeout(hide); hide = setTimeout(hush, 1000); show(first); }
  }
  for (const part of ["chat", "part-waiting", "part-turns", "part-status"]) {
    for (const child of $(part).children) drawn.set(child, child.outerHTML);
  }
  const newest = [...document.querySelectorAll("#chat > .msg")].pop();
  if (newest) show(newest);
  document.addEventListener("click", (event) => {
    const summary = event.target.closest("summary");
    if (summary) summary.parentNode.dataset.touched = 1;
  });

  // A new page; what was typed goes along.
  function again() {
    kept.setItem("typed", field.value);
    location.reload();
  }

  // What changes comes here; a lost connection is told and tried again. A page that nobody sees asks nothing: browsers
  // give a server six connections, and pages in the background would hold them all.
  async function live() {
    let wait = 500;
    for (;;) {
      if (document.hidden) await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
      const query = new URLSearchParams({ chat: told.chat, as: told.as, have });
      const stop = new AbortController(), late = setTimeout(() => stop.abort(), 40000), hidden = () => stop.abort();
      document.addEventListener("visibilitychange", hidden);
      try {
        const answer = await fetch("/console/live?" + query, { signal: stop.signal });
        if (answer.status === 401 || answer.status === 404) { again(); return; }
        if (!answer.ok) throw new Error(String(answer.status));
        const news = await answer.json();
        // Once per version: while two versions answer in turn, a page of either goes on.
        if (news.build !== told.build && kept.getItem("build") !== news.build) {
          kept.setItem("build", news.build);
          again();
          return;
        }
        for (const [id, html] of Object.entries(news.parts)) swap($(id), html);
        have = news.have;
        banner.hidden = true;
        body.classList.remove("lost");
        seen = new Date();
        wait = 500;
      } catch {
        if (document.hidden) continue;
        banner.textContent = told.lost.replace("#", clock(seen, { second: "2-digit" }));
        banner.hidden = false;
        body.classList.add("lost");
        await sleep(wait);
        wait = Math.min(wait * 2, 8000);
      } finally {
        clearTimeout(late);
        document.removeEventListener("visibilitychange", hidden);
      }
    }
  }

  // `spot`: where an error is told; without it in the corner of the page.
  async function send(path, data, spot) {
    const told_bad = (word) => { if (spot) spot.textContent = word; else say(word, "bad"); };
    try {
      const answer = await fetch(path, { method: "POST", body: data, headers: { Accept: "application/json" } });
      // The session has ended. What was typed is back in its place by then.
      if (answer.status === 401) setTimeout(again);
      const result = await answer.json();
      if (result.toast) say(result.toast.text, result.toast.tone);
      else if (!answer.ok) told_bad(result.error ? result.error.message : told.failed);
      return answer.ok;
    } catch {
      say(told.failed, "bad");
      return false;
    }
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target, button = event.submitter, path = form.getAttribute("action");
    if (path !== "/console/say" && path !== "/console/decide") return;
    event.preventDefault();
    away = false;
    const field = form.querySelector("textarea"), text = field ? field.value : "";
    // Read before anything is disabled or emptied: a disabled button says nothing.
    const data = new URLSearchParams(new FormData(form, button));
    if (form.dataset.say !== undefined) {
      if (!text.trim()) return;
      field.value = "";
      grow(field);
      scroll.scrollTop = 0;
      // The same words after a failure are the same message: it may have arrived.
      if (!unsure || unsure.text !== text) unsure = { text, key: Date.now().toString(36) + Math.random().toString(36).slice(1) };
      const mine = unsure;
      data.set("key", mine.key);
      if (await send(path, data)) { if (unsure === mine) unsure = null; }
      else if (!field.value) field.value = text;
      return;
    }
    // Not disabled: that would take the focus away.
    if (form.ariaBusy) return;
    form.ariaBusy = "true";
    const done = await send(path, data, form.querySelector("[data-told]"));
    form.ariaBusy = null;
    if (done) form.querySelectorAll("textarea").forEach((one) => { one.value = one.defaultValue; });
  });

  field.value = field.value || kept.getItem("typed") || "";
  kept.removeItem("typed");
  function grow(one) {
    if (CSS.supports("field-sizing", "content")) return;
    one.style.height = "auto";
    one.style.height = Math.min(one.scrollHeight + 2, 180) + "px";
  }
  field.addEventListener("input", () => grow(field));
  field.addEventListener("keydown", (event) => {
    // Not while an input method is composing: there, Enter picks a word.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
      event.preventDefault();
      field.form.requestSubmit();
    }
  });
  live();
})();
