import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useOrganizations } from "../api/governance";
import { useMayRequest, useMe } from "../api/queries";
import type { Organization } from "../api/types";
import { ToneBadge } from "../components/Badge";
import { EmptyState, Loaded } from "../components/Feedback";
import { canManageGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import classes from "../components/policies/Policies.module.css";
import { PolicyNav } from "../components/policies/PolicyNav";
import { changePath } from "../lib/policies";
import { useWords } from "../lib/use-words";

function OrganizationCard({ organization }: { organization: Organization }) {
  const { t } = useTranslation();
  const words = useWords();
  const { name, title, accepted, mine, teams } = organization;
  const outside = [...organization.classes, ...organization.policies].filter((each) => !each.accepted).length;
  return (
    <li className={classes.policy} data-testid={`organization-${name}`}>
      <div className={classes.head}>
        <h2 className={classes.name}>
          <Link to={`/organizations/${encodeURIComponent(name)}`}>{title}</Link>
        </h2>
        {mine && <ToneBadge tone="idle" word={t("organizations.mine")} />}
        {!accepted && <ToneBadge tone="bad" word={t("organizations.conflict")} help={t("organizations.conflictHelp")} />}
        {outside > 0 && <ToneBadge tone="bad" word={t("organizations.outside", { count: outside })} />}
      </div>
      <p className={classes.muted}>{t("organizations.teamsAre", { teams: words.list(teams.map((team) => team.displayName)) })}</p>
      <p className={classes.muted}>{t("organizations.counts", { classes: organization.classes.length, policies: organization.policies.length })}</p>
    </li>
  );
}

/** OrganizationsPage lists the organizations that the person administers, or all of them for the security team and auditors. */
export function OrganizationsPage() {
  const { t } = useTranslation();
  const me = useMe().data;
  const query = useOrganizations();
  const create = useMayRequest() && canManageGovernance(me) && (
    <Button component={Link} to={changePath("Organization")} data-testid="new-organization">
      {t("organizations.create")}
    </Button>
  );
  return (
    <Page title={t("organizations.title")} sub={t("organizations.intro")} actions={create}>
      <PolicyNav />
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState testId="no-organizations">{t("organizations.empty")}</EmptyState>
          ) : (
            <ol className={classes.list} data-testid="organizations">
              {items.map((organization) => (
                <OrganizationCard key={organization.name} organization={organization} />
              ))}
            </ol>
          )
        }
      </Loaded>
    </Page>
  );
}
