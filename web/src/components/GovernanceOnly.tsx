import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../api/queries";
import type { Me } from "../api/types";
import { EmptyState, Loaded } from "./Feedback";

export const canSeeGovernance = (me: Me | undefined): boolean => me?.roles.some((role) => role === "security" || role === "auditor") ?? false;

/** The security team changes the catalog; auditors only look. */
export const canManageGovernance = (me: Me | undefined): boolean => me !== undefined && me.roles.includes("security") && !me.roles.includes("auditor");

/** What only the security team and auditors see. Others are told so, and nothing is asked of the server. */
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
