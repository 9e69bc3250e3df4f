import { act, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import { EmbedContext } from "../lib/embed";
import { renderPage } from "../testing/render";
import { Section } from "./Page";
import { SectionIndex } from "./SectionIndex";

const anchors = ["access", "tried", "evidence", "modes", "tickets"];

/** Five sections. The third appears when its data is there. */
function Long({ late = false }: { late?: boolean }) {
  const [loaded, setLoaded] = useState(!late);
  return (
    <SectionIndex>
      <button type="button" onClick={() => setLoaded(true)}>load</button>
      {anchors.filter((anchor) => loaded || anchor !== "evidence").map((anchor) => (
        <Section key={anchor} anchor={anchor} title={`The ${anchor}`}>
          text
        </Section>
      ))}
      <Section title="Without an anchor">text</Section>
    </SectionIndex>
  );
}

const links = () => within(screen.getByTestId("section-index")).getAllByRole("link");
const current = () => links().filter((link) => link.getAttribute("aria-current") === "location").map((link) => link.textContent);

/** scrollTo scrolls a page whose sections are 400 pixels high each, in a window of 800 pixels. */
function scrollTo(y: number) {
  vi.spyOn(window, "scrollY", "get").mockReturnValue(y);
  vi.spyOn(document.documentElement, "clientHeight", "get").mockReturnValue(800);
  vi.spyOn(document.documentElement, "scrollHeight", "get").mockReturnValue(anchors.length * 400);
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
    return { top: anchors.indexOf(this.id) * 400 - y } as DOMRect;
  });
  act(() => void window.dispatchEvent(new Event("scroll")));
}

describe("the index of a page", () => {
  it("links the sections that have an anchor, in the order of the page, also those that appear later", async () => {
    renderPage(<Long late />, { path: "/r", at: "/r?past=2026" });
    expect(links().map((link) => link.textContent)).toEqual(["The access", "The tried", "The modes", "The tickets"]);
    await userEvent.click(screen.getByText("load"));
    expect(links().map((link) => link.textContent)).toEqual(anchors.map((anchor) => `The ${anchor}`));
    expect(links()[2]).toHaveAttribute("href", "/r?past=2026#evidence");
  });

  it("is absent from a page of three sections, and from the frame of another site", () => {
    const three = anchors.slice(2).map((anchor) => <Section key={anchor} anchor={anchor} title={anchor}>text</Section>);
    const { unmount } = renderPage(<SectionIndex>{three}</SectionIndex>, { path: "/", at: "/" });
    expect(screen.queryByTestId("section-index")).toBeNull();
    unmount();
    renderPage(<EmbedContext value><Long /></EmbedContext>, { path: "/", at: "/" });
    expect(screen.getByText("The tickets")).toBeVisible();
    expect(screen.queryByTestId("section-index")).toBeNull();
  });

  it("marks the section that is read", () => {
    renderPage(<Long />, { path: "/", at: "/" });
    scrollTo(0);
    expect(current()).toEqual(["The access"]);
    scrollTo(700);
    expect(current()).toEqual(["The evidence"]);
    scrollTo(1200);
    expect(current()).toEqual(["The tickets"]);
  });

  it("leads the keyboard to the section, and marks it until the reader scrolls on", async () => {
    renderPage(<Long />, { path: "/", at: "/" });
    scrollTo(0);
    const modes = screen.getByRole("link", { name: "The modes" });
    modes.focus();
    await userEvent.keyboard("{Enter}");
    expect(screen.getByRole("heading", { name: "The modes" })).toHaveFocus();
    // The page ends here: the section cannot get to the top of the window.
    scrollTo(1200);
    expect(current()).toEqual(["The modes"]);
    scrollTo(300);
    expect(current()).toEqual(["The tried"]);
  });
});
