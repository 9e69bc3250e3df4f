/** Languages. Both catalogues are complete (a test compares them). English comes with the application; others are loaded when they are used. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { en } from "./en";
import { setMessages } from "./messages";

/** languages contains the languages of the web UI. */
export const languages = ["en", "zh"] as const;
/** Language is a language of the web UI. */
export type Language = (typeof languages)[number];
/** languageNames maps each language to its name in that language. */
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

/** chosen returns the language that was chosen in this browser. */
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

/** i18n is the instance of i18next that all components use. */
export const i18n = i18next.createInstance();

/** load loads the texts of a language. It does nothing if they are there. */
async function load(language: Language): Promise<void> {
  if (i18n.hasResourceBundle(language, "translation")) return;
  const [{ zh }, { messages }] = await Promise.all([import("./zh"), import("./messages.zh.gen")]);
  i18n.addResourceBundle("zh", "translation", zh);
  setMessages("zh", messages);
}

/** startI18n starts in a language, or in English if its texts cannot be loaded. */
export async function startI18n(language: Language = preferred()): Promise<void> {
  await i18n.use(initReactI18next).init({
    resources: { en: { translation: en } },
    lng: "en",
    fallbackLng: "en",
    // The library would otherwise advertise on the console.
    showSupportNotice: false,
    // React escapes what it renders.
    interpolation: { escapeValue: false },
  });
  document.documentElement.lang = "en";
  await speak(language).catch(() => undefined);
}

/** requested is the language that was requested last: an earlier one whose texts arrive later is not used. */
let requested: Language | undefined;

async function speak(language: Language): Promise<void> {
  requested = language;
  await load(language);
  if (requested !== language) return;
  await i18n.changeLanguage(language);
  document.documentElement.lang = language;
}

/** adoptLanguage uses the language of the person's profile in a browser in which none was chosen, if its texts can be loaded. */
export async function adoptLanguage(language: Language): Promise<void> {
  if (chosen() === undefined && i18n.language !== language) await speak(language).catch(() => undefined);
}

/**
 * chooseLanguage uses a language and remembers it. It reports whether its texts could be loaded; if not, the page keeps its language until it is loaded
 * again.
 */
export async function chooseLanguage(language: Language): Promise<boolean> {
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // Not remembered, then; the choice still holds for this page.
  }
  return speak(language).then(
    () => true,
    () => false,
  );
}
