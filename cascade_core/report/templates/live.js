// Follows a run: asks now and then whether there are newer figures, and shows them when the reader is not busy.
{
  const EVERY = 2000, QUIET = 4000, KEPT = "cascade-report";
  const state = document.getElementById("live");
  const version = document.documentElement.dataset.version;
  const inputs = () => [...document.querySelectorAll("#browse input, #browse select, .views input")];
  let touched = 0, isNew = false;
  const touch = () => { touched = Date.now(); };
  for (const name of ["pointerdown", "keydown", "wheel", "touchmove", "input"]) addEventListener(name, touch, { passive: true });
  const isBusy = () => {
    const at = document.activeElement;
    return document.hidden || Date.now() - touched < QUIET || (at && at.matches("input[type=search], select")) || document.querySelector("#browse-rows details[open]") || String(getSelection()) !== "";
  };
  const open = () => [...document.querySelectorAll("details")].map((one) => (one.closest("#browse-rows") ? 0 : +one.open));
  const keep = () => {
    const values = inputs().map((one) => [one.id, one.type === "radio" ? one.checked : one.value]);
    sessionStorage.setItem(KEPT, JSON.stringify({ values, open: open() }));
  };
  const restore = () => {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) || "null");
    sessionStorage.removeItem(KEPT);
    if (!kept) return;
    for (const [id, value] of kept.values) {
      const one = document.getElementById(id);
      if (!one) continue;
      if (one.type === "radio") one.checked = value;
      else { one.value = value; one.dispatchEvent(new Event(one.type === "search" ? "input" : "change")); }
    }
    if (kept.open.length === open().length) [...document.querySelectorAll("details")].forEach((one, i) => { if (!one.closest("#browse-rows")) one.open = !!kept.open[i]; });
  };
  const say = (text, look) => { state.lastElementChild.textContent = text; state.className = look; };
  const renew = () => { keep(); location.reload(); };
  const ask = async () => {
    try {
      const told = await (await fetch("version", { cache: "no-store" })).json();
      isNew = told.version !== version;
      if (isNew && !isBusy()) return renew();
      say(isNew ? "newer figures: show them" : told.finished ? "the run is finished" : "following the run", isNew ? "new" : told.finished ? "done" : "on");
    } catch {
      say("no answer: is the command still running?", "off");
    }
    setTimeout(ask, EVERY);
  };
  restore();
  state.addEventListener("click", renew);
  setTimeout(ask, EVERY);
}
