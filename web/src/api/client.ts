/**
 * The one way to the portal's API. It owns the headers every call needs and
 * turns whatever goes wrong into an ApiError.
 */
import createClient from "openapi-fetch";
import type { paths } from "./schema.gen";
import { clearComment } from "../lib/comment-draft";
import { clearDialogDraft } from "../lib/dialog-draft";
import { clearDraft } from "../lib/draft";
import { forgetDraft } from "../lib/traffic-draft";
import { isEmbedded, readOnly } from "../lib/embed";
import type { Message, Problem } from "./types";

/** fieldName returns the last name of a field's JSON path: `actions` of `items[0].actions[1]`. */
export const fieldName = (path: string): string => path.replace(/\[\d+\]/g, "").split(".").at(-1) ?? path;

/** ApiError is the error of a call of the API. Its code is `network` if no answer arrived; every other code is the server's. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(code: string, status: number, message: string, problem?: Problem) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
    this.problem = problem;
  }

  get requestId(): string | undefined {
    return this.problem?.requestId;
  }

  /** fieldMessage returns the server's message about a field; `actions` also matches `items[0].actions[1]`. */
  fieldMessage(name: string): Message | undefined {
    return this.problem?.fields?.find(({ field }) => fieldName(field) === name)?.message;
  }

  /** itemMessage returns the server's message about any field of the item at a position. */
  itemMessage(position: number): Message | undefined {
    return this.problem?.fields?.find(({ field }) => field.startsWith(`items[${position}]`))?.message;
  }
}

/** asApiError returns the error itself if it is an ApiError, otherwise an ApiError with the code `internal` and the same message. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError("internal", 0, error instanceof Error ? error.message : String(error));
}

/** loginTooOld is the code of an action that needs a more recent login than that of the session. */
export const loginTooOld = "login-too-old";

/** isFinal returns whether the same call by the same person would be refused again. */
export function isFinal(error: unknown): boolean {
  const { status, code } = asApiError(error);
  if (status < 400 || status >= 500) return false;
  // A timeout, a rate limit or a concurrent change may pass, and a 401 is solved by a login. An answer without a code
  // is not the portal's, so its meaning is unknown.
  return ![401, 408, 425, 429].includes(status) && !["stale", "conflict", "internal"].includes(code);
}

type Listener = () => void;
const signedOut = new Set<Listener>();

/** onSignedOut calls the listener whenever an answer reports that there is no session. It returns the function that removes the listener. */
export function onSignedOut(listener: Listener): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

/** client is the typed client of the portal's API. It sends the headers that every call needs. */
export const client = createClient<paths>({
  baseUrl: `${globalThis.location.origin}/api/v1`,
  headers: { Accept: "application/json", "X-ACP-Request": "1" },
  // Looked up at each call so that tests can put their own in its place.
  fetch: (request) => (isEmbedded() && request.method !== "GET" ? Promise.reject(new TypeError("a page in a frame changes nothing")) : globalThis.fetch(request)),
});

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "code" in body && "title" in body;
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

async function answered<T>(call: Promise<Answer<T>>): Promise<Answer<T>> {
  try {
    return await call;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new ApiError("network", 0, cause instanceof Error ? cause.message : "no answer");
  }
}

function failed(answer: Answer<unknown>): ApiError {
  const status = answer.response.status;
  const problem = isProblem(answer.error) ? answer.error : undefined;
  if (status === 401) signedOut.forEach((listener) => listener());
  return new ApiError(
    problem?.code ?? (status === 401 ? "unauthenticated" : "internal"),
    status,
    problem?.detail ?? problem?.title ?? answer.response.statusText,
    problem,
  );
}

/** unwrap returns the data of an answer, or throws an ApiError. */
export async function unwrap<T>(call: Promise<Answer<T>>): Promise<T> {
  const answer = await answered(call);
  if (answer.response.ok && answer.data !== undefined) return isEmbedded() ? readOnly(answer.data) : answer.data;
  throw failed(answer);
}

/** asJSON returns an answer that could also be a table as CSV, which is returned only on request. */
export async function asJSON<T>(answer: Promise<T>): Promise<Exclude<T, string>> {
  const value = await answer;
  if (typeof value === "string") throw new TypeError("the answer is not JSON");
  return value as Exclude<T, string>;
}

/** settled waits for an answer without data, and throws an ApiError if the call failed. */
export async function settled(call: Promise<Answer<unknown>>): Promise<void> {
  const answer = await answered(call);
  if (!answer.response.ok) throw failed(answer);
}

/**
 * signOut ends the session, removes the input that is kept in this tab, and returns the address to open next: the provider's logout page, or the login
 * page of the portal. It throws an ApiError if the session may still exist: no answer arrived, or the server failed.
 */
export async function signOut(): Promise<string> {
  const { response } = await answered(fetch("/auth/logout", { method: "POST", headers: { Accept: "application/json", "X-ACP-Request": "1" } }).then((response) => ({ response })));
  const body: unknown = await response.json().catch(() => null);
  // 401 means that there was no session any more.
  if (!response.ok && response.status !== 401) throw failed({ error: body, response });
  clearDraft();
  clearComment();
  clearDialogDraft();
  forgetDraft();
  if (response.ok && typeof body === "object" && body !== null && "redirect" in body && typeof body.redirect === "string" && body.redirect !== "") return body.redirect;
  return "/login?error=signed-out";
}
