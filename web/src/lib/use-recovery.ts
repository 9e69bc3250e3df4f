import { useEffect, useRef, useState } from "react";
import { useLive } from "../api/live-context";
import { portalAnswers, reloadWasTried, rememberReload } from "./page-load";

const firstWait = 1_000;
const longestWait = 15_000;
/** timeout is the limit of one attempt in milliseconds: a connection that hangs counts as unreachable. */
const timeout = 10_000;

/**
 * Recovery is the state of the recovery: `waiting` for the portal, or `gone` if the portal answers and the page's code still does not load, so that
 * waiting will not help.
 */
export type Recovery = "waiting" | "gone";

/** useRecovery probes the portal until it answers, and then reloads the page. `tryNow` probes at once. */
export function useRecovery(reload: () => void): { state: Recovery; tryNow: () => void } {
  const [state, setState] = useState<Recovery>("waiting");
  const live = useLive();
  const probe = useRef<() => void>(() => undefined);
  const leave = useRef(reload);
  useEffect(() => {
    leave.current = reload;
  }, [reload]);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running: AbortController | undefined;
    let wait = firstWait;
    let wasAway = false;

    const ask = async () => {
      clearTimeout(timer);
      running?.abort();
      const asked = new AbortController();
      running = asked;
      const limit = setTimeout(() => asked.abort(), timeout);
      const answers = await portalAnswers(asked.signal);
      clearTimeout(limit);
      // A later question, or the end of this view, replaced this one.
      if (running !== asked) return;
      if (!answers) {
        wasAway = true;
        timer = setTimeout(() => void ask(), wait);
        wait = Math.min(wait * 2, longestWait);
        return;
      }
      // If the portal was unreachable before, a reload is expected to help. If not, the file is missing, and one reload is tried.
      if (!wasAway && reloadWasTried()) {
        setState("gone");
        return;
      }
      if (!wasAway) rememberReload();
      leave.current();
    };
    const now = () => {
      wait = firstWait;
      void ask();
    };
    probe.current = now;
    window.addEventListener("online", now);
    now();
    return () => {
      window.removeEventListener("online", now);
      clearTimeout(timer);
      const last = running;
      running = undefined;
      last?.abort();
    };
  }, []);

  // The event stream usually reconnects first; use it as an early signal.
  const before = useRef(live);
  useEffect(() => {
    if (live === "open" && before.current !== "open") probe.current();
    before.current = live;
  }, [live]);

  return { state, tryNow: () => probe.current() };
}
