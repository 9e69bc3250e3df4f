import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { asApiError } from "../api/client";
import { useTicketFacts } from "../api/flows";
import type { CatalogRef, ItemFacts, TicketFacts, TicketItem } from "../api/types";
import { useWords } from "../lib/use-words";
import { ModeBadge, SensitivityBadge, TicketStateBadge } from "./Badge";
import classes from "./DecisionFacts.module.css";
import { Fact, FactNames, RefNames, Watched } from "./FactParts";
import { ErrorState, Notice, RowsSkeleton } from "./Feedback";
import { Owners, RefName } from "./Names";
import { HolderRows, PackagedResources, WorkloadFacts } from "./ObjectFacts";
import { StatementFacts } from "./StatementFacts";
import tables from "./Tables.module.css";
import { RelativeTime } from "./Time";

/** Window is the evidence window of the facts, and whether its flows could be read. */
type Window = Pick<TicketFacts, "since" | "until" | "flowsAvailable">;

const daysOf = ({ since, until }: Window) => Math.round((Date.parse(until) - Date.parse(since)) / 86_400_000);

function Clients({ clients }: { clients: NonNullable<ItemFacts["clients"]> }) {
  const { t } = useTranslation();
  return (
    <Fact name={t("facts.clients")} testId="facts-clients">
      {clients.total === 0 ? (
        t("facts.noClients")
      ) : (
        <>
          <span>{t("facts.clientCount", { count: clients.total })}</span>
          <RefNames kind="applications" names={clients} />
        </>
      )}
    </Fact>
  );
}

function Observed({ observed, days }: { observed: NonNullable<ItemFacts["observed"]>; days: number }) {
  const { t } = useTranslation();
  const words = useWords();
  const nothing = observed.total === 0 && observed.unnamed === 0;
  return (
    <Fact name={t("facts.observed", { days })} testId="facts-observed">
      {nothing && <span>{t(observed.watched.enough ? "facts.nothingObserved" : "facts.observedUnknown")}</span>}
      {observed.total > 0 && (
        <>
          <span>{t("facts.clientCount", { count: observed.total })}</span>
          <FactNames total={observed.total} shown={observed.items.length}>
            {observed.items.map(({ subject, count, refused }) => (
              <li key={subject.name}>
                {t(refused > 0 ? "facts.observedRefused" : "facts.observedClient", { client: subject.title, count: words.number(count), refused: words.number(refused) })}
              </li>
            ))}
          </FactNames>
        </>
      )}
      {observed.unnamed > 0 && <p className={tables.muted}>{t("facts.unnamed", { count: observed.unnamed })}</p>}
      <Watched watched={observed.watched} />
    </Fact>
  );
}

function Reached({ reached, application }: { reached: NonNullable<ItemFacts["reached"]>; application: CatalogRef | undefined }) {
  const { t } = useTranslation();
  return (
    <Fact name={t("facts.reached", { application: application?.title ?? "" })} testId="facts-reached">
      {reached.total === 0 ? (
        t("facts.noneReached")
      ) : (
        <>
          <span>{t("facts.affectedResources", { count: reached.total })}</span>
          <FactNames total={reached.total} shown={reached.items.length}>
            {reached.items.map(({ resource, sensitivity, anyone }) => (
              <li key={resource.name}>
                {anyone ? t("facts.anyone", { resource: resource.title }) : <RefName kind="resources" about={resource} />}
                {sensitivity === "high" && <> <SensitivityBadge sensitivity={sensitivity} /></>}
              </li>
            ))}
          </FactNames>
        </>
      )}
    </Fact>
  );
}

function Earlier({ earlier, ofStatement }: { earlier: NonNullable<ItemFacts["earlier"]>; ofStatement: boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <Fact name={t("facts.earlier")} testId="facts-earlier">
      {earlier.items.length === 0 ? (
        t(ofStatement ? "facts.noneEarlierStatement" : "facts.noneEarlier")
      ) : (
        <ul className={classes.rows}>
          {earlier.items.map((row) => (
            <li key={`${row.createdAt} ${row.ticket ?? ""}`}>
              {row.ticket && <Link to={`/tickets/${row.ticket}`}>{row.ticket}</Link>}
              <span>{t(`kind.${row.kind}`)}</span>
              <TicketStateBadge state={row.state} />
              <RelativeTime at={row.decidedAt ?? row.createdAt} />
              {row.deciders && row.deciders.length > 0 && <span className={tables.muted}>{t("facts.decidedBy", { people: words.list(row.deciders.map((person) => person.displayName)) })}</span>}
            </li>
          ))}
          {earlier.total > earlier.items.length && <li className={tables.muted}>{t("facts.more", { count: earlier.total - earlier.items.length })}</li>}
          {earlier.more && <li className={tables.muted}>{t("facts.earlierMore", { count: earlier.total })}</li>}
        </ul>
      )}
    </Fact>
  );
}

/** Use shows the use of the access since its grant. That nothing was seen counts as no use only where everything was watched. */
function Use({ use }: { use: NonNullable<ItemFacts["use"]> }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <Fact name={t("facts.use")} testId="facts-use">
      {use.state === "used" ? (
        <>
          <span data-testid="facts-used">
            {use.count > 0 ? t("facts.used", { count: use.count }) : t("facts.stillOpen")}
            {use.lastUsed && <>, {t("facts.lastUsed")} <RelativeTime at={use.lastUsed} /></>}
          </span>
          <FactNames total={use.total} shown={use.from.length}>
            {use.from.map(({ from, to, count }) => (
              <li key={`${from} ${to}`}>{t("facts.source", { from: from || t("facts.sourceUnknown"), to, count: words.number(count) })}</li>
            ))}
          </FactNames>
        </>
      ) : (
        <span>{t(`facts.${use.state}`)}</span>
      )}
      {use.refused > 0 && <p className={tables.muted}>{t("facts.refused", { count: use.refused })}</p>}
      <Watched watched={use.watched} />
    </Fact>
  );
}

function Affected({ affected, days }: { affected: NonNullable<ItemFacts["affected"]>; days: number }) {
  const { t } = useTranslation();
  const first = affected.firstResources ?? [];
  return (
    <Fact name={t("facts.affected")} testId="facts-affected">
      <span>{t("facts.affectedResources", { count: affected.resources })}</span>
      <RefNames kind="resources" names={{ total: affected.resources, items: first }} />
      {affected.resources > 0 && <p>{affected.clients === undefined ? t("facts.affectedUnknown") : t("facts.affectedClients", { count: affected.clients, days })}</p>}
      {affected.clients !== undefined && affected.examined < affected.resources && <p className={tables.muted}>{t("facts.examined", { count: affected.examined })}</p>}
    </Fact>
  );
}

function Item({ facts, item, window }: { facts: ItemFacts; item: TicketItem | undefined; window: Window }) {
  const { t } = useTranslation();
  const days = daysOf(window);
  const { resource, clients, observed, reached, earlier, use, affected, statement, workload } = facts;
  return (
    <>
      <dl className={classes.facts}>
        {resource && (
          <Fact name={t("facts.resource")} testId="facts-resource">
            <span className={tables.badges}>
              <RefName kind="resources" about={resource} />
              {facts.sensitivity && <SensitivityBadge sensitivity={facts.sensitivity} />}
              {facts.mode ? <ModeBadge mode={facts.mode} /> : <span className={tables.muted}>{t("facts.notOnboarded")}</span>}
            </span>
            {facts.owners && facts.owners.length > 0 && <p className={tables.muted}>{t("facts.owners")} <Owners owners={facts.owners} /></p>}
          </Fact>
        )}
        {use && <Use use={use} />}
        {clients && <Clients clients={clients} />}
        {observed && <Observed observed={observed} days={days} />}
        {statement && <StatementFacts statement={statement} pending={item?.state === "pending"} days={days} />}
        {facts.package && <PackagedResources resources={facts.package.resources} />}
        {facts.package?.holders && <HolderRows facts={facts.package} holders={facts.package.holders} />}
        {workload && <WorkloadFacts workload={workload} days={days} />}
        {reached && <Reached reached={reached} application={facts.application} />}
        {earlier && <Earlier earlier={earlier} ofStatement={statement !== undefined} />}
        {affected && <Affected affected={affected} days={days} />}
      </dl>
      {!resource && !reached && !affected && !statement && !facts.package && !workload && <p className={tables.muted}>{t("facts.none")}</p>}
      {facts.hidden && facts.hidden.length > 0 && <p className={tables.muted} data-testid="facts-hidden">{t("facts.hidden")}</p>}
    </>
  );
}

interface Props {
  id: string;
  items: TicketItem[];
}

/**
 * DecisionFacts shows, beside the buttons of a decision, the facts that an approver needs. It shows nothing if the server refuses the facts to the
 * reader. If there are several items, only the first one is expanded.
 */
export function DecisionFacts({ id, items }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const query = useTicketFacts(id);
  const { status } = asApiError(query.error);
  if (query.error && !query.data && (status === 403 || status === 404)) return null;
  const pages = query.data?.pages ?? [];
  const unavailable = pages.find((page) => !page.flowsAvailable);
  const nameOf = ({ application, resource }: ItemFacts, item: TicketItem | undefined) =>
    application && resource ? t("facts.item", { application: application.title, resource: resource.title }) : (resource?.title ?? application?.title ?? item?.object?.name ?? (item?.scope ? words.names(item.scope.resources) : ""));
  return (
    <section className={classes.section} aria-label={t("facts.title")} data-testid="ticket-facts">
      <h3>{t("facts.title")}</h3>
      {!query.data && (query.error ? <ErrorState error={query.error} onRetry={() => void query.refetch()} /> : <RowsSkeleton rows={3} />)}
      {unavailable && <Notice testId="facts-unavailable">{unavailable.message ? words.message(unavailable.message) : t("facts.unavailable")}</Notice>}
      {pages.flatMap((page) =>
        page.items.map((facts) =>
          items.length === 1 ? (
            <Item key={facts.position} facts={facts} item={items[facts.position]} window={page} />
          ) : (
            <details key={facts.position} className={classes.item} open={facts.position === 0} data-testid={`facts-${facts.position}`}>
              <summary>
                {nameOf(facts, items[facts.position])}
                {facts.sensitivity && <> <SensitivityBadge sensitivity={facts.sensitivity} /></>}
              </summary>
              <Item facts={facts} item={items[facts.position]} window={page} />
            </details>
          ),
        ),
      )}
      {query.hasNextPage && (
        <Button variant="subtle" size="compact-sm" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()} data-testid="facts-more">
          {t("facts.moreItems")}
        </Button>
      )}
    </section>
  );
}
