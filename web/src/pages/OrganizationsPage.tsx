import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useOrganizations } from "../api/governance";
import { useMayRequest, useMe } from "../api/queries";
import type { Organization } from "../api/types";
import { ToneBadge } from "../components/Badge";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { canManageGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { PolicyNav } from "../components/policies/PolicyNav";
import tables from "../components/Tables.module.css";
import { changePath } from "../lib/policies";
import { organizationsCSV } from "../lib/tables/policies";
import { useWords } from "../lib/use-words";

/** outside returns the number of objects of an organization that are not in force because its bounds do not allow them. */
const outside = ({ classes, policies }: Organization): number => [...classes, ...policies].filter((each) => !each.accepted).length;

function Name({ organization }: { organization: Organization }) {
  const { t } = useTranslation();
  const { name, title, accepted, mine } = organization;
  const count = outside(organization);
  return (
    <Group gap={8}>
      <Link className={tables.title} to={`/organizations/${encodeURIComponent(name)}`}>{title}</Link>
      {mine && <ToneBadge tone="idle" word={t("organizations.mine")} />}
      {!accepted && <ToneBadge tone="bad" word={t("organizations.conflict")} help={t("organizations.conflictHelp")} />}
      {count > 0 && <ToneBadge tone="bad" word={t("organizations.outside", { count })} />}
    </Group>
  );
}

/** OrganizationsPage lists the organizations that the person administers, or all of them for the security team and auditors. */
export function OrganizationsPage() {
  const { t } = useTranslation();
  const me = useMe().data;
  const words = useWords();
  const query = useOrganizations();
  const create = useMayRequest() && canManageGovernance(me) && (
    <Button component={Link} to={changePath("Organization")} data-testid="new-organization">
      {t("organizations.create")}
    </Button>
  );
  const columns: Column<Organization>[] = [
    { key: "name", header: t("organizations.name"), cell: (row) => <Name organization={row} />, sortBy: (row) => row.title },
    { key: "teams", header: t("organizations.teams"), cell: (row) => words.list(row.teams.map((team) => team.displayName)), sortBy: (row) => row.teams[0]?.displayName },
    { key: "administrators", header: t("organizations.administrators"), cell: (row) => words.list(row.administrators.map((each) => each.displayName)), sortBy: (row) => row.administrators[0]?.displayName },
    { key: "classes", header: t("organizations.classes"), end: true, cell: (row) => words.number(row.classes.length), sortBy: (row) => row.classes.length },
    { key: "policies", header: t("organizations.policies"), end: true, cell: (row) => words.number(row.policies.length), sortBy: (row) => row.policies.length },
  ];
  return (
    <Page wide title={t("organizations.title")} sub={t("organizations.intro")} actions={create}>
      <PolicyNav />
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState testId="no-organizations">{t("organizations.empty")}</EmptyState>
          ) : (
            <DataTable csv={organizationsCSV} label={t("organizations.title")} columns={columns} rows={items} rowKey={(row) => row.name} rowTestId={(row) => `organization-${row.name}`} testId="organizations" />
          )
        }
      </Loaded>
    </Page>
  );
}
