import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useClasses, useMayRequest, useMe } from "../api/queries";
import type { ClassInfo } from "../api/types";
import { ToneBadge } from "../components/Badge";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded } from "../components/Feedback";
import { canManageGovernance } from "../components/GovernanceOnly";
import { Page, Section } from "../components/Page";
import { PolicyNav } from "../components/policies/PolicyNav";
import { ClassWaves } from "../components/rollout/Waves";
import { YamlDetails, YamlText } from "../components/policies/YamlDetails";
import tables from "../components/Tables.module.css";
import { classesCSV } from "../lib/tables/catalog";
import { changePath } from "../lib/policies";
import { useWords } from "../lib/use-words";

function ClassTable({ label, rows, mayPropose, sortParam }: { label: string; sortParam: string; rows: ClassInfo[]; mayPropose: (info: ClassInfo) => boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  const state = ({ accepted }: ClassInfo) => {
    if (accepted === undefined) return <ToneBadge tone="idle" word={t("classes.unknown")} />;
    return accepted ? <ToneBadge tone="ok" word={t("classes.accepted")} /> : <ToneBadge tone="bad" word={t("classes.notAccepted")} />;
  };
  const columns: Column<ClassInfo>[] = [
    {
      key: "name",
      header: t("classes.name"),
      sortBy: (row) => row.name,
      cell: (row) => (
        <div>
          <span className={tables.title}>{row.name}</span>
          {row.organization && <ToneBadge tone="idle" word={t("organizations.of", { name: row.organization })} help={t("organizations.classOf")} />}
          <YamlDetails>{() => <YamlText text={row.yaml} label={row.name} />}</YamlDetails>
        </div>
      ),
    },
    { key: "pattern", header: t("classes.pattern"), cell: (row) => <code className={tables.code}>{row.pattern}</code>, sortBy: (row) => row.pattern },
    { key: "label", header: t("classes.labelKey"), cell: (row) => <code className={tables.code}>{row.labelKey}</code>, sortBy: (row) => row.labelKey },
    { key: "members", header: t("classes.members"), end: true, cell: (row) => words.number(row.members), sortBy: (row) => row.members },
    {
      key: "state",
      header: t("classes.state"),
      cell: (row) => (
        <span className={tables.stack}>
          <span>{state(row)}</span>
          {row.message && !row.waves && <span className={tables.why}>{words.message(row.message)}</span>}
          <ClassWaves info={row} />
        </span>
      ),
    },
    {
      key: "change",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) =>
        mayPropose(row) && (
          <Button component={Link} to={changePath(row.kind, row.name)} size="compact-sm" variant="default" aria-label={t("policies.proposeOf", { name: row.name })} data-testid={`propose-${row.name}`}>
            {t("policies.propose")}
          </Button>
        ),
    },
  ];
  return <DataTable csv={classesCSV} sortParam={sortParam} label={label} columns={columns} rows={rows} rowKey={(row) => row.name} rowTestId={(row) => `class-${row.name}`} />;
}

/** ClassesPage lists the classes of resources and subjects. */
export function ClassesPage() {
  const { t } = useTranslation();
  const query = useClasses();
  const me = useMe().data;
  const mayRequest = useMayRequest();
  // The server accepts requests about classes from the security team, and about the resource classes of an organization also from its administrators.
  const security = mayRequest && canManageGovernance(me);
  const organizations = mayRequest ? (me?.organizations ?? []) : [];
  const mayPropose = ({ kind, organization }: ClassInfo) => security || (kind === "ResourceClass" && organization !== undefined && organizations.includes(organization));
  const mayCreate = (kind: ClassInfo["kind"]) => security || (kind === "ResourceClass" && organizations.length > 0);
  const create = (kind: ClassInfo["kind"]) =>
    mayCreate(kind) && (
      <Button component={Link} to={changePath(kind)} size="compact-sm" variant="light" data-testid={`new-${kind}`}>
        {t("classes.create")}
      </Button>
    );
  const parts = [
    { kind: "ResourceClass", title: t("classes.resource"), empty: t("classes.resourceEmpty") },
    { kind: "SubjectClass", title: t("classes.subject"), empty: t("classes.subjectEmpty") },
  ] as const;
  return (
    <Page wide title={t("classes.title")} sub={t("classes.intro")}>
      <PolicyNav />
      <Loaded query={query}>
        {({ items }) =>
          parts.map(({ kind, title, empty }) => {
            const rows = items.filter((each) => each.kind === kind);
            return (
              <Section key={kind} title={title} count={rows.length} aside={rows.length > 0 ? create(kind) : undefined}>
                {rows.length === 0 ? <EmptyState action={create(kind)}>{empty}</EmptyState> : <ClassTable sortParam={`${kind}-sort`} label={title} rows={rows} mayPropose={mayPropose} />}
              </Section>
            );
          })
        }
      </Loaded>
    </Page>
  );
}
