// Sorts tables, filters tables and maps, and shows the chosen device. Everything is readable without it.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const later = (work) => {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; work(); });
    };
  };
  const number = new Intl.NumberFormat("en");
  const counted = (count, noun) => number.format(count) + " " + noun + (count === 1 ? "" : "s");
  const report = (output, shown, total) => {
    const whole = counted(total, output.dataset.noun);
    output.textContent = shown === total ? whole : number.format(shown) + " of " + whole;
  };
  const idle = window.requestIdleCallback || ((work) => setTimeout(() => work({ timeRemaining: () => 5 }), 50));
  // Makes changes in their order: as many at once as take a moment to make and to lay out, the rest a little later, because
  // it is further down than anybody sees at once. `make` returns whether the change needs much layout, and at most `most` of
  // those are made at once. New changes replace those that wait.
  const unfinished = new Set();
  const slicer = (make, most) => {
    let [waiting, turn] = [[], 0];
    const go = (isWhole) => {
      const end = performance.now() + 6;
      let [index, large] = [0, 0];
      for (; index < waiting.length && (isWhole || (large < most && performance.now() < end)); index += 1) {
        if (make(waiting[index])) large += 1;
      }
      waiting = waiting.slice(index);
      if (!waiting.length) return unfinished.delete(finish);
      unfinished.add(finish);
      const mine = turn += 1;
      idle(() => { if (mine === turn) go(false); });
    };
    const finish = () => go(true);
    return (changes) => { waiting = changes; turn += 1; go(false); };
  };
  // Paper shows everything at once.
  window.addEventListener("beforeprint", () => unfinished.forEach((finish) => finish()));
  const words = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);

  // Tables
  const collator = new Intl.Collator("en", { numeric: true });
  const wire = (table) => {
    const bodies = all("tbody", table);
    let rows = bodies.flatMap((body) => [...body.rows]);
    const size = bodies.length ? bodies[0].rows.length : 0;
    const heads = all("th", table);
    let filter = () => {};
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
        const keyed = rows.map((row) => [row.cells[column].textContent, row]);
        keyed.sort((one, two) => turn * collator.compare(one[0], two[0]));
        rows = keyed.map((pair) => pair[1]);
        bodies.forEach((body, index) => body.append(...rows.slice(index * size, (index + 1) * size)));
        filter();
      });
    });
    const tools = table.closest(".data").querySelector(".tools");
    if (!tools) return;
    tools.hidden = false;
    const input = tools.querySelector("input");
    const output = tools.querySelector("output");
    let texts;
    const read = () => { texts ||= new Map(rows.map((row) => [row, row.textContent.toLowerCase()])); };
    input.addEventListener("focus", read, { once: true });
    // Rows of a group in which nothing fits stay as they are: the group is hidden, which costs less than its rows.
    const apply = slicer(([body, here, fits]) => {
      const any = fits.includes(true);
      const turned = body.hidden === any;
      if (turned) body.hidden = !any;
      let isLarge = turned && any;
      if (any) here.forEach((row, place) => {
        if (row.hidden !== fits[place]) return;
        row.hidden = !fits[place];
        isLarge ||= fits[place];
      });
      return isLarge;
    }, 3);
    filter = () => {
      read();
      const wanted = words(input);
      const changes = bodies.map((body, index) => {
        const here = rows.slice(index * size, (index + 1) * size);
        return [body, here, here.map((row) => wanted.every((word) => texts.get(row).includes(word)))];
      });
      report(output, changes.reduce((sum, [, , fits]) => sum + fits.filter(Boolean).length, 0), rows.length);
      apply(changes);
    };
    input.addEventListener("input", later(filter));
  };
  all("table").forEach(wire);
  // A live page says where it has inserted something.
  document.addEventListener("tollgate:inserted", (event) => all("table", event.target).forEach(wire));

  // Maps
  const texts = (cell, separator) => [...cell.children].map((part) => part.textContent).join(separator);
  const STATES = { f: 1, a: 2, s: 4, t: 8, b: 16, u: 32 };
  for (const map of all(".map")) {
    const tools = map.querySelector(".tools");
    const input = tools.querySelector(".filter");
    const output = tools.querySelector("output");
    const boxes = all(".states input", tools);
    const nodes = map.querySelector(".nodes");
    const choice = map.querySelector(".choice");
    tools.hidden = false;

    // What is searched: the name of a card, and the text and the states of each cell. A card that is replaced is read again.
    const entries = new WeakMap();
    const known = (card) => {
      let entry = entries.get(card);
      if (!entry) {
        const head = card.querySelector("h3").textContent.toLowerCase();
        const cells = [...(card.querySelector(".cells")?.children || [])];
        const found = cells.map((cell) => cell.textContent.toLowerCase());
        const states = cells.map((cell) => cell.className.split(" ").reduce((bits, name) => bits | STATES[name], 0));
        entry = { head, cells, found, states, whole: found.join("\n"), fits: null };
        entries.set(card, entry);
      }
      return entry;
    };
    // Which cells of a card fit: a word is in the name of the card or in the cell, and one of its states is on. `null` is all.
    const fitting = ({ head, found, states, whole }, wanted, on) => {
      const rest = wanted.filter((word) => !head.includes(word));
      if (!rest.every((word) => whole.includes(word))) return [];
      if (!rest.length && on === 63) return null;
      const fits = [];
      for (let index = 0; index < found.length; index += 1) {
        fits.push((states[index] & on) !== 0 && rest.every((word) => found[index].includes(word)));
      }
      return fits.includes(false) ? fits : null;
    };
    const apply = slicer(([part, entry, fits]) => {
      if (entry) {
        entry.cells.forEach((cell, place) => {
          const fit = fits ? fits[place] : true;
          if ((entry.fits ? entry.fits[place] : true) !== fit) cell.hidden = !fit;
        });
        entry.fits = fits;
      }
      if (!part.hidden) return false;
      part.hidden = false;
      if (part.parentElement?.parentElement === nodes) look(part);
      return true;
    }, 32);
    const filter = () => {
      const wanted = words(input);
      const on = boxes.reduce((bits, box) => (box.checked ? bits : bits & ~STATES[box.value]), 63);
      const isFree = wanted.length === 0 && on === 63;
      const [hides, changes] = [[], []];
      let [shown, total] = [0, 0];
      const show = (card) => {
        const entry = isFree ? entries.get(card) : known(card);
        // What was not read yet need not be read to be shown.
        const size = entry ? entry.cells.length : card.querySelector(".cells")?.childElementCount || 0;
        const fits = isFree ? null : fitting(entry, wanted, on);
        const count = fits ? fits.reduce((sum, fit) => sum + fit, 0) : size;
        total += size;
        shown += count;
        // A card with numbers only has no cells.
        const isShown = count > 0 || (!size && (isFree || wanted.every((word) => entry.head.includes(word))));
        const isNarrowed = entry && (fits || entry.fits);
        if (isShown && (isNarrowed || card.hidden)) changes.push(isNarrowed ? [card, entry, fits] : [card]);
        return isShown;
      };
      // Groups and groups of groups in which nothing fits are hidden whole: what is in them stays as it is.
      const visit = (parent) => {
        let any = false;
        for (const part of parent.children) {
          const [hidesBefore, changesBefore] = [hides.length, changes.length];
          if (part.localName !== "article" && part.hidden) changes.push([part]);
          const isShown = part.localName === "article" ? show(part) : visit(part);
          if (isShown) {
            any = true;
            continue;
          }
          hides.length = hidesBefore;
          changes.length = changesBefore;
          if (!part.hidden) hides.push(part);
        }
        return any;
      };
      visit(nodes);
      // Everything that does not fit goes at once; the rest comes in its order.
      hides.forEach((part) => { part.hidden = true; });
      apply(changes);
      report(output, shown, total);
    };
    const soon = later(filter);
    input.addEventListener("input", soon);
    boxes.forEach((box) => box.addEventListener("change", soon));
    // Reads the text of the cells while nothing else is to do, so that the first key finds it.
    const read = (cards, start) => idle((deadline) => {
      let index = start;
      for (; index < cards.length && deadline.timeRemaining() > 1; index += 1) known(cards[index]);
      if (index < cards.length) read(cards, index);
    });
    read(all(".node", nodes), 0);
    input.addEventListener("focus", () => all(".node", nodes).forEach(known), { once: true });

    // The chosen device: by pointer, or with the arrow keys within a card.
    const say = (cell) => {
      choice.textContent = cell.closest(".node").querySelector("h3").textContent + " · " + texts(cell, " · ");
      choice.hidden = false;
    };
    const choose = (cell) => {
      all(".cells .chosen", nodes).forEach((other) => other.classList.remove("chosen"));
      cell.classList.add("chosen");
      say(cell);
      map.dispatchEvent(new CustomEvent("tollgate:choose", { bubbles: true, detail: { id: cell.id } }));
    };
    nodes.addEventListener("click", (event) => {
      const cell = event.target.closest(".cells li");
      if (cell) choose(cell);
    });
    // Cards in sight can be reached with the keyboard.
    const isCompact = nodes.classList.contains("many");
    const reach = (card) => {
      const list = card.querySelector(".cells:not([role])");
      if (!list) return;
      list.tabIndex = 0;
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", "Devices of " + card.querySelector("h3").textContent);
      for (const cell of list.children) {
        cell.setAttribute("role", "option");
        // The style leaves out the text of compact cells.
        if (isCompact) cell.setAttribute("aria-label", texts(cell, " "));
      }
    };
    const reached = new WeakSet();
    const sight = new IntersectionObserver((changes) => {
      for (const { isIntersecting, target } of changes) {
        // Hidden groups have no height, so all of them are in sight.
        if (!isIntersecting || target.hidden) continue;
        reached.add(target);
        [...target.children].forEach(reach);
      }
    }, { rootMargin: "50%" });
    // A group that was in sight before is looked at again.
    const look = (group) => {
      sight.unobserve(group);
      sight.observe(group);
    };
    all(":scope>div>div", nodes).forEach(look);
    nodes.addEventListener("keydown", (event) => {
      const list = event.target.closest(".cells");
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!list || !step) return;
      event.preventDefault();
      const cells = [...list.children].filter((cell) => !cell.hidden);
      const now = cells.findIndex((cell) => cell.classList.contains("chosen"));
      const next = cells[Math.min(cells.length - 1, Math.max(0, now + step))];
      if (!next) return;
      list.setAttribute("aria-activedescendant", next.id);
      choose(next);
      next.scrollIntoView({ block: "nearest" });
    });
    // A live page says which cards it has replaced or filled anew.
    map.addEventListener("tollgate:replaced", (event) => {
      for (const card of event.detail.cards) {
        entries.delete(card);
        if (reached.has(card.parentElement)) reach(card);
      }
      for (const group of all(":scope>div>div", nodes)) if (!reached.has(group)) look(group);
      filter();
    });
  }
})();
