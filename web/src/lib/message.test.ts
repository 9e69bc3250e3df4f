import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Message } from "../api/types";
import { render } from "./message";

interface Case {
  reason: string;
  message: Message;
  en: string;
  zh: string;
}

/** The cases of the server's renderer: the two have to agree. */
const cases = JSON.parse(readFileSync(join(import.meta.dirname, "../../../internal/message/testdata/cases.json"), "utf8")) as Case[];

describe("a message", () => {
  it.each(cases)("is rendered as the server renders it: $reason", ({ message, en, zh }) => {
    expect(render(message, "en")).toBe(en);
    expect(render(message, "zh")).toBe(zh);
  });
});
