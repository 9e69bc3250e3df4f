import { useTranslation } from "react-i18next";
import type { PackageFacts, WorkloadFacts as Workload } from "../api/types";
import { useWords } from "../lib/use-words";
import { SensitivityBadge } from "./Badge";
import classes from "./DecisionFacts.module.css";
import { Fact, FactNames, RefNames, Watched } from "./FactParts";
import { RefName } from "./Names";
import { Sensitivities } from "./Sensitivities";
import tables from "./Tables.module.css";
import { RelativeTime } from "./Time";

/** PackagedResources lists the resources of a version of an access package, beside those of the version before it. */
export function PackagedResources({ resources }: { resources: PackageFacts["resources"] }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <Fact name={t("facts.packaged")} testId="facts-packaged">
      <Sensitivities total={resources.total} counts={resources.sensitivities} />
      <ul className={classes.rows}>
        {resources.items.map(({ resource, sensitivity, change, actions, before }) => (
          <li key={resource.name}>
            <RefName kind="resources" about={resource} />
            {sensitivity && <SensitivityBadge sensitivity={sensitivity} />}
            <span>{words.list(actions)}</span>
            {change !== "kept" && <strong>{t(`facts.packageChange.${change}`, { before: words.list(before ?? []) })}</strong>}
          </li>
        ))}
      </ul>
    </Fact>
  );
}

/** HolderRows shows how many applications hold an access package, and what a version changes for the first of them. */
export function HolderRows({ facts, holders }: { facts: PackageFacts; holders: NonNullable<PackageFacts["holders"]> }) {
  const { t } = useTranslation();
  const words = useWords();
  const changes = facts.changes ?? [];
  const names = (part: (typeof changes)[number]["gets"]) =>
    part.total > part.items.length
      ? `${words.list(part.items.map(({ title }) => title))} ${t("facts.more", { count: part.total - part.items.length })}`
      : words.list(part.items.map(({ title }) => title));
  return (
    <Fact name={t("facts.holders")} testId="facts-holders">
      {holders.total === 0 ? (
        t("facts.noHolders")
      ) : (
        <>
          <span>{t(facts.moreHolders ? "facts.holdersAtLeast" : "facts.applications", { count: holders.total })}</span>
          <p>{t(facts.toHolders ? "facts.toHolders" : "facts.holdersKeep")}</p>
        </>
      )}
      {!facts.toHolders && <RefNames kind="applications" names={holders} />}
      {facts.toHolders && (
        <ul className={classes.rows}>
          {changes.map(({ application, gets, loses, renews }) => (
            <li key={application.name}>
              <RefName kind="applications" about={application} />
              {gets.total > 0 && <span>{t("facts.gets", { resources: names(gets) })}</span>}
              {loses.total > 0 && <span>{t("facts.loses", { resources: names(loses) })}</span>}
              {renews.total > 0 && <span className={tables.muted}>{t("facts.renews", { resources: names(renews) })}</span>}
              {gets.total + loses.total + renews.total === 0 && <span className={tables.muted}>{t("facts.holderUnchanged")}</span>}
            </li>
          ))}
          {holders.total > changes.length && <li className={tables.muted}>{t("facts.more", { count: holders.total - changes.length })}</li>}
        </ul>
      )}
    </Fact>
  );
}

/** WorkloadFacts shows what added addresses of an application reach already, and which connections from them were seen. */
export function WorkloadFacts({ workload, days }: { workload: Workload; days: number }) {
  const { t } = useTranslation();
  const words = useWords();
  const { added, removed, byAddress, observed } = workload;
  const nothing = observed && observed.count + observed.refused + observed.uncertain === 0;
  return (
    <>
      <Fact name={t("facts.workloadAddresses")} testId="facts-addresses">
        {added.length > 0 && <p>{t("facts.addressesAdded", { addresses: words.list(added) })}</p>}
        {removed.length > 0 && <p>{t("facts.addressesRemoved", { addresses: words.list(removed) })}</p>}
        {added.length > 0 && <p className={tables.muted}>{t("facts.addressesReach")}</p>}
      </Fact>
      {byAddress && added.length > 0 && (
        <Fact name={t("facts.byAddress")} testId="facts-by-address">
          {byAddress.total === 0 ? (
            t("facts.noneReached")
          ) : (
            <>
              <span>{t("facts.affectedResources", { count: byAddress.total })}</span>
              <FactNames total={byAddress.total} shown={byAddress.items.length}>
                {byAddress.items.map(({ resource, sensitivity, anyone }) => (
                  <li key={resource.name}>
                    {anyone ? t("facts.anyone", { resource: resource.title }) : <RefName kind="resources" about={resource} />}
                    {sensitivity === "high" && <> <SensitivityBadge sensitivity={sensitivity} /></>}
                  </li>
                ))}
              </FactNames>
            </>
          )}
        </Fact>
      )}
      {observed && (
        <Fact name={t("facts.observed", { days })} testId="facts-address-use">
          {nothing && <span>{t(observed.watched.enough ? "facts.addressUnused" : "facts.addressUnknown")}</span>}
          {observed.count > 0 && <p>{t("facts.addressUsed", { count: observed.count })}</p>}
          {observed.refused > 0 && <p>{t("facts.refused", { count: observed.refused })}</p>}
          {observed.lastSeen && <p>{t("facts.lastSeen")} <RelativeTime at={observed.lastSeen} /></p>}
          {observed.uncertain > 0 && <p className={tables.muted}>{t("facts.uncertainSources", { count: observed.uncertain })}</p>}
          <Watched watched={observed.watched} />
        </Fact>
      )}
    </>
  );
}
