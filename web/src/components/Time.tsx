import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { dayAndTime, exactTime, preciseTime, relativeTime } from "../lib/time";
import { useZone } from "../lib/use-zone";

/** One clock for all relative times of the page, so that they change together. */
const tick = 15_000;
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now();
    timer = setInterval(() => {
      now = Date.now();
      listeners.forEach((each) => each());
    }, tick);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** A relative time; the exact one, with its zone, on hover. */
export function RelativeTime({ at }: { at: string }) {
  const { i18n } = useTranslation();
  const current = useNow();
  const zone = useZone();
  const date = new Date(at);
  // What happened after the last tick would read as the future.
  const reference = new Date(date.getTime() > current && date.getTime() <= current + tick ? date.getTime() : current);
  return (
    <time dateTime={at} title={exactTime(date, i18n.language, zone)}>
      {relativeTime(date, reference, i18n.language)}
    </time>
  );
}

/** Time of day to the millisecond. */
export function PreciseTime({ at }: { at: string }) {
  const { i18n } = useTranslation();
  const zone = useZone();
  const date = new Date(at);
  return (
    <time dateTime={at} title={exactTime(date, i18n.language, zone)}>
      {preciseTime(date, i18n.language, zone)}
    </time>
  );
}

/** The day and the minute, for what is planned. */
export function DayAndTime({ at }: { at: string }) {
  const { i18n } = useTranslation();
  const zone = useZone();
  const date = new Date(at);
  return (
    <time dateTime={at} title={exactTime(date, i18n.language, zone)}>
      {dayAndTime(date, i18n.language, zone)}
    </time>
  );
}
