/** Renders a page as the app does, against answers that the test writes down. */
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { createMemoryRouter, RouterProvider } from "react-router";
import type { RouteObject } from "react-router";
import { vi } from "vitest";
import { ToastProvider } from "../components/Toast";
import { theme } from "../theme";
import type { Message } from "../api/types";
import { me } from "./fixtures";

/** Call is a call of the API that a test received. */
export interface Call {
  method: string;
  path: string;
  search: URLSearchParams;
  headers: Headers;
  body: unknown;
}

/** Answer is the answer of a test to a call. */
export interface Answer {
  status?: number;
  body: unknown;
}

type Handler = (call: Call) => Answer | Promise<Answer>;

/**
 * serve answers the calls of the API with these handlers by `METHOD /path` below /api/v1, and returns the list of calls. `GET /me` is answered with
 * Alice unless there is a handler.
 */
export function serve(handlers: Record<string, Handler>): Call[] {
  const calls: Call[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url);
    const path = url.pathname.replace(/^\/api\/v1/, "");
    const text = await request.text();
    const call: Call = { method: request.method, path, search: url.searchParams, headers: request.headers, body: text === "" ? undefined : JSON.parse(text) };
    // Every page asks who is there; only a test that answers it cares.
    const answersMe = call.path === "/me" && !handlers["GET /me"];
    if (!answersMe) calls.push(call);
    const handler = answersMe ? () => ({ body: me() }) : handlers[`${call.method} ${path}`];
    const { status = 200, body }: Answer = handler ? await handler(call) : { status: 404, body: { type: "about:blank", title: "not found", status: 404, code: "not-found", message: verbatim("not found") } };
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": status < 400 ? "application/json" : "application/problem+json" } });
  });
  return calls;
}

/** verbatim returns a message without a translation. */
export const verbatim = (text: string): Message => ({ code: "verbatim", params: { text }, text });

/** problem returns an error answer with a code. */
export function problem(status: number, code: string, over: { detail?: string; [field: string]: unknown } = {}): Answer {
  return { status, body: { type: "about:blank", title: code, status, code, requestId: "req-1", message: verbatim(over.detail ?? ""), ...over } };
}

/** unanswered is the answer to a call that is still being waited for. */
export const unanswered = (): Promise<Answer> => new Promise(() => undefined);

/** renderRoutes renders routes at a path with the providers of the app, and returns the router, the cache and a function that removes the page. */
export function renderRoutes(routes: RouteObject[], at: string, wrap: (children: ReactNode) => ReactNode = (children) => children) {
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = createMemoryRouter(routes, { initialEntries: [at] });
  const { unmount } = render(
    <MantineProvider theme={theme} env="test">
      <QueryClientProvider client={cache}>
        <ToastProvider>{wrap(<RouterProvider router={router} />)}</ToastProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  return { router, cache, unmount };
}

/** renderPage renders one element at a path. Every other path shows `elsewhere`. */
export function renderPage(element: ReactNode, { path, at }: { path: string; at: string }) {
  return renderRoutes(
    [
      { path, element },
      { path: "*", element: <p>elsewhere</p> },
    ],
    at,
  );
}
