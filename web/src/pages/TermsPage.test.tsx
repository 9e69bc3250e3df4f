import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { startI18n } from "../i18n";
import { renderPage } from "../testing/render";
import { TermsPage } from "./TermsPage";

it.each(["zh", "en"] as const)("defines each word of the portal: %s", async (language) => {
  await startI18n(language);
  renderPage(<TermsPage />, { path: "/terms", at: "/terms" });
  const words = await screen.findAllByRole("term");
  expect(words.length).toBeGreaterThan(60);
  for (const word of words) {
    expect(word.nextElementSibling?.textContent, word.textContent).toMatch(/[.。]$/);
  }
});
