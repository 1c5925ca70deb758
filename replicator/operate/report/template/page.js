(() => {
  "use strict";
  const root = document.documentElement;
  const drawings = JSON.parse(document.getElementById("charts").textContent);
  const night = matchMedia("(prefers-color-scheme: dark)");
  const config = { displayModeBar: false, responsive: true };

  const fail = (error) => {
    root.dataset.charts = "failed";
    const told = document.getElementById("failure");
    told.hidden = false;
    told.title = String(error);
  };

  const draw = async (theme) => {
    try {
      // all are begun at once: a printer does not wait
      await Promise.all(
        drawings[theme].map(({ name, figure }) => {
          const { data, layout } = structuredClone(figure);
          return Plotly.react(name, data, layout, config);
        }),
      );
      root.dataset.theme = theme;
      root.dataset.charts = "drawn";
    } catch (error) {
      fail(error);
    }
  };

  const theme = () => (night.matches ? "dark" : "light");
  addEventListener("error", (event) => fail(event.message));
  addEventListener("unhandledrejection", (event) => fail(event.reason));
  addEventListener("securitypolicyviolation", (event) => fail(`${event.violatedDirective} ${event.blockedURI}`));
  addEventListener("beforeprint", () => draw("light"));
  addEventListener("afterprint", () => draw(theme()));
  night.addEventListener("change", () => draw(theme()));
  draw(theme());
})();
