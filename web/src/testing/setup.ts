/** What jsdom lacks and the components need. */
import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, beforeEach, vi } from "vitest";
import { startI18n } from "../i18n";

class NoResizeObserver implements ResizeObserver {
  observe() {}
  unobserve() {}
  disconnect() {}
}

Object.defineProperty(window, "matchMedia", {
  configurable: true,
  writable: true,
  value: (query: string) => ({ matches: false, media: query, onchange: null, addEventListener() {}, removeEventListener() {}, addListener() {}, removeListener() {}, dispatchEvent: () => false }),
});
window.ResizeObserver = NoResizeObserver;
window.HTMLElement.prototype.scrollIntoView = () => {};
window.scrollTo = () => {};
// jsdom has no canvas.
window.HTMLCanvasElement.prototype.getContext = () => null;
Object.defineProperty(document, "fonts", { configurable: true, value: { addEventListener() {}, removeEventListener() {} } });

// A busy machine must not fail tests; what never appears still fails after this time.
configure({ asyncUtilTimeout: 10_000 });

await startI18n("en");

beforeEach(() => {
  // A call that a test does not expect must fail, not reach a network.
  vi.stubGlobal("fetch", (request: Request) => Promise.reject(new Error(`unexpected call: ${request.method} ${request.url}`)));
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  localStorage.clear();
  sessionStorage.clear();
});
