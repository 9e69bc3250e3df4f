// Runs before the first paint, as a file because the CSP allows no inline
// script: without it a person with a dark scheme would see a white flash.
(function () {
  var scheme = "auto";
  var language = null;
  try {
    scheme = localStorage.getItem("acp-color-scheme") || "auto";
    language = localStorage.getItem("acp-language");
  } catch (e) {
    // Storage may be blocked; the system's scheme is used then.
  }
  if (scheme !== "light" && scheme !== "dark") {
    scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.setAttribute("data-mantine-color-scheme", scheme);
  if (language) document.documentElement.lang = language;
})();
