import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { EmptyState } from "../Feedback";

/** NoRows explains an empty table: the filters match nothing and can be cleared, or the reason that is given. */
export function NoRows({ onClear, children }: { onClear: (() => void) | undefined; children: ReactNode }) {
  const { t } = useTranslation();
  if (!onClear) return <EmptyState>{children}</EmptyState>;
  return (
    <EmptyState
      action={
        <Button variant="default" onClick={onClear} data-testid="clear-filters">
          {t("action.clear")}
        </Button>
      }
    >
      {t("govern.noMatch")}
    </EmptyState>
  );
}
