/** What a view shows when it has no rows, cannot have them, or does not have them yet. */
import { Button, Skeleton, Stack } from "@mantine/core";
import { IconAlertTriangle, IconInfoCircle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import classes from "./Page.module.css";

const known = [
  "network", "unauthenticated", "forbidden", "not-found", "invalid", "conflict", "stale", "duplicate",
  "no-approver", "too-large", "rate-limited", "unavailable", "store-unavailable", "internal",
] as const;

type KnownCode = (typeof known)[number];

const isKnown = (code: string): code is KnownCode => known.some((each) => each === code);

/** The catalogue's words for the code, then what the server adds for this very case. */
function useErrorText(error: unknown): { text: string; detail: string | undefined; requestId: string | undefined } {
  const { t } = useTranslation();
  const problem = asApiError(error);
  const text = t(`error.${isKnown(problem.code) ? problem.code : "internal"}`);
  const detail = problem.code === "internal" ? undefined : problem.problem?.detail;
  return { text, detail: detail === text ? undefined : detail, requestId: problem.requestId };
}

export function ErrorState({ error, onRetry, title }: { error: unknown; onRetry?: (() => void) | undefined; title?: string }) {
  const { t } = useTranslation();
  const { text, detail, requestId } = useErrorText(error);
  // The app is on its way to the login page; an error here would only flash.
  if (asApiError(error).code === "unauthenticated") return null;
  return (
    <div className={classes.error} role="alert" data-testid="error-state">
      <IconAlertTriangle size={18} aria-hidden />
      <div>
        <strong>{title ?? t("error.title")}</strong>
        <p>{text}</p>
        {detail && <p>{detail}</p>}
        {requestId && <p className={classes.requestId}>{t("error.requestId", { id: requestId })}</p>}
        {onRetry && (
          <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
            {t("action.retry")}
          </Button>
        )}
      </div>
    </div>
  );
}

export function EmptyState({ children, action, testId }: { children: ReactNode; action?: ReactNode; testId?: string }) {
  return (
    <div className={classes.empty} data-testid={testId ?? "empty-state"}>
      <p>{children}</p>
      {action}
    </div>
  );
}

export function Notice({ children, testId, live = false }: { children: ReactNode; testId?: string; live?: boolean }) {
  return (
    <div className={classes.notice} data-testid={testId} role={live ? "status" : undefined}>
      <IconInfoCircle size={16} aria-hidden />
      <div>{children}</div>
    </div>
  );
}

export function RowsSkeleton({ rows = 4 }: { rows?: number }) {
  return (
    <Stack gap={10} aria-busy="true" aria-live="off" data-testid="skeleton">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} height={38} />
      ))}
    </Stack>
  );
}

interface LoadedProps<T> {
  query: { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  skeleton?: ReactNode;
  children: (data: T) => ReactNode;
}

/** Skeleton, error with retry, or the data: the same three for every view. Old data stay while new ones fail to come. */
export function Loaded<T>({ query, skeleton, children }: LoadedProps<T>) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ErrorState error={query.error} onRetry={() => void query.refetch()} />;
  return <>{skeleton ?? <RowsSkeleton />}</>;
}
