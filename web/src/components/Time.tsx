import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { dayAndTime, exactTime, preciseTime, relativeTime } from "../lib/time";
import { useZone } from "../lib/use-zone";

/** tick is the interval of the clock in milliseconds. All relative times of the page share it, so that they change together. */
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

/** RelativeTime shows a relative time, and the exact one with its zone on hover. */
export function RelativeTime({ at }: { at: string }) {
  const { i18n } = useTranslation();
  const current = useNow();
  const zone = useZone();
  const date = new Date(at);
  // An event after the last tick would be shown as in the future.
  const reference = new Date(date.getTime() > current && date.getTime() <= current + tick ? date.getTime() : current);
  return (
    <time dateTime={at} title={exactTime(date, i18n.language, zone)}>
      {relativeTime(date, reference, i18n.language)}
    </time>
  );
}

/** PreciseTime shows the time of day with milliseconds. */
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

/** DayAndTime shows a planned time to the minute. */
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
