import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../api/queries";
import type { Me } from "../api/types";
import { EmptyState, Loaded } from "./Feedback";

/** canSeeGovernance reports whether the person is of the security team or an auditor. */
export const canSeeGovernance = (me: Me | undefined): boolean => me?.roles.some((role) => role === "security" || role === "auditor") ?? false;

/** canManageGovernance returns whether the person may change the catalog. Auditors may only read it. */
export const canManageGovernance = (me: Me | undefined): boolean => me !== undefined && me.roles.includes("security") && !me.roles.includes("auditor");

/** GovernanceOnly shows its children to the security team and to auditors. Others see an explanation, and nothing is requested from the server. */
export function GovernanceOnly({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const me = useMe();
  return (
    <Loaded query={me}>
      {(data) =>
        canSeeGovernance(data) ? (
          children
        ) : (
          <EmptyState
            testId="not-yours"
            action={
              <Button component={Link} to="/" variant="default">
                {t("action.backHome")}
              </Button>
            }
          >
            {t("governing.notYours")}
          </EmptyState>
        )
      }
    </Loaded>
  );
}
