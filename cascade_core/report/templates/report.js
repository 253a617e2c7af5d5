"use strict";
// Reads a chart under the pointer, or with the arrow keys. Without it the page lacks nothing but this.
for (const group of document.querySelectorAll("[data-charts]")) {
  const figures = [...group.querySelectorAll("figure")];
  if (figures.length) figures[0].tabIndex = 0;
  figures.forEach((figure, place) => {
    const data = JSON.parse(figure.dataset.chart);
    const svg = figure.querySelector(":scope > svg");
    const cursor = figure.querySelector(".cursor");
    const readout = figure.querySelector(".readout");
    let at = -1;
    const say = (i) => {
      if (data.say) return data.say[i];
      const told = Object.entries(data.series).filter(([, row]) => row[i] !== null).map(([name, row]) => (name ? name + " " : "") + row[i]);
      return "step " + data.step[i] + ": " + told.join(", ");
    };
    const show = (i) => {
      at = Math.max(0, Math.min(data.px.length - 1, i));
      cursor.setAttribute("transform", "translate(" + data.px[at] + ")");
      cursor.setAttribute("visibility", "visible");
      readout.textContent = say(at);
    };
    const hide = () => {
      at = -1;
      cursor.setAttribute("visibility", "hidden");
      readout.textContent = "";
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      let near = 0;
      data.px.forEach((px, i) => { if (Math.abs(px - x) < Math.abs(data.px[near] - x)) near = i; });
      show(near);
    });
    svg.addEventListener("pointerleave", hide);
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const chart = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) show(at < 0 ? (step > 0 ? 0 : data.px.length - 1) : at + step);
      else if (event.key === "Escape") hide();
      else if (chart && figures[place + chart]) {
        figure.tabIndex = -1;
        figures[place + chart].tabIndex = 0;
        figures[place + chart].focus();
      } else return;
      event.preventDefault();
    });
  });
}
