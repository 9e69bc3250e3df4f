/** Formats times in the person's zone and language. Pure: the current time is an argument. */

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  // Weeks and months are shown in days, so that the end of a grant is exact.
  ["year", 365 * 86_400_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

/** relativeTime returns the distance between an instant and now in words, such as `3 minutes ago`. */
export function relativeTime(at: Date, now: Date, language: string): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const distance = at.getTime() - now.getTime();
  for (const [unit, length] of steps) {
    if (Math.abs(distance) >= length) return format.format(Math.trunc(distance / length), unit);
  }
  return format.format(0, "second");
}

/** exactTime returns an instant with seconds and the name of the time zone, which defaults to the browser's. */
export function exactTime(at: Date, language: string, timeZone?: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long", timeZone }).format(at);
}

/** dayAndTime returns an instant as day, hour and minute in the time zone, which defaults to the browser's. */
export function dayAndTime(at: Date, language: string, timeZone?: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short", timeZone }).format(at);
}

/** preciseTime returns the time of day with milliseconds: a change reaches the fleet within fractions of a second. */
export function preciseTime(at: Date, language: string, timeZone?: string): string {
  return new Intl.DateTimeFormat(language, { timeZone, hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" }).format(at);
}

/** elapsed returns how long something took: `87 ms`, `1.24 s`, `3 min`. */
export function elapsed(milliseconds: number, language: string): string {
  const unit = (value: number, name: string, digits: number) =>
    new Intl.NumberFormat(language, { style: "unit", unit: name, unitDisplay: "short", maximumFractionDigits: digits }).format(value);
  if (milliseconds < 1_000) return unit(Math.round(milliseconds), "millisecond", 0);
  if (milliseconds < 120_000) return unit(milliseconds / 1_000, "second", 2);
  if (milliseconds < 7_200_000) return unit(milliseconds / 60_000, "minute", 0);
  return unit(milliseconds / 3_600_000, "hour", 1);
}

/** secondsPerHour is the number of seconds of an hour. */
export const secondsPerHour = 3_600;
/** secondsPerDay is the number of seconds of a day of 24 hours. */
export const secondsPerDay = 86_400;

/** wholeUnits returns a duration in the largest unit that expresses it without a fraction, at least in minutes. */
export function wholeUnits(seconds: number): { unit: "days" | "hours" | "minutes"; count: number } {
  if (seconds % secondsPerDay === 0) return { unit: "days", count: seconds / secondsPerDay };
  if (seconds % secondsPerHour === 0) return { unit: "hours", count: seconds / secondsPerHour };
  return { unit: "minutes", count: Math.round(seconds / 60) };
}
