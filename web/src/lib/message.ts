/** Messages of the server in the person's language, rendered from the catalogue that the server has, too. Pure. */
import type { Message } from "../api/types";
import { messageText } from "../i18n/messages";
import { dayAndTime } from "./time";

/** Language is a language in which messages are rendered. */
export type Language = "en" | "zh";

const separators: Record<Language, { list: string; parts: string }> = { en: { list: ", ", parts: "; " }, zh: { list: "、", parts: "；" } };

const languageOf = (tag: string): Language => (tag.startsWith("zh") ? "zh" : "en");

const isMessage = (value: unknown): value is Message => typeof value === "object" && value !== null && "code" in value && typeof value.code === "string";

interface Reader {
  tag: string;
  language: Language;
  zone: string | undefined;
}

/** parameter returns a parameter of a message as text. Messages in a list are joined by semicolons, or by commas if they are words. */
function parameter(value: unknown, reader: Reader, words = false): string {
  const { list, parts } = separators[reader.language];
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map((each) => parameter(each, reader)).join(value.some(isMessage) && !words ? parts : list);
  return isMessage(value) ? rendered(value, reader) : "";
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** clock returns a time as day, hour and minute in the reader's zone. A text that is no time, such as one that was shortened, is returned unchanged. */
function clock(text: string, { tag, zone }: Reader): string {
  const at = new Date(rfc3339.test(text) ? text : "");
  return Number.isNaN(at.getTime()) ? text : dayAndTime(at, tag, zone);
}

/** hasTime reports whether the text of a message, or of one among its parameters, has a time. */
function hasTime(message: Message): boolean {
  if (messageText(message.code, "en")?.includes(":time}")) return true;
  return Object.values(message.params ?? {}).flat().some((value) => isMessage(value) && hasTime(value));
}

/**
 * rendered returns the text of a message. It is the English text that came with the message if its code is unknown here: a text of another program
 * (`verbatim`), or a code of a newer server. In English it is so for every message without times, which are in UTC in that text.
 */
function rendered(message: Message, reader: Reader): string {
  const template = messageText(message.code, reader.language);
  if (template === undefined || (reader.language === "en" && !hasTime(message))) return message.text;
  return template.replace(/\{(\w+)(?::(sentence|list|time))?\}/g, (_, name: string, form: string | undefined) => {
    const text = parameter(message.params?.[name], reader, form === "list");
    if (form === "time") return clock(text, reader);
    return form === "sentence" ? capitalized(text) : text;
  });
}

/** render returns the text of a message. `tag` is the language of the page, such as zh, and `zone` the reader's time zone, by default that of the browser. */
export function render(message: Message, tag: string, zone?: string): string {
  return rendered(message, { tag, language: languageOf(tag), zone });
}
