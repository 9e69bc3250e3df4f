import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { useAccessPolicy, useAccessPolicyUses } from "../api/fleet";
import type { CatalogRef, PolicyDetail, PolicyStatement, StatementIssue, Use } from "../api/types";
import { DataTable } from "../components/DataTable";
import type { Column } from "../components/DataTable";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import classes from "../components/govern/Govern.module.css";
import { IssueBadge } from "../components/govern/badges";
import { PolicyOriginText } from "../components/govern/PolicyOriginText";
import { Hours } from "../components/Hours";
import { LastUse } from "../components/LastUse";
import { RefName } from "../components/Names";
import type { RefKind } from "../components/Names";
import { GovernanceOnly } from "../components/GovernanceOnly";
import { Page, Section } from "../components/Page";
import { YamlDetails, YamlText } from "../components/policies/YamlDetails";
import tables from "../components/Tables.module.css";
import { Reason, TicketLink } from "../components/TicketLink";
import { RelativeTime, DayAndTime } from "../components/Time";
import { statementsCSV } from "../lib/tables/access";
import { flowsPath } from "../lib/flow-link";
import { useFilters } from "../lib/use-filters";
import { useWords } from "../lib/use-words";
import { instant } from "../lib/table-sort";

function Refs({ kind, refs }: { kind: RefKind; refs: CatalogRef[] }) {
  const { t } = useTranslation();
  const shown = refs.slice(0, 8);
  return (
    <span className={tables.stack}>
      {shown.map((about) => (
        <RefName key={about.name} kind={kind} about={about} />
      ))}
      {refs.length > shown.length && <span className={tables.muted}>{t("acp.more", { count: refs.length - shown.length })}</span>}
    </span>
  );
}

/** Issue shows an expiring statement with its end, and the other issues with the message of the server. */
function Issue({ issue }: { issue: StatementIssue }) {
  const { t } = useTranslation();
  const words = useWords();
  const timely = issue.kind === "expiring" || issue.kind === "expired";
  return (
    <span className={tables.stack}>
      <span>
        <IssueBadge kind={issue.kind} />
      </span>
      {issue.others && issue.others.length > 0 ? (
        <span className={tables.muted}>
          {t("acp.by", { others: words.list(issue.others.slice(0, 3).map((each) => `${each.policy}/${each.sid}`)) })}
          {issue.others.length > 3 && ` ${t("acp.more", { count: issue.others.length - 3 })}`}
        </span>
      ) : (
        !timely && <span className={tables.why}>{words.message(issue.message)}</span>
      )}
    </span>
  );
}

/** useStatementUses returns the last use of a statement. */
function useStatementUses(policy: string): (sid: string) => Use {
  const { data, isLoading } = useAccessPolicyUses(policy);
  if (!data?.available) return () => (isLoading ? null : undefined);
  const found = new Map(data.items.map((use) => [use.sid, use]));
  return (sid) => found.get(sid) ?? { state: "unknown" };
}

function Statements({ detail }: { detail: PolicyDetail }) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const lastUse = useStatementUses(detail.policy.name);
  const sid = search.get("sid");
  const chosen = sid === null ? [] : detail.statements.filter((row) => row.sid === sid);
  const rows = chosen.length > 0 ? chosen : detail.statements;
  const unused = rows.map((row) => lastUse(row.sid)).some((use) => use !== null && use?.lastUsed === undefined);
  const columns: Column<PolicyStatement>[] = [
    {
      key: "sid",
      header: t("acp.statement"),
      sortBy: (row) => row.sid,
      cell: (row) => (
        <span className={tables.stack}>
          <code className={tables.code}>{row.sid}</code>
          {row.effect === "Deny" && <strong>{t("effect.Deny")}</strong>}
          {row.ticket && <TicketLink of={row} />}
          <Link to={flowsPath({ policy: detail.policy.name, sid: row.sid }) ?? ""} aria-label={t("acp.connectionsOf", { sid: row.sid })} data-testid={`flows-${row.sid}`}>{t("access.connections")}</Link>
        </span>
      ),
    },
    { key: "subjects", header: t("accessMap.subject"), cell: (row) => <Refs kind="applications" refs={row.subjects} />, sortBy: (row) => row.subjects[0]?.title },
    {
      key: "actions",
      header: t("access.actions"),
      cell: (row) => (
        <span className={tables.stack}>
          {row.actions.map((action) => (
            <code key={action} className={tables.code}>
              {action}
            </code>
          ))}
        </span>
      ),
    },
    { key: "resources", header: t("accessMap.resource"), cell: (row) => <Refs kind="resources" refs={row.resources} />, sortBy: (row) => row.resources[0]?.title },
    { key: "until", header: t("accessMap.until"), nowrap: true, cell: (row) => <span className={tables.stack}>{row.notAfter ? <DayAndTime at={row.notAfter} /> : <span className={tables.muted}>{t("accessMap.forever")}</span>}<Hours hours={row.hours} /></span>, sortBy: (row) => instant(row.notAfter) },
    { key: "used", header: t("access.lastUsed"), nowrap: true, cell: (row) => <LastUse use={lastUse(row.sid)} to={flowsPath({ policy: detail.policy.name, sid: row.sid })} label={t("acp.connectionsOf", { sid: row.sid })} />, sortBy: (row) => instant(lastUse(row.sid)?.lastUsed) },
    { key: "reason", header: t("access.reason"), cell: (row) => <Reason of={row} /> },
    {
      key: "issues",
      header: t("acp.issues"),
      cell: (row) => (row.issues.length > 0 ? <span className={tables.stack}>{row.issues.map((issue) => <Issue key={issue.kind} issue={issue} />)}</span> : <span className={tables.muted}>{t("acp.fine")}</span>),
    },
  ];
  return (
    <Section title={t("acp.statementsTitle")} count={detail.statements.length}>
      {!detail.unusedKnown && unused && (
        <div className={tables.above}>
          <Notice>{t("acp.unusedUnknown")}</Notice>
        </div>
      )}
      {sid !== null && (
        <Group gap="sm" mb="sm" data-testid="chosen-statement">
          <span>{t(chosen.length > 0 ? "acp.onlyStatement" : "acp.statementGone", { sid })}</span>
          <Button size="compact-sm" variant="default" onClick={() => change({ sid: undefined })}>{t("acp.allStatements")}</Button>
        </Group>
      )}
      {rows.length > 0 ? <DataTable csv={statementsCSV(detail.policy.name, lastUse)} label={t("acp.statementsTitle")} columns={columns} rows={rows} rowKey={(row) => row.sid} rowTestId={(row) => `statement-${row.sid}`} testId="statements" /> : <EmptyState>{t("acp.noStatements")}</EmptyState>}
    </Section>
  );
}

function Managers({ detail }: { detail: PolicyDetail }) {
  const { t } = useTranslation();
  return (
    <Section title={t("acp.managersTitle")} aside={t("acp.managersNote")}>
      <dl className={classes.facts}>
        <div>
          <dt>{t("acp.origin")}</dt>
          <dd>
            <PolicyOriginText origin={detail.policy.origin} />
          </dd>
        </div>
        {detail.managers.map((manager) => (
          <div key={`${manager.name} ${manager.operation}`}>
            <dt>
              {t("acp.manager")} · {manager.operation}
            </dt>
            <dd>
              {manager.name} {manager.at && <span className={tables.muted}><RelativeTime at={manager.at} /></span>}
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Detail({ name }: { name: string }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <Loaded query={useAccessPolicy(name)}>
      {(detail) => (
        <>
          {detail.policy.message && <Notice testId="policy-message">{words.message(detail.policy.message)}</Notice>}
          <Statements detail={detail} />
          <Managers detail={detail} />
          {detail.yaml && (
            <YamlDetails>
              {() => (
                <div className={classes.yaml}>
                  <YamlText text={detail.yaml ?? ""} label={t("policies.yaml")} />
                </div>
              )}
            </YamlDetails>
          )}
        </>
      )}
    </Loaded>
  );
}

/** AccessPolicyPage shows the statements of one policy and its origin. */
export function AccessPolicyPage() {
  const { t } = useTranslation();
  const { name = "" } = useParams();
  return (
    <Page
      wide
      title={name}
      crumbs={[{ to: "/access-policies", label: t("acp.all") }, { label: name }]}
      actions={
        <Button component={Link} variant="default" to={`/access?q=${encodeURIComponent(name)}`}>
          {t("acp.showMap")}
        </Button>
      }
    >
      <GovernanceOnly>
        <Detail name={name} />
      </GovernanceOnly>
    </Page>
  );
}
