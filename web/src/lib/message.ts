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

/** parameter returns a parameter of a message as text, in the form of its place. Messages in a list are joined by semicolons, or by commas if they are words. */
function parameter(value: unknown, reader: Reader, form?: string): string {
  const { list, parts } = separators[reader.language];
  if (typeof value === "string") return value;
  if (typeof value === "number") return form === "plain" ? String(value) : new Intl.NumberFormat(reader.language).format(value);
  if (Array.isArray(value)) return value.map((each) => parameter(each, reader)).join(value.some(isMessage) && form !== "list" ? parts : list);
  return isMessage(value) ? rendered(value, reader) : "";
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** clock returns a time as day, hour and minute in the reader's zone. A text that is no time, such as one that was shortened, is returned unchanged. */
function clock(text: string, { tag, zone }: Reader): string {
  const at = new Date(rfc3339.test(text) ? text : "");
  return Number.isNaN(at.getTime()) ? text : dayAndTime(at, tag, zone);
}

/** units contains the units of durations, the longest first, with their signs and names. */
const units = [
  { sign: "d", seconds: 86_400, one: "day", en: "days", zh: "天" },
  { sign: "h", seconds: 3_600, one: "hour", en: "hours", zh: "小时" },
  { sign: "m", seconds: 60, one: "minute", en: "minutes", zh: "分钟" },
  { sign: "s", seconds: 1, one: "second", en: "seconds", zh: "秒" },
] as const;

/** duration returns a duration such as 1d 12h or 36h0m0s in words. A text that is none, such as one that was shortened, is returned unchanged. */
function duration(text: string, { language }: Reader): string {
  if (!/^(\d{1,9}[dhms] ?)+$/.test(text)) return text;
  let rest = 0;
  for (const [, count, sign] of text.matchAll(/(\d+)([dhms])/g)) rest += Number(count) * (units.find((unit) => unit.sign === sign)?.seconds ?? 0);
  const parts: string[] = [];
  for (const unit of units) {
    const count = Math.floor(rest / unit.seconds);
    rest -= count * unit.seconds;
    if (count > 0) parts.push(`${new Intl.NumberFormat(language).format(count)} ${language === "en" && count === 1 ? unit.one : unit[language]}`);
  }
  return parts.length > 0 ? parts.join(" ") : text;
}

/** differs reports whether the English text for a reader differs from that of the server: it has a time, a duration, or a number with separators. */
function differs(message: Message): boolean {
  const text = messageText(message.code, "en");
  if (text?.includes(":time}") || text?.includes(":duration}")) return true;
  return Object.entries(message.params ?? {}).some(([name, value]) => {
    if (typeof value === "number" && Math.abs(value) >= 1_000 && text?.includes(`{${name}}`)) return true;
    return [value].flat().some((each) => isMessage(each) && differs(each));
  });
}

/**
 * rendered returns the text of a message. It is the English text that came with the message if its code is unknown here: a text of another program
 * (`verbatim`), or a code of a newer server. In English it is so for every message in which nothing differs for readers, as times do, which are in UTC in that text.
 */
function rendered(message: Message, reader: Reader): string {
  const template = messageText(message.code, reader.language);
  if (template === undefined || (reader.language === "en" && !differs(message))) return message.text;
  return template.replace(/\{(\w+)(?::(sentence|list|time|plain|duration))?\}/g, (_, name: string, form: string | undefined) => {
    const text = parameter(message.params?.[name], reader, form);
    if (form === "time") return clock(text, reader);
    if (form === "duration") return duration(text, reader);
    return form === "sentence" ? capitalized(text) : text;
  });
}

/** render returns the text of a message. `tag` is the language of the page, such as zh, and `zone` the reader's time zone, by default that of the browser. */
export function render(message: Message, tag: string, zone?: string): string {
  return rendered(message, { tag, language: languageOf(tag), zone });
}
