"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const cards = [...document.querySelectorAll(".card")].map((element) => ({
    element,
    overlay: element.querySelector(".overlay"),
    samples: [...element.querySelectorAll(".sample")],
  }));
  const marksOf = (card, id) => card.overlay.querySelector(`[data-sample="${CSS.escape(id)}"]`);
  const plain = (text) => text.normalize("NFC").toLocaleLowerCase("es");

  function checked(name) {
    const boxes = [...form.querySelectorAll(`input[name="${name}"]`)];
    if (!boxes.length) return null;
    return new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  }

  function apply() {
    const wanted = { route: checked("route"), status: checked("status"), kind: checked("kind") };
    const text = plain(form.elements.text.value.trim());
    const app = form.elements.app.value;
    const all = [...form.querySelectorAll("fieldset input[value]:not([name^=show])")];
    const open = all.every((box) => box.checked || box.type === "search") && !text;
    let samples = 0;
    let screens = 0;
    for (const card of cards) {
      let shown = 0;
      for (const sample of card.samples) {
        const fits = Object.entries(wanted).every(([key, set]) => !set || set.has(sample.dataset[key]))
          && (!text || plain(sample.querySelector(".instruction").textContent).includes(text));
        sample.hidden = !fits;
        marksOf(card, sample.dataset.sample)?.toggleAttribute("hidden", !fits);
        shown += fits;
      }
      const visible = (app === "*" || card.element.dataset.app === app)
        && (shown > 0 || (open && !card.samples.length));
      card.element.hidden = !visible;
      if (visible) { samples += shown; screens += 1; }
    }
    document.body.classList.toggle("show-truth", form.elements["show-truth"].checked);
    document.body.classList.toggle("show-candidates", form.elements["show-candidates"].checked);
    document.getElementById("shown").textContent = `${samples} samples on ${screens} screens`;
    document.getElementById("none").hidden = screens > 0;
  }

  function focus(card, id) {
    for (const mark of card.overlay.querySelectorAll(".marks")) {
      mark.classList.toggle("active", mark.dataset.sample === id);
    }
    card.overlay.classList.toggle("focus", Boolean(id));
  }

  function restore(card) {
    focus(card, card.samples.find((sample) => sample.open)?.dataset.sample ?? null);
  }

  for (const card of cards) {
    for (const sample of card.samples) {
      sample.addEventListener("mouseenter", () => focus(card, sample.dataset.sample));
      sample.addEventListener("mouseleave", () => restore(card));
      sample.addEventListener("toggle", () => {
        if (sample.open) for (const other of card.samples) if (other !== sample) other.open = false;
        restore(card);
      });
      marksOf(card, sample.dataset.sample)?.addEventListener("click", () => {
        sample.open = true;
        sample.scrollIntoView({ block: "nearest" });
      });
    }
    card.element.querySelector(".zoom")?.addEventListener("click", () => {
      const dialog = document.getElementById("zoomed");
      const frame = dialog.querySelector(".frame");
      frame.className = card.element.querySelector(".shot").classList.contains("tall") ? "frame tall" : "frame";
      frame.replaceChildren(...[...card.element.querySelector(".frame").children].map((n) => n.cloneNode(true)));
      dialog.showModal();
    });
  }
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
})();
