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
    filter = () => {
      read();
      const wanted = words(input);
      let shown = 0;
      bodies.forEach((body, index) => {
        const here = rows.slice(index * size, (index + 1) * size);
        const fits = here.map((row) => wanted.every((word) => texts.get(row).includes(word)));
        const count = fits.filter(Boolean).length;
        if (body.hidden !== (count === 0)) body.hidden = count === 0;
        if (count) here.forEach((row, place) => { if (row.hidden === fits[place]) row.hidden = !fits[place]; });
        shown += count;
      });
      report(output, shown, rows.length);
    };
    input.addEventListener("input", later(filter));
  };
  all("table").forEach(wire);
  // A live page says where it has inserted something.
  document.addEventListener("tollgate:inserted", (event) => all("table", event.target).forEach(wire));

  // Maps
  for (const map of all(".map")) {
    const tools = map.querySelector(".tools");
    const input = tools.querySelector(".filter");
    const output = tools.querySelector("output");
    const boxes = all(".states input", tools);
    const nodes = map.querySelector(".nodes");
    const choice = map.querySelector(".choice");
    tools.hidden = false;

    // What is searched: per card its name, and per cell its text. A card that is replaced is read again.
    let cards = all(".node", nodes);
    let entries = new Map();
    const known = (card) => {
      let entry = entries.get(card);
      if (!entry) {
        const head = card.querySelector("h3").textContent.toLowerCase() + " ";
        const cells = [...(card.querySelector(".cells")?.children || [])];
        entry = { head, cells, texts: cells.map((cell) => head + cell.textContent.toLowerCase()) };
        entries.set(card, entry);
      }
      return entry;
    };
    const filter = () => {
      const wanted = words(input);
      const off = boxes.filter((box) => !box.checked).map((box) => box.value);
      // A device is left out if all of its states are.
      const is_on = (cell) => off.length === 0 || ["f", "a", "s", "t", "b", "u"].some((state) =>
        cell.classList.contains(state) && !off.includes(state));
      const free = wanted.length === 0 && off.length === 0;
      let shown = 0;
      let total = 0;
      // Groups and cards in which nothing fits are hidden whole: what is in them stays as it is.
      for (const group of nodes.children) {
        const changes = [];
        let any = false;
        for (const card of group.children) {
          // What was not filtered yet need not be read to be shown.
          if (free && !entries.has(card)) {
            const count = card.querySelector(".cells")?.children.length || 0;
            any = true;
            changes.push([card, false, [], []]);
            total += count;
            shown += count;
            continue;
          }
          const { head, cells, texts } = known(card);
          const fits = cells.map((cell, index) => wanted.every((word) => texts[index].includes(word)) && is_on(cell));
          const count = fits.filter(Boolean).length;
          const empty = cells.length ? count === 0 : !wanted.every((word) => head.includes(word));
          any ||= !empty;
          changes.push([card, empty, cells, fits]);
          total += cells.length;
          shown += count;
        }
        if (group.hidden === any) group.hidden = !any;
        if (!any) continue;
        for (const [card, empty, cells, fits] of changes) {
          if (card.hidden !== empty) card.hidden = empty;
          if (!empty) cells.forEach((cell, index) => { if (cell.hidden === fits[index]) cell.hidden = !fits[index]; });
        }
      }
      report(output, shown, total);
    };
    const soon = later(filter);
    input.addEventListener("input", soon);
    boxes.forEach((box) => box.addEventListener("change", soon));
    // Reads the text of the cells before the first key is pressed.
    input.addEventListener("focus", () => cards.forEach(known), { once: true });

    // The chosen device: by pointer, or with the arrow keys within a card.
    const say = (cell) => {
      const node = cell.closest(".node").querySelector("h3").textContent;
      choice.textContent = [node, ...[...cell.children].map((part) => part.textContent)].join(" · ");
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
    const reach = (card) => {
      const list = card.querySelector(".cells:not([role])");
      if (!list) return;
      list.tabIndex = 0;
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", "Devices of " + card.querySelector("h3").textContent);
      for (const cell of list.children) cell.setAttribute("role", "option");
    };
    const sight = new IntersectionObserver((changes) => {
      for (const change of changes) if (change.isIntersecting) reach(change.target);
    }, { rootMargin: "50%" });
    const watch = () => cards.forEach((card) => sight.observe(card));
    watch();
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
        sight.unobserve(card);
      }
      cards = all(".node", nodes);
      entries = new Map([...entries].filter(([card]) => card.isConnected));
      watch();
      filter();
    });
  }
})();
