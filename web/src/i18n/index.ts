/** Languages. Both catalogues are complete (a test compares them) and small enough to ship together. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { en } from "./en";
import { zh } from "./zh";

export const languages = ["en", "zh"] as const;
export type Language = (typeof languages)[number];
export const languageNames: Record<Language, string> = { en: "English", zh: "中文" };

const storageKey = "acp-language";

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "translation";
    resources: { translation: typeof en };
  }
}

function isLanguage(value: string | null | undefined): value is Language {
  return languages.some((language) => language === value);
}

/** What was chosen in this browser. */
function chosen(): Language | undefined {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(storageKey);
  } catch {
    // Storage may be blocked; the browser's languages decide then.
  }
  return isLanguage(stored) ? stored : undefined;
}

function preferred(): Language {
  return chosen() ?? navigator.languages.map((tag) => tag.slice(0, 2)).find(isLanguage) ?? "en";
}

export const i18n = i18next.createInstance();

export async function startI18n(language: Language = preferred()): Promise<void> {
  await i18n.use(initReactI18next).init({
    resources: { en: { translation: en }, zh: { translation: zh } },
    lng: language,
    fallbackLng: "en",
    // The library would otherwise advertise on the console.
    showSupportNotice: false,
    // React escapes what it renders.
    interpolation: { escapeValue: false },
  });
  document.documentElement.lang = language;
}

async function speak(language: Language): Promise<void> {
  await i18n.changeLanguage(language);
  document.documentElement.lang = language;
}

/** The language of the person's profile, for a browser in which none was chosen. */
export async function adoptLanguage(language: Language): Promise<void> {
  if (chosen() === undefined && i18n.language !== language) await speak(language);
}

export async function chooseLanguage(language: Language): Promise<void> {
  await speak(language);
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // Not remembered, then; the choice still holds for this page.
  }
}
