/** Times of day in a named time zone: what people type, and the instant that it means. Pure. */

/** browserZone returns the browser's time zone, for people who did not choose one. */
export const browserZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone;

/** isZone reports whether the browser supports a time zone of this name. */
export function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone !== "";
  } catch {
    return false;
  }
}

const pattern = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})$/;

function parts(at: Date, zone: string): number[] {
  const format = new Intl.DateTimeFormat("en-CA", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const value = new Map(format.formatToParts(at).map((part) => [part.type, Number(part.value)]));
  return (["year", "month", "day", "hour", "minute"] as const).map((part) => value.get(part) ?? 0);
}

/** wallTime returns an instant as `2026-11-21T09:30` in the zone, as a field for date and time has it. */
export function wallTime(at: Date, zone: string): string {
  const [year = 0, ...rest] = parts(at, zone);
  const [month, day, hour, minute] = rest.map((each) => String(each).padStart(2, "0"));
  return `${String(year).padStart(4, "0")}-${month}-${day}T${hour}:${minute}`;
}

const asUTC = ([year = 0, month = 1, day = 1, hour = 0, minute = 0]: number[]): number => Date.UTC(year, month - 1, day, hour, minute);

/**
 * instantOf returns the instant of a wall time, and undefined if it is none. For a time that the clocks skip it returns the one after the gap, and for
 * one that they pass twice the first.
 */
export function instantOf(wall: string, zone: string): Date | undefined {
  const match = pattern.exec(wall);
  if (!match) return undefined;
  const wanted = asUTC(match.slice(1).map(Number));
  if (Number.isNaN(wanted)) return undefined;
  const offset = (at: number): number => asUTC(parts(new Date(at), zone)) - at;
  // The offset before and the one after a change of clocks; the instant is right if it reads as what was typed.
  const day = 86_400_000;
  const [before, after] = [wanted - offset(wanted - day), wanted - offset(wanted + day)];
  const fits = [before, after].filter((at) => at + offset(at) === wanted);
  return new Date(fits.length > 0 ? Math.min(...fits) : before);
}
