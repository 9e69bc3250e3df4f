import { useTranslation } from "react-i18next";
import { useAccessPath } from "../../api/fleet";
import type { AccessPath } from "../../api/types";
import { useFilters } from "../../lib/use-filters";
import { DecisionBadge, ModeBadge } from "../Badge";
import { ApplicationSelect, ResourceSelect } from "../EntitySelect";
import { EmptyState, Loaded, Notice } from "../Feedback";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import classes from "./Access.module.css";
import { EdgeTable } from "./AccessEdges";

function Decisions({ path }: { path: AccessPath }) {
  const { t } = useTranslation();
  return (
    <ul className={classes.steps} data-testid="path-decisions">
      {path.decisions.map((each) => (
        <li key={`${each.cluster} ${each.action}`}>
          <code className={tables.code}>{each.action}</code>
          <DecisionBadge decision={each.decision} />
          {each.mode && <ModeBadge mode={each.mode} />}
          <span className={tables.muted}>{each.cluster ? t("accessMap.inCluster", { cluster: each.cluster }) : t("accessMap.everywhere")}</span>
          {each.policy && <span className={tables.muted}>{`${each.policy} / ${each.sid ?? ""}`}</span>}
        </li>
      ))}
    </ul>
  );
}

function Answer({ path }: { path: AccessPath }) {
  const { t } = useTranslation();
  return (
    <>
      <Decisions path={path} />
      {!path.flowsAvailable && <Notice testId="path-flows-unavailable">{t("accessMap.flowsUnknown")}</Notice>}
      <h3>{t("accessMap.direct")}</h3>
      {path.direct.length > 0 ? <EdgeTable flows={path.flowsAvailable} rows={path.direct} label={t("accessMap.direct")} /> : <EmptyState testId="path-none">{t("accessMap.pathNone")}</EmptyState>}
      {path.against.length > 0 && (
        <>
          <h3>{t("accessMap.against")}</h3>
          <EdgeTable flows={path.flowsAvailable} rows={path.against} label={t("accessMap.against")} />
        </>
      )}
      <h3>{t("accessMap.chains")}</h3>
      {path.chains.length === 0 && <p className={tables.muted}>{t("accessMap.chainsNone")}</p>}
      {path.chains.map(({ steps }, index) => (
        <div key={steps.map((each) => each.resource.name).join(" ")}>
          <h4>{t("accessMap.chain", { number: index + 1 })}</h4>
          <EdgeTable flows={path.flowsAvailable} rows={steps} label={t("accessMap.chain", { number: index + 1 })} />
        </div>
      ))}
      {path.cut && <Notice>{t("accessMap.chainsCut")}</Notice>}
    </>
  );
}

/** PathFinder shows how a subject can reach a resource. Both are in the URL, so that the answer can be shared. */
export function PathFinder() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const [from, to] = [search.get("from") ?? "", search.get("to") ?? ""];
  const query = useAccessPath(from, to);
  return (
    <Section anchor="path" title={t("accessMap.pathTitle")} testId="path-finder">
      <div className={classes.path}>
        <ApplicationSelect label={t("accessMap.from")} clearable value={from} onChange={(next) => change({ from: next })} nothingFound={t("govern.noMatch")} testId="path-from" />
        <ResourceSelect label={t("accessMap.to")} clearable value={to} onChange={(next) => change({ to: next })} nothingFound={t("govern.noMatch")} testId="path-to" />
      </div>
      {from === "" || to === "" ? <p className={tables.muted}>{t("accessMap.pathIntro")}</p> : <Loaded query={query}>{(path) => <Answer path={path} />}</Loaded>}
    </Section>
  );
}
