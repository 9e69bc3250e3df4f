import { QueryClient, QueryClientProvider, QueryObserver } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { keys as keyOf } from "./keys";
import { useLiveStream } from "./live";
import type { Stream } from "./live";

class FakeStream implements Stream {
  readyState = 0;
  closed = false;
  private readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void) {
    this.listeners.set(type, listener);
  }
  close() {
    this.closed = true;
  }
  emit(type: string, data = "") {
    act(() => this.listeners.get(type)?.(new MessageEvent(type, { data })));
  }
}

function start(enabled = true) {
  const streams: FakeStream[] = [];
  const open = () => {
    const stream = new FakeStream();
    streams.push(stream);
    return stream;
  };
  const cache = new QueryClient();
  const refreshed = vi.spyOn(cache, "invalidateQueries").mockResolvedValue();
  const wrapper = ({ children }: { children: ReactNode }) => <QueryClientProvider client={cache}>{children}</QueryClientProvider>;
  const hook = renderHook(() => useLiveStream(enabled, open), { wrapper });
  const keys = () => refreshed.mock.calls.filter(([filter]) => !filter?.predicate).map(([filter]) => filter?.queryKey);
  const at = (index: number): FakeStream => {
    const stream = streams[index];
    if (!stream) throw new Error(`stream ${index} was not opened`);
    return stream;
  };
  return { ...hook, streams, at, keys, refreshed, cache };
}

describe("the live stream", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is not opened before the person is known", () => {
    expect(start(false).streams).toHaveLength(0);
  });

  it("is open when it answers, and refreshes what a hint names", () => {
    const { result, at, keys } = start();
    expect(result.current).toBe("connecting");
    at(0).emit("open");
    expect(result.current).toBe("open");
    at(0).emit("ticket", '{"id":"T-7","state":"effective","version":4}');
    expect(keys()).toEqual([["ticket", "T-7"], ["ticket", "list"], ["home"], ["me"], ["access"], ["rollout", "card"]]);
    at(0).emit("resource", '{"id":"bobs-cluster"}');
    expect(keys().slice(6)).toEqual([["resource", "bobs-cluster"], ["rollout", "card", "bobs-cluster"], ["access"]]);
    at(0).emit("inbox", "{}");
    expect(keys().slice(9)).toEqual([["inbox"], ["me"]]);
  });

  it("refreshes all tickets for a hint that cannot be read", () => {
    const { at, keys } = start();
    at(0).emit("open");
    at(0).emit("ticket", "not json");
    expect(keys()[0]).toEqual(["ticket"]);
  });

  it("says when it is lost, and refreshes everything when it is back", () => {
    const { result, at, refreshed } = start();
    at(0).emit("open");
    at(0).emit("error");
    expect(result.current).toBe("lost");
    at(0).emit("open");
    expect(result.current).toBe("open");
    expect(refreshed.mock.calls.slice(1), "the first call is for what was read before").toEqual([[{}]]);
  });

  it("reads again on its first answer what was read before it, and nothing else", async () => {
    const { at, cache, refreshed } = start();
    refreshed.mockRestore();
    const reads: string[] = [];
    const read = (...queryKey: string[]) =>
      new QueryObserver(cache, {
        queryKey,
        queryFn: () => {
          reads.push(queryKey.join());
          return queryKey.length;
        },
        staleTime: Infinity,
      }).subscribe(() => undefined);
    const ends = [read("ticket", "T-7"), read("version")];
    await act(() => vi.advanceTimersByTimeAsync(10));
    expect(reads).toEqual(["ticket,T-7", "version"]);
    at(0).emit("open");
    await act(() => vi.advanceTimersByTimeAsync(10));
    expect(reads).toEqual(["ticket,T-7", "version", "ticket,T-7"]);
    at(0).emit("open");
    await act(() => vi.advanceTimersByTimeAsync(10));
    expect(reads, "only on the first").toHaveLength(3);
    for (const end of ends) end();
  });

  it.each(["open", "ticket"])("reads again after its answer a first request that was on its way at %s", async (type) => {
    const { at, cache, refreshed } = start();
    if (type !== "open") at(0).emit("open");
    refreshed.mockRestore();
    const answers: ((state: string) => void)[] = [];
    const query = new QueryObserver(cache, { queryKey: keyOf.ticket.one("T-7"), queryFn: () => new Promise<string>((resolve) => answers.push(resolve)), staleTime: Infinity });
    const end = query.subscribe(() => undefined);
    await act(() => vi.advanceTimersByTimeAsync(10));
    at(0).emit(type, '{"id":"T-7"}'); // the ticket became effective, and the request was answered before that
    answers[0]?.("applying");
    await act(() => vi.advanceTimersByTimeAsync(10));
    expect(answers).toHaveLength(2);
    answers[1]?.("effective");
    await act(() => vi.advanceTimersByTimeAsync(10));
    expect(query.getCurrentResult().data).toBe("effective");
    end();
  });

  it("connects again after the browser gave up, each time a bit later", () => {
    const { at, streams } = start();
    const giveUp = (index: number) => {
      at(index).readyState = 2;
      at(index).emit("error");
    };
    giveUp(0);
    act(() => void vi.advanceTimersByTime(1_000));
    expect(streams).toHaveLength(2);
    expect(at(0).closed).toBe(true);
    giveUp(1);
    act(() => void vi.advanceTimersByTime(1_000));
    expect(streams).toHaveLength(2);
    act(() => void vi.advanceTimersByTime(1_000));
    expect(streams).toHaveLength(3);
  });

  it("notices that a stream went silent, which pings prevent", () => {
    const { result, at } = start();
    at(0).emit("open");
    act(() => void vi.advanceTimersByTime(30_000));
    at(0).emit("ping");
    act(() => void vi.advanceTimersByTime(30_000));
    expect(result.current).toBe("open");
    act(() => void vi.advanceTimersByTime(15_000));
    expect(result.current).toBe("lost");
  });

  it("closes when the last component is unmounted", () => {
    const { at, unmount, streams } = start();
    unmount();
    expect(at(0).closed).toBe(true);
    act(() => void vi.advanceTimersByTime(120_000));
    expect(streams).toHaveLength(1);
  });
});
