import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMayRequest } from "../api/queries";
import type { ObjectChange, TicketKind } from "../api/types";

/** Prefill contains the values with which the request form opens. */
export interface Prefill {
  kind?: TicketKind | undefined;
  application?: string | undefined;
  resource?: string | undefined;
  action?: string | undefined;
  /** The kind and the name of the object that should change. */
  object?: ObjectChange["kind"] | undefined;
  name?: string | undefined;
  /** The grant that should end. */
  target?: string | undefined;
}

/** requestPath returns the path of the request form with these values. */
export function requestPath(prefill: Prefill): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(prefill)) if (value) search.set(key, value);
  const text = search.toString();
  return text ? `/requests/new?${text}` : "/requests/new";
}

interface Props extends Prefill {
  primary?: boolean;
  quiet?: boolean;
  label?: string;
  testId?: string;
}

/** RequestAccessLink renders nothing for people who may not request access. */
export function RequestAccessLink({ primary = false, quiet = false, label, testId = "request-access", ...prefill }: Props) {
  const { t } = useTranslation();
  if (!useMayRequest()) return null;
  return (
    <Button component={Link} to={requestPath(prefill)} size={primary ? "sm" : "compact-sm"} variant={primary ? "filled" : quiet ? "default" : "light"} data-testid={testId}>
      {label ?? t("action.requestAccess")}
    </Button>
  );
}
