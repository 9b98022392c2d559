// what is wider than the page fades where it goes on, so that one sees that it can be moved
const WIDE = ".pst-scrollable-table-container, .bd-content pre, span.math, div.math mjx-container";

function mark(box) {
  box.classList.toggle("goes-on", box.scrollWidth - box.clientWidth - box.scrollLeft > 2);
}

function watch() {
  const sizes = new ResizeObserver((changes) => changes.forEach((change) => mark(change.target)));
  for (const box of document.querySelectorAll(WIDE)) {
    box.addEventListener("scroll", () => mark(box), { passive: true });
    sizes.observe(box);
  }
}

addEventListener("load", () => {
  const formulas = window.MathJax?.startup?.promise;
  formulas ? formulas.then(watch) : watch();
});
