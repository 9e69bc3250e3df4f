import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Member, MemberDetail, MemberFinding, MemberUnit } from "../../api/types";
import { memberFindingsCSV, memberLabelsCSV, memberUnitsCSV } from "../../lib/tables/fleet";
import { useWords } from "../../lib/use-words";
import { ClusterStateBadge, ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { EmptyState, Notice } from "../Feedback";
import { RefName } from "../Names";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import classes from "./Govern.module.css";
import { GuardBadge, HealthBadge, SeverityBadge } from "./badges";
import { UsageMeter } from "./UsageMeter";
import { instant } from "../../lib/table-sort";

/** MemberVersions shows the versions of a member's components, the engine that carries policies to it, and what it was registered from. */
export function MemberVersions({ member }: { member: Member }) {
  const { t } = useTranslation();
  const versions = [
    ["Kubernetes", member.kubernetesVersion],
    ["Cilium", member.ciliumVersion],
    ["Istio", member.istioVersion],
  ] as const;
  return (
    <span className={classes.versions}>
      {versions.map(([name, version]) => version && <span key={name}>{`${name} ${version}`}</span>)}
      {member.engine && <span title={t("fleet.engineHelp")}>{t("fleet.engine", { engine: member.engine })}</span>}
      {member.clusterProfile && <span title={t("fleet.profileHelp")}>{t("fleet.profile", { profile: member.clusterProfile })}</span>}
    </span>
  );
}

/** MemberIdentities shows the number of identities in a member and its limit. */
export function MemberIdentities({ member }: { member: Member }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!member.identities) return <span className={tables.muted}>{t("fleet.notRead")}</span>;
  const { used, limit } = member.identities;
  return <UsageMeter used={used} limit={limit} label={t("fleet.identities")} text={t("fleet.of", { used: words.number(used), limit: words.number(limit) })} />;
}

/** FindingCounts shows the number of a member's findings by severity. */
export function FindingCounts({ member }: { member: Member }) {
  const { t } = useTranslation();
  if (member.stops + member.fails + member.warns === 0) return <span className={tables.muted}>{t("fleet.none")}</span>;
  return (
    <span className={classes.chips}>
      {member.stops > 0 && <ToneBadge tone="bad" word={t("fleet.stops", { count: member.stops })} />}
      {member.fails > 0 && <ToneBadge tone="bad" word={t("fleet.fails", { count: member.fails })} />}
      {member.warns > 0 && <ToneBadge tone="warn" word={t("fleet.warns", { count: member.warns })} />}
    </span>
  );
}

/** MemberRevisionLag shows how many units of a member do not have the wanted revision. */
export function MemberRevisionLag({ member }: { member: Member }) {
  const { t } = useTranslation();
  const words = useWords();
  if (member.behind === 0) return <span className={`${tables.muted} ${tables.nowrap}`}>{t("fleet.upToDate")}</span>;
  return <ToneBadge tone="busy" word={t("fleet.behindCount", { count: member.behind, number: words.number(member.behind) })} />;
}

/** MemberWaves shows how many resources wait for their wave in a member, and how many rollouts of these are halted. */
export function MemberWaves({ waves }: { waves: NonNullable<Member["waves"]> }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <span className={classes.chips} title={t("fleet.wavesHelp")}>
      <ToneBadge tone="busy" word={t("fleet.wavesWaiting", { count: waves.waiting, number: words.number(waves.waiting) })} />
      {waves.halted > 0 && <ToneBadge tone="warn" word={t("fleet.wavesHalted", { number: words.number(waves.halted) })} />}
    </span>
  );
}

/** MemberNodes shows how many nodes of a member report what they enforce, and the nodes that do not by name. */
export function MemberNodes({ member }: { member: Member }) {
  const { t } = useTranslation();
  const words = useWords();
  const { nodes } = member;
  if (!nodes) {
    return (
      <span className={classes.nodes} title={t("nodes.help")}>
        {t("fleet.nodesNone")}
      </span>
    );
  }
  const named = (names: string[], count: number) => words.list(count > names.length ? [...names, t("fleet.nodesMore", { number: words.number(count - names.length) })] : names);
  return (
    <span className={tables.stack} title={t("nodes.help")}>
      <span>
        <ToneBadge tone={nodes.total > 0 && nodes.reporting === nodes.total ? "ok" : "warn"} word={t("fleet.nodesReport", { reporting: words.number(nodes.reporting), total: words.number(nodes.total) })} />
      </span>
      {nodes.unhealthy > 0 && <span className={classes.nodes}>{t("fleet.nodesUnhealthy", { nodes: named(nodes.unhealthyNodes, nodes.unhealthy) })}</span>}
      {nodes.silent > 0 && <span className={classes.nodes}>{t("fleet.nodesSilent", { nodes: named(nodes.silentNodes, nodes.silent) })}</span>}
    </span>
  );
}

/** MemberHealthDetails shows the health of a member with its versions, guard and downgrade. */
export function MemberHealthDetails({ member }: { member: Member }) {
  const { t } = useTranslation();
  const words = useWords();
  const mark = member.downgrade;
  return (
    <Section title={t("fleet.healthTitle")} testId="member-health">
      {member.message && <Notice>{words.message(member.message)}</Notice>}
      {mark && (
        <Notice testId="member-downgrade">
          {mark.by ? t("fleet.downgradedBy", { by: mark.by, reason: mark.reason }) : t("fleet.downgradedUnknown", { reason: mark.reason })} {t("fleet.resumeHint", { member: member.name })}
        </Notice>
      )}
      <dl className={classes.facts}>
        <div>
          <dt>{t("fleet.state")}</dt>
          <dd>
            <HealthBadge state={member.state} testId="member-state" /> {member.since && <span className={tables.muted}>{t("fleet.since")} <RelativeTime at={member.since} /></span>}
          </dd>
        </div>
        <div>
          <dt>{t("fleet.versions")}</dt>
          <dd>
            <MemberVersions member={member} />
          </dd>
        </div>
        <div>
          <dt>{t("fleet.guard")}</dt>
          <dd>
            <GuardBadge state={member.guard} />
          </dd>
        </div>
        <div>
          <dt>{t("fleet.nodes")}</dt>
          <dd data-testid="member-nodes">
            <MemberNodes member={member} />
          </dd>
        </div>
        <div>
          <dt>{t("fleet.behind")}</dt>
          <dd>
            <MemberRevisionLag member={member} />
          </dd>
        </div>
        {member.waves && (
          <div>
            <dt>{t("fleet.waves")}</dt>
            <dd data-testid="member-waves">
              <MemberWaves waves={member.waves} /> <Link to="/rollout">{t("fleet.wavesBoard")}</Link>
            </dd>
          </div>
        )}
        <div>
          <dt>{t("fleet.identities")}</dt>
          <dd>
            <MemberIdentities member={member} />
          </dd>
        </div>
        {member.policyMap && (
          <div>
            <dt>{t("fleet.policyMap")}</dt>
            <dd>
              <UsageMeter used={member.policyMap.highest} limit={member.policyMap.limit} label={t("fleet.policyMap")} text={t("fleet.policyMapOf", { used: words.number(member.policyMap.highest), limit: words.number(member.policyMap.limit) })} />
            </dd>
          </div>
        )}
        {member.observedAt && (
          <div>
            <dt>{t("fleet.observed")}</dt>
            <dd>
              <RelativeTime at={member.observedAt} />
            </dd>
          </div>
        )}
      </dl>
    </Section>
  );
}

const objectStates = ["managed", "realized", "pending", "drifted", "leaked", "overridden"] as const;

/** MemberObjects shows the number of ACP's objects in a member by state. */
export function MemberObjects({ member }: { member: Member }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!member.objects) return null;
  const objects = member.objects;
  return (
    <Section title={t("fleet.objectStates")} testId="member-objects">
      <dl className={classes.facts}>
        {objectStates.map((state) => (
          <div key={state}>
            <dt>{t(`fleet.object.${state}`)}</dt>
            <dd>{words.number(objects[state])}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

/** MemberFindings lists the findings of a member's preflight. */
export function MemberFindings({ findings }: { findings: MemberFinding[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const columns: Column<MemberFinding>[] = [
    { key: "severity", header: t("fleet.state"), nowrap: true, cell: (row) => <SeverityBadge severity={row.severity} />, sortBy: (row) => row.severity },
    {
      key: "about",
      header: t("fleet.about"),
      sortBy: (row) => row.code,
      cell: (row) => (
        <span className={tables.stack}>
          <code className={tables.code}>{row.code}</code>
          {row.object && <span className={tables.muted}>{row.object}</span>}
        </span>
      ),
    },
    { key: "message", header: t("fleet.whatToDo"), cell: (row) => <span className={classes.message}>{words.message(row.message)}</span> },
  ];
  return (
    <Section title={t("fleet.findings")} count={findings.length}>
      {findings.length > 0 ? <DataTable csv={memberFindingsCSV} sortParam="findings-sort" label={t("fleet.findings")} columns={columns} rows={findings} rowKey={(row) => `${row.code} ${row.object ?? ""} ${row.message}`} testId="member-findings" /> : <EmptyState>{t("fleet.noFindings")}</EmptyState>}
    </Section>
  );
}

/** MemberLabels lists the labels of a member's identities with the number of their values. */
export function MemberLabels({ member }: { member: Member }) {
  const { t } = useTranslation();
  const words = useWords();
  const labels = member.identities?.labels ?? [];
  return (
    <Section title={t("fleet.labelsTitle")} aside={t("fleet.labelsAside")}>
      {labels.length > 0 ? (
        <DataTable
          label={t("fleet.labelsTitle")}
          csv={memberLabelsCSV(member.name)}
          columns={[
            { key: "label", header: t("fleet.label"), cell: (row) => <code className={tables.code}>{row.key}</code>, sortBy: (row) => row.key },
            { key: "values", header: t("fleet.values"), end: true, cell: (row) => <span className={tables.number}>{words.number(row.values)}</span>, sortBy: (row) => row.values },
          ]}
          rows={labels}
          sortParam="labels-sort"
          rowKey={(row) => row.key}
          testId="member-labels"
        />
      ) : (
        <EmptyState>{t("fleet.labelsNone")}</EmptyState>
      )}
    </Section>
  );
}

function Revisions({ state }: { state: MemberUnit["state"] }) {
  const { t } = useTranslation();
  const short = (revision: string | undefined) => revision?.slice(0, 10) ?? t("fleet.nothing");
  return (
    <span className={tables.stack}>
      <code className={tables.code}>{t("fleet.wanted", { revision: short(state.desiredRevision) })}</code>
      <code className={tables.code}>{t("fleet.seen", { revision: short(state.observedRevision) })}</code>
    </span>
  );
}

/** MemberUnits lists the units of a member that are not `Realized` there. */
export function MemberUnits({ units, unitsTotal }: Pick<MemberDetail, "units" | "unitsTotal">) {
  const { t } = useTranslation();
  const words = useWords();
  const columns: Column<MemberUnit>[] = [
    { key: "resource", header: t("accessMap.resource"), cell: (row) => <RefName kind="resources" about={row.resource} full />, sortBy: (row) => row.resource.title },
    { key: "state", header: t("fleet.state"), nowrap: true, cell: (row) => <ClusterStateBadge state={row.state.state} message={row.state.message} />, sortBy: (row) => row.state.state },
    { key: "revision", header: t("fleet.revision"), cell: (row) => <Revisions state={row.state} /> },
    { key: "message", header: t("fleet.whatToDo"), cell: (row) => row.state.message && <span className={classes.message}>{words.message(row.state.message)}</span> },
    { key: "since", header: t("resource.since"), nowrap: true, cell: (row) => row.state.since && <RelativeTime at={row.state.since} />, sortBy: (row) => instant(row.state.since) },
  ];
  return (
    <Section title={t("fleet.unitsTitle")} count={unitsTotal}>
      {units.length > 0 ? (
        <>
          {unitsTotal > units.length && <Notice>{t("fleet.unitsMore", { shown: words.number(units.length), total: words.number(unitsTotal) })}</Notice>}
          <DataTable csv={memberUnitsCSV} sortParam="units-sort" partial={unitsTotal > units.length} label={t("fleet.unitsTitle")} columns={columns} rows={units} rowKey={(row) => row.resource.name} testId="member-units" />
        </>
      ) : (
        <EmptyState>{t("fleet.unitsNone")}</EmptyState>
      )}
    </Section>
  );
}

/** MemberLink links the page of a member. */
export function MemberLink({ name }: { name: string }) {
  return (
    <Link className={tables.title} to={`/fleet/${encodeURIComponent(name)}`}>
      {name}
    </Link>
  );
}
