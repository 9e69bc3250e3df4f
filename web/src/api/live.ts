/**
 * The live stream. Events are hints: each makes the objects it names be read
 * again. EventSource reconnects after a broken connection but gives up
 * after an error answer, and it does not notice a silent one; both are handled here.
 */
import { useEffect, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import type { QueryClient } from "@tanstack/react-query";
import type { LiveState } from "./live-context";
import { keys } from "./keys";

export interface Stream {
  readonly readyState: number;
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

export type OpenStream = () => Stream;

const openEventSource: OpenStream = () => new EventSource("/api/v1/events");

/** The server pings every 15 s; after two missed pings and a margin, the connection counts as lost. */
const silence = 40_000;
const firstRetry = 1_000;
const longestRetry = 30_000;

function hintedId(data: string): string | undefined {
  try {
    const hint: unknown = JSON.parse(data);
    if (typeof hint === "object" && hint !== null && "id" in hint && typeof hint.id === "string") return hint.id;
  } catch {
    // A hint that cannot be read is treated as one about everything of its kind.
  }
  return undefined;
}

function refreshTicket(cache: QueryClient, data: string) {
  const id = hintedId(data);
  void cache.invalidateQueries({ queryKey: id ? keys.ticket.one(id) : keys.ticket.all });
  void cache.invalidateQueries({ queryKey: keys.ticket.lists });
  void cache.invalidateQueries({ queryKey: keys.home });
  void cache.invalidateQueries({ queryKey: keys.me });
  void cache.invalidateQueries({ queryKey: keys.access.all });
  // The next step of a resource depends on its open requests; the event names only the ticket.
  void cache.invalidateQueries({ queryKey: keys.rollout.cards });
}

function refreshResource(cache: QueryClient, data: string) {
  const id = hintedId(data);
  void cache.invalidateQueries({ queryKey: id ? keys.resource.one(id) : keys.resource.all });
  void cache.invalidateQueries({ queryKey: id ? keys.rollout.card(id) : keys.rollout.all });
  void cache.invalidateQueries({ queryKey: keys.access.all });
}

function refreshInbox(cache: QueryClient) {
  void cache.invalidateQueries({ queryKey: keys.inbox.all });
  void cache.invalidateQueries({ queryKey: keys.me });
}

const liveKinds = new Set<unknown>([keys.ticket.all, keys.home, keys.me, keys.access.all, keys.rollout.all, keys.resource.all, keys.inbox.all].map((key) => key[0]));

/** Reads again what was read, or is being read, before the stream was open: what changed in between was not announced to this page. */
function refreshEarlier(cache: QueryClient) {
  void cache.invalidateQueries({ predicate: ({ queryKey, state }) => liveKinds.has(queryKey[0]) && (state.dataUpdatedAt > 0 || state.fetchStatus === "fetching") });
}

/** Follows the stream while mounted and returns whether it is connected. */
export function useLiveStream(enabled: boolean, open: OpenStream = openEventSource): LiveState {
  const cache = useQueryClient();
  const [state, setState] = useState<LiveState>("connecting");

  useEffect(() => {
    if (!enabled) return;
    let stream: Stream | undefined;
    let retry: ReturnType<typeof setTimeout> | undefined;
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    let wait = firstRetry;
    let missed = false;
    let opened = false;
    let ended = false;

    const lose = () => {
      missed = true;
      setState("lost");
    };
    const reconnect = () => {
      if (ended) return;
      stream?.close();
      clearTimeout(retry);
      clearTimeout(watchdog);
      retry = setTimeout(connect, wait);
      wait = Math.min(wait * 2, longestRetry);
    };
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => {
        lose();
        reconnect();
      }, silence);
    };
    function connect() {
      const current = open();
      stream = current;
      const listen = (type: string, then: (data: string) => void) =>
        current.addEventListener(type, (event) => {
          if (ended || stream !== current) return;
          then(event.data);
        });
      listen("open", () => {
        wait = firstRetry;
        setState("open");
        alive();
        // Events were missed while the stream was disconnected.
        if (missed) void cache.invalidateQueries();
        else if (!opened) refreshEarlier(cache);
        missed = false;
        opened = true;
      });
      listen("ping", alive);
      listen("ticket", (data) => {
        alive();
        refreshTicket(cache, data);
      });
      listen("resource", (data) => {
        alive();
        refreshResource(cache, data);
      });
      listen("inbox", () => {
        alive();
        refreshInbox(cache);
      });
      listen("error", () => {
        lose();
        if (current.readyState === 2) reconnect();
      });
    }
    connect();
    return () => {
      ended = true;
      clearTimeout(retry);
      clearTimeout(watchdog);
      stream?.close();
    };
  }, [cache, enabled, open]);

  return state;
}
