import { useTranslation } from "react-i18next";
import type { StatementFacts as Facts } from "../api/types";
import { useWords } from "../lib/use-words";
import { ModeBadge, SensitivityBadge } from "./Badge";
import classes from "./DecisionFacts.module.css";
import { Fact, FactNames, RefNames, Watched } from "./FactParts";
import { Owners, RefName } from "./Names";
import { Sensitivities } from "./Sensitivities";
import tables from "./Tables.module.css";
import { RelativeTime } from "./Time";

function Resources({ resources }: { resources: Facts["resources"] }) {
  const { t } = useTranslation();
  const { total, items, notOnboarded } = resources;
  return (
    <Fact name={t("facts.covers")} testId="facts-covered">
      {total === 0 ? <span>{t("facts.coversNothing")}</span> : <Sensitivities total={total} counts={resources.sensitivities} />}
      <ul className={classes.rows}>
        {items.map(({ resource, sensitivity, mode, owners }) => (
          <li key={resource.name}>
            <RefName kind="resources" about={resource} />
            {sensitivity && <SensitivityBadge sensitivity={sensitivity} />}
            {mode ? <ModeBadge mode={mode} /> : <span className={tables.muted}>{t("facts.notOnboarded")}</span>}
            {owners.length > 0 && <span className={tables.muted}>{t("facts.owners")} <Owners owners={owners} /></span>}
          </li>
        ))}
        {total > items.length && <li className={tables.muted}>{t("facts.more", { count: total - items.length })}</li>}
      </ul>
      {notOnboarded > 0 && <p className={tables.muted}>{t("facts.noEffectYet", { count: notOnboarded })}</p>}
      {resources.later && <p>{t("facts.laterResources")}</p>}
    </Fact>
  );
}

function Subjects({ subjects }: { subjects: Facts["subjects"] }) {
  const { t } = useTranslation();
  const words = useWords();
  const { anyone, applications, addresses, registered } = subjects;
  return (
    <Fact name={t("facts.subjects")} testId="facts-subjects">
      {anyone && <p><strong>{t("facts.subjectsAnyone")}</strong></p>}
      {applications.total > 0 && (
        <>
          <span>{t("facts.applications", { count: applications.total })}</span>
          <RefNames kind="applications" names={applications} />
        </>
      )}
      {!anyone && applications.total === 0 && addresses.length === 0 && <span>{t("facts.subjectsNone")}</span>}
      {addresses.length > 0 && <p>{t("facts.addresses", { addresses: words.list(addresses) })}</p>}
      {registered.total > 0 && (
        <>
          <p>{t("facts.registered", { count: registered.total })}</p>
          <RefNames kind="applications" names={registered} />
        </>
      )}
      {subjects.later && <p>{t("facts.laterApplications")}</p>}
    </Fact>
  );
}

/** Changed lists the clients whose connections a statement decides otherwise in one way. */
function Changed({ clients, text, testId }: { clients: NonNullable<Facts["effect"]>["letsIn"]; text: "letsIn" | "cutsOff" | "otherwise"; testId: string }) {
  const { t } = useTranslation();
  const words = useWords();
  if (clients.clients === 0) return null;
  return (
    <div data-testid={testId}>
      <span>{t(`facts.${text}`, { count: clients.clients, connections: words.number(clients.connections) })}</span>
      <FactNames total={clients.clients} shown={clients.items.length}>
        {clients.items.map(({ subject, count, lastSeen }) => (
          <li key={`${subject.name} ${subject.title}`}>
            {t("facts.observedClient", { client: subject.title, count: words.number(count) })}
            <span className={tables.muted}>, {t("facts.lastSeen")} <RelativeTime at={lastSeen} /></span>
          </li>
        ))}
      </FactNames>
    </div>
  );
}

/** Effect shows whom the statement would let in or cut off. That nobody was seen counts as nobody only where everything was watched. */
function Effect({ effect, days }: { effect: Facts["effect"]; days: number }) {
  const { t } = useTranslation();
  const nobody = effect && effect.letsIn.clients + effect.cutsOff.clients === 0;
  return (
    <Fact name={t("facts.effect", { days })} testId="facts-effect">
      {!effect && <span>{t("facts.effectUnknown")}</span>}
      {nobody && <span>{t(effect.unknown > 0 || effect.truncated ? "facts.effectNobodyKnown" : "facts.effectNobody")}</span>}
      {effect && (
        <>
          <Changed clients={effect.letsIn} text="letsIn" testId="facts-lets-in" />
          <Changed clients={effect.cutsOff} text="cutsOff" testId="facts-cuts-off" />
          <Changed clients={effect.otherwise} text="otherwise" testId="facts-otherwise" />
          {effect.unknown > 0 && <p className={tables.muted}>{t("facts.effectGaps", { count: effect.unknown })}</p>}
          {effect.truncated && <p className={tables.muted}>{t("facts.effectTruncated")}</p>}
        </>
      )}
    </Fact>
  );
}

function Observed({ observed, days }: { observed: NonNullable<Facts["observed"]>; days: number }) {
  const { t } = useTranslation();
  const words = useWords();
  const { total, unnamed, uncertain, items, watched, examined, resources } = observed;
  const nothing = total === 0 && unnamed === 0 && uncertain === 0;
  const known = watched.enough && examined === resources;
  return (
    <Fact name={t("facts.observed", { days })} testId="facts-observed">
      {nothing && <span>{t(known ? "facts.nothingObserved" : "facts.observedUnknown")}</span>}
      {total > 0 && (
        <>
          <span>{t(observed.more ? "facts.clientsAtLeast" : "facts.clientCount", { count: total })}</span>
          <FactNames total={total} shown={items.length}>
            {items.map(({ subject, count, refused, lastSeen }) => (
              <li key={subject.name}>
                {t(refused > 0 ? "facts.observedRefused" : "facts.observedClient", { client: subject.title, count: words.number(count), refused: words.number(refused) })}
                <span className={tables.muted}>, {t("facts.lastSeen")} <RelativeTime at={lastSeen} /></span>
              </li>
            ))}
          </FactNames>
        </>
      )}
      {unnamed > 0 && <p className={tables.muted}>{t("facts.unnamed", { count: unnamed })}</p>}
      {uncertain > 0 && <p className={tables.muted}>{t("facts.uncertainSources", { count: uncertain })}</p>}
      {examined < resources && <p className={tables.muted}>{t("facts.examinedOf", { count: resources, examined: words.number(examined) })}</p>}
      <Watched watched={watched} />
    </Fact>
  );
}

interface Props {
  statement: Facts;
  /** Whether the item waits for a decision, so that its effect is computed. */
  pending: boolean;
  days: number;
}

/** StatementFacts shows what the names of a statement cover, whom it would let in or cut off, and which of its clients were seen. */
export function StatementFacts({ statement, pending, days }: Props) {
  return (
    <>
      <Resources resources={statement.resources} />
      <Subjects subjects={statement.subjects} />
      {pending && <Effect effect={statement.effect} days={days} />}
      {statement.observed && <Observed observed={statement.observed} days={days} />}
    </>
  );
}
