import { afterEach, describe, expect, it, vi } from "vitest";
import { adoptLanguage, chooseLanguage, i18n } from ".";

afterEach(() => chooseLanguage("en"));

describe("a language", () => {
  it("is not used when its texts arrive after another choice", async () => {
    await Promise.all([adoptLanguage("zh"), chooseLanguage("en")]);
    expect(i18n.language).toBe("en");
    expect(document.documentElement.lang).toBe("en");
  });

  it("is used when its texts are there", async () => {
    expect(await chooseLanguage("zh")).toBe(true);
    expect(i18n.t("header.language")).not.toBe("Language");
    expect(document.documentElement.lang).toBe("zh");
  });

  it("that cannot be loaded leaves the page as it is", async () => {
    vi.resetModules();
    vi.doMock("./messages.zh.gen", () => {
      throw new Error("the file is gone");
    });
    const fresh = await import(".");
    await fresh.startI18n("en");
    expect(await fresh.chooseLanguage("zh")).toBe(false);
    expect(fresh.i18n.language).toBe("en");
    vi.doUnmock("./messages.zh.gen");
  });
});
