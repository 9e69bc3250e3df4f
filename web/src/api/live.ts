/**
 * The live stream. Events are hints: each makes the objects it names be read
 * again. EventSource reconnects after a broken connection but gives up
 * after an error answer, and it does not detect one that sends nothing any more; both are handled here.
 */
import { useEffect, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import type { InvalidateQueryFilters, QueryClient } from "@tanstack/react-query";
import type { LiveState } from "./live-context";
import { keys } from "./keys";

/** Stream is the part of EventSource that the event stream uses. */
export interface Stream {
  readonly readyState: number;
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}

/** OpenStream opens a new connection of the event stream. Tests pass their own. */
export type OpenStream = () => Stream;

const openEventSource: OpenStream = () => new EventSource("/api/v1/events");

/**
 * silence is the time in milliseconds without an event after which the connection counts as lost: the server pings every 15 s, so it is two missed pings
 * and a margin.
 */
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

/**
 * refresh reads queries again. TanStack Query never repeats a first request that is on its way, although its answer may be older than the change that
 * was announced, so such a query is read again after its answer.
 */
function refresh(cache: QueryClient, filters: InvalidateQueryFilters = {}) {
  for (const query of cache.getQueryCache().findAll(filters)) {
    if (query.state.data !== undefined || query.state.fetchStatus === "idle") continue;
    const again = () => void cache.invalidateQueries({ queryKey: query.queryKey, exact: true });
    void query.promise?.then(again, again);
  }
  void cache.invalidateQueries(filters);
}

function refreshTicket(cache: QueryClient, data: string) {
  const id = hintedId(data);
  refresh(cache, { queryKey: id ? keys.ticket.one(id) : keys.ticket.all });
  refresh(cache, { queryKey: keys.ticket.lists });
  refresh(cache, { queryKey: keys.home });
  refresh(cache, { queryKey: keys.me });
  refresh(cache, { queryKey: keys.access.all });
  // The next step of a resource depends on its open requests; the event names only the ticket.
  refresh(cache, { queryKey: keys.rollout.cards });
}

function refreshResource(cache: QueryClient, data: string) {
  const id = hintedId(data);
  refresh(cache, { queryKey: id ? keys.resource.one(id) : keys.resource.all });
  refresh(cache, { queryKey: id ? keys.rollout.card(id) : keys.rollout.all });
  refresh(cache, { queryKey: keys.access.all });
}

function refreshInbox(cache: QueryClient) {
  refresh(cache, { queryKey: keys.inbox.all });
  refresh(cache, { queryKey: keys.me });
}

const liveKinds = new Set<unknown>([keys.ticket.all, keys.home, keys.me, keys.access.all, keys.rollout.all, keys.resource.all, keys.inbox.all].map((key) => key[0]));

/** refreshEarlier reads again what was read, or is being read, before the stream was open: what changed in between was not announced to this page. */
function refreshEarlier(cache: QueryClient) {
  refresh(cache, { predicate: ({ queryKey, state }) => liveKinds.has(queryKey[0]) && (state.dataUpdatedAt > 0 || state.fetchStatus === "fetching") });
}

/** useLiveStream follows the event stream while it is mounted and enabled, and returns its state. */
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
        if (missed) refresh(cache, );
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
