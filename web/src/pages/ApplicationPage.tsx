import { useTranslation } from "react-i18next";
import { useParams } from "react-router";
import { useApplicationUnused } from "../api/flows";
import { refused, useApplication, useApplicationAccess, useApplicationConnections, useMe } from "../api/queries";
import { AccessPeriodsSection } from "../components/AccessPeriodsSection";
import { AccessTable } from "../components/AccessTable";
import { ConnectionsSection, useOnlyRefused } from "../components/ConnectionsSection";
import { UnusedSection, useUnusedDays } from "../components/evidence/UnusedSection";
import { EmptyState, Loaded } from "../components/Feedback";
import { Owners, ShortName } from "../components/Names";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { Page, Section } from "../components/Page";
import { RequestAccessLink } from "../components/RequestAccessLink";
import { SectionIndex } from "../components/SectionIndex";
import { TicketsSection } from "../components/TicketsSection";
import { WorkloadsSection } from "../components/WorkloadsSection";

function Sections({ id, mine }: { id: string; mine: boolean }) {
  const { t } = useTranslation();
  const access = useApplicationAccess(id);
  const onlyRefused = useOnlyRefused();
  const answers = canSeeGovernance(useMe().data) || mine;
  const unused = useApplicationUnused(id, useUnusedDays(), answers);
  const connections = useApplicationConnections(id, onlyRefused ? refused : undefined);
  return (
    <>
      <Section anchor="access" title={t("application.reach")} count={access.data?.items.length} testId="access">
        <Loaded query={access}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState action={mine ? <RequestAccessLink application={id} /> : undefined}>{t("application.reachEmpty")}</EmptyState>
            ) : (
              <AccessTable items={items} peer="resource" label={t("application.reach")} about={id} />
            )
          }
        </Loaded>
      </Section>
      <ConnectionsSection id="refused" title={onlyRefused ? t("application.refused") : t("application.connections")} query={connections} peer="resource" request={mine} flows={`/flows?subject=${encodeURIComponent(id)}`} />
      {answers && <AccessPeriodsSection application={id} />}
      {answers && <UnusedSection query={unused} about="applications" />}
      <WorkloadsSection application={id} />
      <TicketsSection about="application" id={id} empty={t("application.ticketsEmpty")} />
    </>
  );
}

/** ApplicationPage shows one application: its access, connections, unused grants, workloads and tickets. */
export function ApplicationPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const query = useApplication(id);
  const app = query.data;
  return (
    <Page
      wide
      title={app?.title ?? id}
      crumbs={[{ to: "/applications", label: t("applications.title") }]}
      sub={
        app && (
          <>
            <ShortName name={app.name} /> · <Owners owners={app.owners} />
            {app.environment && ` · ${app.environment}`}
            {app.description && <div>{app.description}</div>}
          </>
        )
      }
      actions={app?.mine && <RequestAccessLink application={id} primary />}
    >
      <Loaded query={query}>{({ mine }) => <SectionIndex><Sections key={id} id={id} mine={mine} /></SectionIndex>}</Loaded>
    </Page>
  );
}
