/** Recurring hours of the week: their text, and the values of the form. Pure; the server checks them again. */
import type { DailyPeriod, Weekday, WeeklyHours } from "../api/types";
import { enumeration } from "./list";

/** weekdays are the days of the week in their order. */
export const weekdays: readonly Weekday[] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** periodLimit is the maximum number of periods, as in api/openapi.yaml. */
export const periodLimit = 16;

/** usualPeriod is the period with which the form opens. */
export const usualPeriod: DailyPeriod = { days: ["Mon", "Tue", "Wed", "Thu", "Fri"], from: "09:00", to: "18:00" };

/** firstMonday is a Monday, from which the names of the days are formatted. */
const firstMonday = Date.UTC(2024, 0, 1);

/** dayName returns the short name of a day. */
export function dayName(day: Weekday, language: string): string {
  return new Intl.DateTimeFormat(language, { weekday: "short", timeZone: "UTC" }).format(new Date(firstMonday + weekdays.indexOf(day) * 86_400_000));
}

/** daysText returns days in the order of the week, those that follow one another as a range: `Mon–Fri, Sun`. */
function daysText(days: readonly Weekday[], language: string): string {
  const ranges: Weekday[][] = [];
  weekdays.forEach((day, index) => {
    if (!days.includes(day)) return;
    const last = ranges.at(-1);
    if (last && index > 0 && last.at(-1) === weekdays[index - 1]) last.push(day);
    else ranges.push([day]);
  });
  const names = ranges.map((range) => {
    const [first = "Mon"] = range;
    const last = range.at(-1) ?? first;
    return first === last ? dayName(first, language) : `${dayName(first, language)}–${dayName(last, language)}`;
  });
  return enumeration(names, language);
}

/** hoursText returns hours as text: `Mon–Fri 09:00–18:00 (Europe/Berlin)`. */
export function hoursText(hours: WeeklyHours, language: string): string {
  const periods = hours.periods.map(({ days, from, to }) => `${daysText(days, language)} ${from}–${to}`);
  return `${periods.join("; ")} (${hours.timeZone})`;
}

const time = /^([01]\d|2[0-3]):[0-5]\d$/;

/** isPeriod reports whether a period of the form is complete: `to` may be 24:00, and 00:00 stands for it. */
export const isPeriod = ({ days, from, to }: DailyPeriod): boolean => days.length > 0 && time.test(from) && (time.test(to) || to === "24:00") && from !== to;

/** hoursBody returns the hours of a form for the request. A field for times cannot say 24:00, so a period until 00:00 ends with the day. */
export const hoursBody = (hours: WeeklyHours): WeeklyHours => ({ ...hours, periods: hours.periods.map((period) => ({ ...period, to: period.to === "00:00" ? "24:00" : period.to })) });

/** hoursError returns whether the hours of a form are incomplete. */
export const hoursError = (hours: WeeklyHours | undefined): boolean => hours !== undefined && (hours.periods.length === 0 || !hoursBody(hours).periods.every(isPeriod));

/** isHours reports whether a stored draft contains hours. */
export function isHours(value: unknown): value is WeeklyHours {
  if (typeof value !== "object" || value === null) return false;
  const { timeZone, periods } = value as Record<string, unknown>;
  return typeof timeZone === "string" && Array.isArray(periods) && periods.length <= periodLimit && periods.every((each: Partial<Record<string, unknown>> | null) =>
    each !== null && typeof each.from === "string" && typeof each.to === "string" && Array.isArray(each.days) && each.days.every((day) => weekdays.some((known) => known === day)));
}
