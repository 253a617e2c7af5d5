// Searches and filters all responses of the page. Their text is untrusted: it is written as text, never as markup.
{
  const PAGE = 20;
  const section = document.getElementById("browse");
  const source = document.getElementById("browse-data");
  const data = source ? JSON.parse(source.textContent) : { tasks: [] };
  const field = (name) => document.getElementById("browse-" + name);
  const make = (tag, look, ...inside) => {
    const made = document.createElement(tag);
    if (look) made.className = look;
    made.append(...inside.filter((one) => one !== ""));
    return made;
  };
  const whole = (text) => (Array.isArray(text) ? text[0] + "\n" + text[2] : text || "");
  const domain = (task) => data.benchmarks[task.b].split("/")[0];
  let words = [], found = [], page = 0, pattern = null;

  // --- which tasks ---

  // "unchanged" is one filter: it stands for both kinds of it.
  const kind = (task) => data.kinds[task.k].split(",")[0];
  const haystack = (task) => {
    task.all ??= [task.id, task.s, whole(task.a), ...(task.q || []).map((turn) => whole(turn[1])), ...task.c.flatMap((card) => [whole(card.p), whole(card.r), card.n])]
      .filter(Boolean).join("\n").toLowerCase();
    return task.all;
  };
  const FILTERS = { benchmark: (task) => data.benchmarks[task.b], kind, domain, source: (task) => task.s || "" };
  const fits = (task) =>
    Object.entries(FILTERS).every(([name, of]) => !field(name).value || of(task) === field(name).value.slice(1)) &&
    words.every((word) => haystack(task).includes(word));
  // Values begin with "=", so that one that is empty is told from "any".
  const offer = (name, values) => {
    for (const value of values) field(name).append(new Option(value || "none", "=" + value));
    field(name).closest("label").hidden = values.length < 2;
  };

  // --- how they look ---

  // The words that were searched for are marked where they stand.
  const marked = (text) => {
    if (!pattern) return [text];
    return text.split(pattern).map((part, i) => (i % 2 ? make("mark", "", part) : part));
  };
  const clipped = (text) =>
    Array.isArray(text)
      ? [...marked(text[0]), make("span", "cut", "… " + text[1].toLocaleString("en") + " characters left out …"), ...marked(text[2])]
      : marked(text || "");
  const slug = (verdict) => "v-" + verdict.replace(" ", "-");
  const response = (card) => {
    const [verdict, sign] = data.verdicts[card.v];
    const badge = make("span", "badge", sign + " " + verdict + (card.x ? " " + card.x : ""));
    const empty = make("span", "empty", verdict === "absent" ? "no such sample" : "empty response");
    const said = make("pre", "", ...(card.p ? [make("span", "prefill", ...marked(card.p))] : []), ...(card.r ? clipped(card.r) : [empty]));
    const facts = [card.t === undefined ? "" : card.t + " tokens", card.cut ? "cut at the length limit" : "", card.o || ""].filter(Boolean);
    return make("li", slug(verdict), make("h4", "", data.stages[card.s] + " ", badge), said,
      card.n ? make("p", "note", ...marked(card.n)) : "", make("p", "fine", facts.join(" · ")));
  };
  const fill = (row, task) => {
    const turns = (task.q || []).map(([role, text]) => make("div", "turn", role ? make("small", "", role) : "", make("pre", "", ...clipped(text))));
    const about = make("p", "fine", "task ", ...marked(task.id), " · " + data.benchmarks[task.b], ...(task.s ? [" · from ", ...marked(task.s)] : []),
      ...(task.a ? [" · expected ", make("code", "", ...clipped(task.a))] : []));
    const scroll = make("div", "scroll", make("ol", "cards", ...task.c.map(response)));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Responses to task " + task.id);
    row.append(make("div", "task", ...turns, about), scroll);
  };
  const line = (task) => {
    const strip = make("span", "strip", ...task.c.map((card) => {
      const [verdict, sign] = data.verdicts[card.v];
      const one = make("i", slug(verdict), sign);
      one.title = data.stages[card.s] + ": " + verdict;
      return one;
    }));
    strip.setAttribute("aria-label", task.c.map((card) => data.stages[card.s] + " " + data.verdicts[card.v][0]).join(", "));
    strip.setAttribute("role", "img");
    const turns = task.q || [];
    const title = turns.length ? whole(turns[turns.length - 1][1]).slice(0, 400).replace(/\s+/g, " ").trim().slice(0, 120) : task.id;
    const row = make("details", "example", make("summary", "", strip, make("span", "kind", data.kinds[task.k]), make("span", "title", ...marked(title))));
    // What is closed is not built: a page of tasks appears at once, however long their responses.
    row.addEventListener("toggle", () => { if (row.open && row.children.length === 1) fill(row, task); });
    return row;
  };
  const show = (to) => {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.max(0, Math.min(pages - 1, to));
    field("rows").replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(line));
    field("place").textContent = "page " + (page + 1) + " of " + pages;
    field("before").disabled = page === 0;
    field("after").disabled = page === pages - 1;
    field("pages").hidden = pages < 2;
  };
  const search = () => {
    words = field("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\\/-]/g, "\\$&"));
    pattern = words.length ? new RegExp("(" + escaped.join("|") + ")", "i") : null;
    found = data.tasks.filter(fits);
    field("count").textContent = found.length.toLocaleString("en") + " of " + data.tasks.length.toLocaleString("en") + " tasks";
    field("none").hidden = found.length > 0;
    show(0);
  };

  // --- keys ---

  const rows = () => [...field("rows").children];
  const here = () => rows().findIndex((row) => row.contains(document.activeElement));
  const go = (to) => {
    const row = rows()[to];
    row.firstChild.focus();
    row.firstChild.scrollIntoView({ block: "nearest" });
  };
  const step = (way) => {
    const at = here(), to = at < 0 ? (way > 0 ? 0 : rows().length - 1) : at + way;
    if (rows()[to]) return go(to);
    const before = page;
    if (at >= 0) show(page + way);
    if (page !== before) go(way > 0 ? 0 : rows().length - 1);
  };
  const leave = () => {
    const row = rows()[here()];
    if (document.activeElement === field("text")) {
      if (field("text").value) { field("text").value = ""; search(); } else field("text").blur();
    } else if (row && row.open) { row.open = false; row.firstChild.focus(); }
    else if (row) document.activeElement.blur();
    else return false;
    return true;
  };
  const key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (event.key === "Escape") { if (!leave()) return; }
    else if (typing) {
      if (event.key !== "Enter" || event.target !== field("text") || !rows().length) return;
      go(0);
    } else if (event.key === "/") { section.scrollIntoView({ block: "start" }); field("text").focus({ preventScroll: true }); field("text").select(); }
    else if (event.key === "j" || event.key === "k") { if (!rows().length) return; step(event.key === "j" ? 1 : -1); }
    else return;
    event.preventDefault();
  };

  if (data.tasks.length) {
    const values = (of) => [...new Set(data.tasks.map(of))];
    offer("benchmark", data.benchmarks);
    offer("domain", values(domain));
    offer("source", values(FILTERS.source).sort());
    offer("kind", values(kind).sort((a, b) => data.kinds.findIndex((one) => one.startsWith(a)) - data.kinds.findIndex((one) => one.startsWith(b))));
    let waiting = 0;
    field("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
    for (const name of Object.keys(FILTERS)) field(name).addEventListener("change", search);
    field("before").addEventListener("click", () => { show(page - 1); section.scrollIntoView({ block: "start" }); });
    field("after").addEventListener("click", () => { show(page + 1); section.scrollIntoView({ block: "start" }); });
    document.addEventListener("keydown", key);
    search();
    for (const one of document.querySelectorAll("[data-scripted]")) one.hidden = false;
  }
}

// On paper everything is open, and closed again afterwards.
{
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    opened = [];
  });
}
