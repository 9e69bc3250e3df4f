/** The states of a view without rows: empty, failed and loading. */
import { Button, Skeleton, Stack } from "@mantine/core";
import { IconAlertTriangle, IconInfoCircle } from "@tabler/icons-react";
import { createContext, useContext } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "react-router";
import { asApiError, isFinal, loginTooOld } from "../api/client";
import { dayAndTime } from "../lib/time";
import { useWords } from "../lib/use-words";
import { useZone } from "../lib/use-zone";
import classes from "./Page.module.css";
import tables from "./Tables.module.css";

const known = [
  "network", "unauthenticated", "forbidden", "login-too-old", "not-found", "invalid", "conflict", "stale", "duplicate",
  "no-approver", "evidence", "guard", "too-large", "rate-limited", "unavailable", "store-unavailable", "outcome-unknown", "internal",
] as const;

type KnownCode = (typeof known)[number];

const isKnown = (code: string): code is KnownCode => known.some((each) => each === code);

/** saysAll contains the codes whose own text is as exact as the server's message, which is not shown. */
const saysAll: ReadonlySet<string> = new Set(["login-too-old", "not-found", "stale", "too-large", "rate-limited", "store-unavailable", "outcome-unknown", "internal"]);
/** saysLess contains the codes whose own text is less exact than the server's message, which is shown instead. */
const saysLess: ReadonlySet<string> = new Set(["forbidden", "conflict", "no-approver", "duplicate", "evidence", "guard"]);

/** insteadOf contains the codes for which a second text says what to do instead of a retry. */
const insteadOf = ["forbidden", "not-found", "invalid"] as const;

const hasInstead = (code: string): code is (typeof insteadOf)[number] => insteadOf.some((each) => each === code);

/** useErrorText returns the text for the error's code, the server's message about this error, or both. */
function useErrorText(error: unknown): { text: string; detail: string | undefined; instead: string | undefined; requestId: string | undefined } {
  const { t } = useTranslation();
  const words = useWords();
  const problem = asApiError(error);
  const text = t(`error.${isKnown(problem.code) ? problem.code : "internal"}`);
  const raw = saysAll.has(problem.code) ? undefined : problem.problem?.message;
  const detail = raw === undefined ? undefined : words.message(raw);
  const final = isFinal(error);
  const instead = final && hasInstead(problem.code) ? t(`error.instead.${problem.code}`) : undefined;
  // A refusal is no fault: there is nothing to report.
  const requestId = final ? undefined : problem.requestId;
  if (detail && saysLess.has(problem.code)) return { text: detail, detail: undefined, instead: undefined, requestId };
  return { text, detail, instead, requestId };
}

/** LoginAgain links a new login that returns to this page. The server starts the login, so this is a real link and not one of the router's. */
export function LoginAgain() {
  const { t } = useTranslation();
  const { pathname, search } = useLocation();
  const query = new URLSearchParams({ fresh: "true", returnTo: pathname + search }).toString();
  return (
    <Button component="a" href={`/auth/login?${query}`} mt="sm" size="xs" variant="default" data-testid="login-again">
      {t("login.again")}
    </Button>
  );
}

/** ErrorState shows an error, what to do about it and, unless the error is final, a button to retry. It shows nothing when the session ended. */
export function ErrorState({ error, onRetry, title }: { error: unknown; onRetry?: (() => void) | undefined; title?: string }) {
  const { t } = useTranslation();
  const { text, detail, instead, requestId } = useErrorText(error);
  const final = isFinal(error);
  // The app is on its way to the login page; an error here would only flash.
  if (asApiError(error).code === "unauthenticated") return null;
  return (
    <div className={classes.error} role="alert" data-testid="error-state">
      <IconAlertTriangle size={18} aria-hidden />
      <div>
        <strong>{title ?? t("error.title")}</strong>
        <p>{text}</p>
        {detail && <p>{detail}</p>}
        {instead && <p data-testid="error-instead">{instead}</p>}
        {requestId && <p className={classes.requestId}>{t("error.requestId", { id: requestId })}</p>}
        {asApiError(error).code === loginTooOld && <LoginAgain />}
        {onRetry && !final && (
          <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
            {t("action.retry")}
          </Button>
        )}
      </div>
    </div>
  );
}

/** EmptyState shows a text in place of a list without entries, with an optional action. */
export function EmptyState({ children, action, testId }: { children: ReactNode; action?: ReactNode; testId?: string }) {
  return (
    <div className={classes.empty} data-testid={testId ?? "empty-state"}>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** Notice shows an informational text. With `live`, screen readers announce it. */
export function Notice({ children, testId, live = false }: { children: ReactNode; testId?: string; live?: boolean }) {
  return (
    <div className={classes.notice} data-testid={testId} role={live ? "status" : undefined}>
      <IconInfoCircle size={16} aria-hidden />
      <div>{children}</div>
    </div>
  );
}

/** RowsSkeleton shows the placeholder of rows that are being read. */
export function RowsSkeleton({ rows = 4 }: { rows?: number }) {
  return (
    <Stack gap={10} aria-busy="true" aria-live="off" data-testid="skeleton">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={38} />
      ))}
    </Stack>
  );
}

/** ReadQuery is the part of a query that Loaded uses. */
interface ReadQuery<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  /** When the data were read, in milliseconds since 1970. */
  dataUpdatedAt?: number;
  /** Reports whether the error is about a further page only. LoadMore shows that one. */
  isFetchNextPageError?: boolean;
  refetch: () => unknown;
}

/** Outdated says since when data could not be read again, with a retry. A final error is shown with its reason, because a retry does not help. */
function Outdated({ query }: { query: ReadQuery<unknown> }) {
  const { t, i18n } = useTranslation();
  const zone = useZone();
  const { text, detail } = useErrorText(query.error);
  // The app is on its way to the login page.
  if (asApiError(query.error).code === "unauthenticated") return null;
  return (
    <Notice live testId="outdated">
      {query.dataUpdatedAt ? t("error.outdatedSince", { time: dayAndTime(new Date(query.dataUpdatedAt), i18n.language, zone) }) : t("error.outdated")}{" "}
      {isFinal(query.error) ? (detail ?? text) : <button type="button" className={tables.linkButton} onClick={() => void query.refetch()}>{t("action.retry")}</button>}
    </Notice>
  );
}

interface LoadedProps<T> {
  query: ReadQuery<T>;
  skeleton?: ReactNode;
  children: (data: T) => ReactNode;
}

/** SaidOutdated reports whether a notice above already says that what is shown may be outdated. */
const SaidOutdated = createContext(false);

/**
 * Loaded shows the data of a query, or a placeholder or the error with a retry while there are none. Data that were read stay while a refresh fails, with a
 * notice that they may be outdated, which is not repeated within them. A query has an error only once its own retries have failed, and keeps it until it is
 * read again.
 */
export function Loaded<T>({ query, skeleton, children }: LoadedProps<T>) {
  const said = useContext(SaidOutdated);
  if (query.data !== undefined) {
    const outdated = Boolean(query.error) && !query.isFetchNextPageError;
    return (
      <SaidOutdated value={said || outdated}>
        {outdated && !said && <Outdated query={query} />}
        {children(query.data)}
      </SaidOutdated>
    );
  }
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return <>{skeleton ?? <RowsSkeleton />}</>;
}
