import { Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { useEvidence, useResourceUnused } from "../api/flows";
import { refused, useMe, useResource, useResourceAccess, useResourceConnections } from "../api/queries";
import type { Resource } from "../api/types";
import { AccessPeriodsSection } from "../components/AccessPeriodsSection";
import { AccessTable } from "../components/AccessTable";
import { ModeBadge, SensitivityBadge } from "../components/Badge";
import { ConnectionsSection, useOnlyRefused } from "../components/ConnectionsSection";
import { DataTable } from "../components/DataTable";
import { EvidencePanel } from "../components/evidence/EvidencePanel";
import { ProposalReview } from "../components/evidence/ProposalReview";
import { TemporaryAudit } from "../components/evidence/TemporaryAudit";
import { UnusedSection, useUnusedDays } from "../components/evidence/UnusedSection";
import { EmptyState, Loaded } from "../components/Feedback";
import { Owners, ShortName } from "../components/Names";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { ModeHistorySection } from "../components/ModeHistorySection";
import { Page, Section } from "../components/Page";
import { PastAccessSection } from "../components/PastAccessSection";
import { ProtectionPanel } from "../components/ProtectionPanel";
import { RequestAccessLink } from "../components/RequestAccessLink";
import { SectionIndex } from "../components/SectionIndex";
import tables from "../components/Tables.module.css";
import { RolloutNextStep } from "../components/rollout/RolloutNextStep";
import { TicketsSection } from "../components/TicketsSection";
import { actionsCSV } from "../lib/tables/catalog";
import { useWords } from "../lib/use-words";

/** ModeRequests links the requests about the protection of the resource, for its owners and the security team. */
function ModeRequests({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const security = useMe().data?.roles.includes("security") ?? false;
  if ((!resource.mine && !security) || !resource.class) return null;
  const ask = (kind: "mode" | "onboard" | "offboard") => <RequestAccessLink quiet kind={kind} resource={resource.id} label={t(`resource.ask.${kind}`)} testId={`ask-${kind}`} />;
  return (
    <Group gap={8} mb="sm">
      {resource.protection ? (
        <>
          {ask("mode")}
          {ask("offboard")}
        </>
      ) : (
        ask("onboard")
      )}
      {security && <RequestAccessLink quiet kind="class" object="ResourceClass" name={resource.class} label={t("resource.ask.class")} testId="ask-class" />}
    </Group>
  );
}

/** Known shows the evidence, and the proposal that follows from it, to the owners of the resource. */
function Known({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const evidence = useEvidence(resource.id);
  const unused = useResourceUnused(resource.id, useUnusedDays());
  return (
    <>
      <Section anchor="evidence" title={t("evidence.title")} aside={t("evidence.aside")} testId="evidence">
        <Loaded query={evidence}>{(score) => <EvidencePanel score={score} />}</Loaded>
      </Section>
      <ProposalReview resource={resource} />
      <UnusedSection query={unused} about="resources" />
    </>
  );
}

function Sections({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const words = useWords();
  const access = useResourceAccess(resource.id);
  const onlyRefused = useOnlyRefused();
  const connections = useResourceConnections(resource.id, onlyRefused ? refused : undefined);
  const answers = canSeeGovernance(useMe().data) || resource.mine;
  const { protection } = resource;
  const closed = protection?.effectiveMode === "Enforce";
  return (
    <>
      {answers && resource.class && <RolloutNextStep resource={resource} />}
      <Section anchor="access" title={t("resource.who")} count={access.data?.items.length} aside={answers ? undefined : t("resource.othersHidden")} testId="access">
        <Loaded query={access}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState>{closed && resource.mine ? t("resource.whoEmptyEnforced") : t("resource.whoEmpty")}</EmptyState>
            ) : (
              <AccessTable items={items} peer="application" label={t("resource.who")} about={resource.id} />
            )
          }
        </Loaded>
      </Section>
      <ConnectionsSection id="tried" title={t("resource.tried")} query={connections} peer="application" flows={`/flows?resource=${encodeURIComponent(resource.id)}`} />
      <Section anchor="protection" title={t("resource.protection")} aside={protection && t("resource.statements", { count: protection.statements })} testId="protection">
        <ModeRequests resource={resource} />
        <TemporaryAudit resource={resource} />
        <ProtectionPanel protection={protection} />
      </Section>
      {answers && <Known resource={resource} />}
      <PastAccessSection resource={resource} />
      {answers && <AccessPeriodsSection resource={resource.id} />}
      {answers && <ModeHistorySection resource={resource} />}
      <Section anchor="actions" title={t("resource.actions")}>
        {resource.actions.length === 0 ? (
          <EmptyState>{t("resource.actionsEmpty")}</EmptyState>
        ) : (
          <DataTable
            label={t("resource.actions")}
            rows={resource.actions}
            rowKey={(action) => action.name}
            sortParam="actions-sort"
            csv={actionsCSV(resource.id)}
            columns={[
              { key: "name", header: t("resource.action"), cell: (action) => <code className={tables.code}>{action.name}</code>, sortBy: (action) => action.name },
              { key: "ports", header: t("resource.ports"), cell: (action) => <span className={tables.muted}>{words.list(action.ports)}</span>, sortBy: (action) => action.ports[0] },
            ]}
          />
        )}
      </Section>
      <TicketsSection about="resource" id={resource.id} empty={t("resource.ticketsEmpty")} />
    </>
  );
}

/** ResourcePage shows one resource: its rollout, access, connections, protection and tickets. */
export function ResourcePage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const query = useResource(id);
  const resource = query.data;
  // Owners of the resource who own no application cannot request access; all others get the link, whose page explains who can.
  const ownsApplication = useMe().data?.roles.includes("application-owner") ?? false;
  const offers = resource?.class !== undefined && (!resource.mine || ownsApplication);
  return (
    <Page
      wide
      title={resource?.title ?? id}
      crumbs={[{ to: "/resources", label: t("resources.title") }]}
      sub={
        resource && (
          <>
            <ShortName name={resource.name} /> · <Owners owners={resource.owners} />
            {resource.environment && ` · ${resource.environment}`}
            {resource.description && <div>{resource.description}</div>}
            <Group gap={6} mt={8}>
              {resource.protection && <ModeBadge mode={resource.protection.effectiveMode} testId="resource-mode" />}
              <SensitivityBadge sensitivity={resource.sensitivity} />
            </Group>
          </>
        )
      }
      actions={offers && <RequestAccessLink resource={id} primary={!resource.mine} />}
    >
      <Loaded query={query}>{(data) => <SectionIndex><Sections key={data.id} resource={data} /></SectionIndex>}</Loaded>
    </Page>
  );
}
