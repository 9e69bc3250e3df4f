/** Messages of the server in the person's language, rendered from the catalogue that the server has, too. Pure. */
import type { Message } from "../api/types";
import { messages } from "../i18n/messages.gen";

export type Language = "en" | "zh";

const separators: Record<Language, { list: string; parts: string }> = { en: { list: ", ", parts: "; " }, zh: { list: "、", parts: "；" } };

const languageOf = (tag: string): Language => (tag.startsWith("zh") ? "zh" : "en");

const isMessage = (value: unknown): value is Message => typeof value === "object" && value !== null && "code" in value && typeof value.code === "string";

/** Messages are joined by semicolons, or by commas if they are words. */
function parameter(value: unknown, language: Language, words = false): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map((each) => parameter(each, language)).join(value.some(isMessage) && !words ? separators[language].parts : separators[language].list);
  return isMessage(value) ? rendered(value, language) : "";
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns the English text of a message if its code is unknown here: a text of another program (`verbatim`), or a code of a newer server. */
function rendered(message: Message, language: Language): string {
  const texts = messages[message.code];
  if (!texts || language === "en") return message.text;
  return texts[language].replace(/\{(\w+)(?::(sentence|list))?\}/g, (_, name: string, form: string | undefined) => {
    const text = parameter(message.params?.[name], language, form === "list");
    return form === "sentence" ? capitalized(text) : text;
  });
}

/** The text of a message; `tag` is the language of the page, such as zh. */
export function render(message: Message, tag: string): string {
  return rendered(message, languageOf(tag));
}
