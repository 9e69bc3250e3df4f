import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { Message } from "../api/types";
import { messages as chinese } from "../i18n/messages.zh.gen";
import { setMessages } from "../i18n/messages";
import { render } from "./message";

interface Case {
  reason: string;
  message: Message;
  en: string;
  zh: string;
}

/** The cases of the server's renderer: the two have to agree. */
const cases = JSON.parse(readFileSync(join(import.meta.dirname, "../../../internal/message/testdata/cases.json"), "utf8")) as Case[];

const ends: Message = {
  code: "notification.effective.body-until",
  params: { until: "2026-03-02T10:00:00Z" },
  text: "It is in force in every targeted cluster, until 2026-03-02 10:00 UTC.",
};

beforeAll(() => setMessages("zh", chinese));

describe("a message", () => {
  it("has times in the reader's zone and in the form of the language, also in a nested message", () => {
    const nested: Message = { code: "sentence", params: { text: ends }, text: `${ends.text}.` };
    expect(render(ends, "en", "Asia/Shanghai")).toMatch(/^It is in force in every targeted cluster, until Mar 2, 2026, 6:00\sPM\.$/);
    expect(render(nested, "en", "UTC")).toMatch(/until Mar 2, 2026, 10:00\sAM\.\.$/);
    expect(render(ends, "zh", "Asia/Shanghai")).toBe("它已在所有目标集群生效，截止 2026年3月2日 18:00。");
  });

  it("keeps a time that is none", () => {
    expect(render({ ...ends, params: { until: "2026..." } }, "en", "UTC")).toBe("It is in force in every targeted cluster, until 2026....");
  });

  it("keeps the English text without times, which an earlier server may have stored", () => {
    expect(render({ code: "call.login-first", text: "Please log in." }, "en", "UTC")).toBe("Please log in.");
  });

  it.each(cases)("is rendered as the server renders it: $reason", ({ message, en, zh }) => {
    expect(render(message, "en")).toBe(en);
    expect(render(message, "zh")).toBe(zh);
  });
});
