import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";

export function requestPath(prefill: { application?: string | undefined; resource?: string | undefined; action?: string | undefined }): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(prefill)) if (value) search.set(key, value);
  const text = search.toString();
  return text ? `/requests/new?${text}` : "/requests/new";
}

interface Props {
  application?: string | undefined;
  resource?: string | undefined;
  action?: string | undefined;
  primary?: boolean;
}

export function RequestAccessLink({ primary = false, ...prefill }: Props) {
  const { t } = useTranslation();
  return (
    <Button component={Link} to={requestPath(prefill)} size={primary ? "sm" : "compact-sm"} variant={primary ? "filled" : "light"} data-testid="request-access">
      {t("action.requestAccess")}
    </Button>
  );
}
