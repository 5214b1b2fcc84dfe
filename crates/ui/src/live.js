// Keeps a page current, shows the chosen device, and asks what would happen.
"use strict";
(() => {
  const body = document.body;
  const get = (id) => document.getElementById(id);
  const map = document.querySelector(".map");
  const nodes = map.querySelector(".nodes");
  const pause = (time) => new Promise((done) => setTimeout(done, time));
  const inserted = (root) => root.dispatchEvent(new CustomEvent("tollgate:inserted", { bubbles: true }));
  const isWhatIf = body.dataset.page === "/what-if";

  // Whether the state is current
  const state = get("live-state");
  const age = get("live-age");
  let revision = Number(body.dataset.revision);
  let taken = body.dataset.taken;
  let trouble = get("live").dataset.trouble || "";
  let lost = "";
  const isDump = "dump" in body.dataset;
  const duration = (seconds) =>
    seconds < 120 ? seconds + " s" : seconds < 7200 ? Math.floor(seconds / 60) + " min" :
      seconds < 172800 ? Math.floor(seconds / 3600) + " h" : Math.floor(seconds / 86400) + " days";
  const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const tell = () => {
    const why = lost || trouble;
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(taken)) / 1000));
    const isAged = isDump && seconds >= 3600;
    get("live").classList.toggle("old", Boolean(why));
    get("live").classList.toggle("aged", isAged);
    const follows = isDump ? "The page shows a dump, and follows the file." : "The page follows the cluster.";
    say(state, why ? "The state on this page is old: " + why : follows);
    const ago = duration(seconds) + " ago, at " + taken + ".";
    if (!taken) say(age, "The dump does not record when it was made.");
    else if (isDump) say(age, "The dump was made " + ago + (isAged ? " The cluster may have changed since." : ""));
    else if (trouble) say(age, "It was current until " + duration(seconds) + " ago, " + taken + ".");
    else say(age, "Last change read " + (why ? ago : "at " + taken + "."));
  };
  tell();
  setInterval(tell, 1000);

  const ended = "this session has ended; open the address that tollgate ui prints when you press Enter.";
  const silent = "tollgate ui does not answer; it may have been stopped.";

  // Changes
  const element = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  const picked = new Map();
  let chosen = "";
  const restore = (card) => {
    for (const cell of card.querySelectorAll(".cells li")) {
      if (cell.id === chosen) cell.classList.add("chosen");
      if (picked.has(cell.id)) mark(cell, true);
    }
  };
  const mark = (cell, isPicked) => {
    cell.classList.toggle("picked", isPicked);
    if (isPicked) cell.setAttribute("aria-selected", "true");
    else cell.removeAttribute("aria-selected");
  };
  // The element of the card stays, with its size, so that nothing on the page moves.
  const replaceCard = ({ id, html, after }) => {
    const fresh = element(html);
    let card = get(id);
    if (!card) {
      card = fresh;
      const before = after && get(after);
      if (before) before.after(card);
      else {
        // Cards are in groups of groups.
        if (!nodes.children.length) nodes.append(element("<div><div></div></div>"));
        if (after) nodes.lastElementChild.lastElementChild.append(card);
        else nodes.firstElementChild.firstElementChild.prepend(card);
      }
    } else {
      const list = card.querySelector(".cells");
      const hasFocus = list && list === document.activeElement;
      card.className = fresh.className;
      card.replaceChildren(...fresh.childNodes);
      const next = card.querySelector(".cells");
      if (hasFocus && next) {
        next.tabIndex = 0;
        next.focus({ preventScroll: true });
        if (get(chosen)) next.setAttribute("aria-activedescendant", chosen);
      }
    }
    restore(card);
    return card;
  };
  const replacePart = (id, html) => {
    const part = get(id);
    if (!part) return;
    const filters = [...part.querySelectorAll("input.filter")].map((input) => input.value);
    part.innerHTML = html;
    inserted(part);
    part.querySelectorAll("input.filter").forEach((input, index) => {
      if (!filters[index]) return;
      input.value = filters[index];
      input.dispatchEvent(new Event("input"));
    });
  };
  const apply = (changes) => {
    const isNew = changes.revision > revision;
    revision = changes.revision;
    taken = changes.taken;
    trouble = changes.trouble || "";
    tell();
    if (changes.isForgotten) return location.reload();
    if (!isNew) return;
    for (const [id, html] of Object.entries(changes.parts)) replacePart(id, html);
    const kept = new Set(changes.cards.map((card) => card.id));
    for (const id of changes.gone) if (!kept.has(id)) get(id)?.remove();
    const cards = changes.cards.map(replaceCard);
    const cell = get(chosen);
    if (cell) map.querySelector(".choice").textContent = [cell.closest(".node").firstElementChild, ...cell.children].map((part) => part.textContent).join(" · ");
    if (cards.length || changes.gone.length) {
      map.dispatchEvent(new CustomEvent("tollgate:replaced", { detail: { cards } }));
      body.dispatchEvent(new CustomEvent("tollgate:changed"));
    }
    if (!trouble) body.dispatchEvent(new CustomEvent("tollgate:revised"));
  };
  const follow = async () => {
    for (;;) {
      // A page that nobody sees does not ask: a browser opens only a few connections to a server.
      while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
      try {
        const answer = await fetch("/updates?since=" + revision, { cache: "no-store" });
        if (answer.status === 403) {
          lost = ended;
          tell();
          return;
        }
        if (!answer.ok) throw new Error(answer.statusText);
        const changes = await answer.json();
        lost = "";
        apply(changes);
      } catch {
        lost = silent;
        tell();
        await pause(2000);
      }
    }
  };
  follow();

  // The chosen device
  const details = get("details");
  let asked = 0;
  const show = async (id) => {
    chosen = id;
    if (!details) return;
    const number = ++asked;
    const answer = await fetch("/device?id=" + encodeURIComponent(id), { cache: "no-store" }).catch(() => null);
    const html = answer && answer.ok ? await answer.text() : "";
    if (number !== asked) return;
    if (html) details.innerHTML = html;
    else if (answer?.status === 404) details.textContent = "This device is gone.";
    else details.textContent = "No details: " + (answer?.status === 403 ? ended : silent);
  };
  map.addEventListener("tollgate:choose", (event) => show(event.detail.id));
  body.addEventListener("tollgate:changed", () => { if (chosen && details) show(chosen); });
  details?.addEventListener("click", (event) => {
    const link = event.target.closest(".related a");
    const cell = link && get(link.getAttribute("href").slice(1));
    if (!cell) return;
    event.preventDefault();
    cell.click();
    cell.scrollIntoView({ block: "nearest" });
  });

  // Text to copy
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const text = get(button.dataset.copy).textContent;
    const label = button.textContent;
    await navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => {
      button.textContent = "Select and copy the text yourself";
    });
    await pause(1500);
    button.textContent = label;
  });
  if (!isWhatIf) return;

  // What if
  const list = get("picked");
  const progress = get("progress");
  const answer = get("answer");
  const yaml = get("yaml");
  const about = () => document.querySelector("input[name=about]:checked").value;
  let running;
  let isAsking = false;
  let isStale = false;
  let timer;
  // Questions of other windows wait for this one; a newer one of this window takes its place, also after a reload.
  const isReload = performance.getEntriesByType("navigation").some((entry) => entry.type === "reload");
  const page = (isReload && sessionStorage.getItem("page")) || Math.random().toString(36).slice(2);
  sessionStorage.setItem("page", page);
  // A cluster that changes all the time must not keep the machine busy with answers.
  let notBefore = 0;
  const askSoon = (time) => { clearTimeout(timer); timer = setTimeout(ask, time); };
  const askAgain = () => askSoon(Math.max(500, notBefore - performance.now()));
  const question = () => {
    if (about() === "rule") return yaml.value.trim() && { page, rule: yaml.value };
    const targets = [...picked].filter(([, entry]) => entry.target).map(([, entry]) => entry.target);
    const devices = [...picked].filter(([, entry]) => !entry.target).map(([id]) => id);
    return targets.length + devices.length ? { page, targets, devices, effect: get("effect").value } : null;
  };
  const ask = async () => {
    running?.abort();
    [isAsking, isStale] = [false, false];
    const wanted = question();
    if (!wanted) {
      answer.replaceChildren();
      say(progress, about() === "rule" ? "Write a rule first." : "Pick a device first.");
      return;
    }
    running = new AbortController();
    const { signal } = running;
    const start = performance.now();
    isAsking = true;
    const slow = setTimeout(() => say(progress, "Computing…"), 300);
    try {
      const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted), signal };
      const found = await fetch("/what-if", sent);
      // The windows that asked later are many.
      if (found.status === 409) {
        say(progress, "Waiting for the answers of other windows…");
        notBefore = performance.now() + 2000 + 3000 * Math.random();
        return askAgain();
      }
      if (!found.ok) throw new Error((await found.text()).trim());
      const { html, rule, taken: read, at } = await found.json();
      answer.innerHTML = html;
      answer.dataset.rule = rule;
      inserted(answer);
      const meaning = at ? " “Now” in the answer is " + at + ", the time of your question." : "";
      say(progress, "The answer uses the state " + (read ? "of " + read : "on this page") + "." + meaning);
    } catch (error) {
      if (signal.aborted) return;
      say(progress, "No answer: " + error.message);
    } finally {
      clearTimeout(slow);
      if (!signal.aborted) {
        const now = performance.now();
        isAsking = false;
        notBefore = Math.max(notBefore, now + 3 * (now - start));
        if (isStale) askAgain();
      }
    }
  };

  const draw = () => {
    list.replaceChildren(...[...picked].map(([id, { label }]) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label + " ×";
      button.setAttribute("aria-label", "Remove " + label);
      button.addEventListener("click", () => pick(id));
      item.append(button);
      return item;
    }));
  };
  const pick = (id, label, target) => {
    const isPicked = !picked.has(id);
    if (isPicked) picked.set(id, { label, target });
    else picked.delete(id);
    const cell = get(id);
    if (cell && !target) mark(cell, isPicked);
    draw();
    askSoon(250);
  };
  const pickCell = (cell) =>
    pick(cell.id, cell.closest(".node").querySelector("h3").textContent + " · " + cell.querySelector("b").textContent);
  nodes.addEventListener("click", (event) => {
    if (about() !== "devices") return;
    const cell = event.target.closest(".cells li");
    if (cell) return pickCell(cell);
    const head = event.target.closest("h3");
    if (!head) return;
    const name = head.textContent;
    const target = head.querySelector(".kind") ? name.replace(/^pool /, "") : "node/" + name;
    pick(target, target, target);
  });
  nodes.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    const cell = event.target.closest(".cells")?.querySelector(".chosen");
    if (!cell || about() !== "devices") return;
    event.preventDefault();
    pickCell(cell);
  });
  const addTyped = () => {
    const target = get("target").value.trim();
    if (!target) return;
    if (!picked.has(target)) pick(target, target, target);
    get("target").value = "";
  };
  get("add").addEventListener("click", addTyped);
  get("target").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addTyped();
  });
  get("effect").addEventListener("change", () => askSoon(0));
  get("clear").addEventListener("click", () => {
    for (const id of picked.keys()) if (get(id)) mark(get(id), false);
    picked.clear();
    draw();
    askSoon(0);
  });
  const choose = (kind) => {
    document.querySelector("input[name=about][value=" + kind + "]").checked = true;
    get("about-devices").hidden = kind !== "devices";
    get("pick").hidden = kind !== "devices";
    get("about-rule").hidden = kind !== "rule";
  };
  for (const radio of document.querySelectorAll("input[name=about]")) {
    radio.addEventListener("change", () => { choose(about()); askSoon(0); });
  }
  yaml.addEventListener("input", () => askSoon(700));
  get("ask").addEventListener("submit", (event) => { event.preventDefault(); askSoon(0); });
  answer.addEventListener("click", (event) => {
    const place = event.target.closest("button[data-line]");
    if (place && about() === "rule") {
      const lines = yaml.value.split("\n");
      const at = lines.slice(0, place.dataset.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
      const start = at + Number(place.dataset.column) - 1;
      yaml.focus();
      yaml.setSelectionRange(start, Math.max(start, at + (lines[place.dataset.line - 1] || "").length));
    }
    if (event.target.closest("#edit")) {
      yaml.value = answer.dataset.rule;
      choose("rule");
      yaml.focus();
      askSoon(0);
    }
  });
  body.addEventListener("tollgate:revised", () => {
    if (isAsking) isStale = true;
    else if (question() && answer.firstChild) askAgain();
  });
  choose(about());
  const first = get(location.hash.slice(1));
  if (first?.matches(".cells li")) {
    pickCell(first);
    history.replaceState(null, "", "/what-if");
  }
})();
