import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useApprovalPolicies, useMayRequest, useMe } from "../api/queries";
import { Loaded } from "../components/Feedback";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import classes from "../components/policies/Policies.module.css";
import { ApprovalPolicyView } from "../components/policies/ApprovalPolicyView";
import { TableDownload } from "../components/TableDownload";
import { PolicyNav } from "../components/policies/PolicyNav";
import { changePath } from "../lib/policies";
import { approvalPoliciesCSV } from "../lib/tables/policies";

/** PoliciesPage lists the approval policies in the order in which they are matched. */
export function PoliciesPage() {
  const { t } = useTranslation();
  const me = useMe().data;
  const query = useApprovalPolicies();
  const mayRequest = useMayRequest();
  const mayPropose = mayRequest && canSeeGovernance(me);
  const administers = (organization: string | undefined) => organization !== undefined && (me?.organizations?.includes(organization) ?? false);
  return (
    <Page
      title={t("policies.title")}
      sub={t("policies.intro")}
      actions={
        mayPropose && (
          <Button component={Link} to={changePath("ApprovalPolicy")} data-testid="new-policy">
            {t("policies.create")}
          </Button>
        )
      }
    >
      <PolicyNav />
      <Loaded query={query}>
        {({ items }) => (
          <>
            <ol className={classes.list} data-testid="policies">
              {items.map((policy) => (
                <ApprovalPolicyView key={policy.name} policy={policy} whole={canSeeGovernance(me) || administers(policy.organization)} mayPropose={mayPropose || (mayRequest && administers(policy.organization))} />
              ))}
            </ol>
            <TableDownload csv={approvalPoliciesCSV} rows={items} />
          </>
        )}
      </Loaded>
    </Page>
  );
}
