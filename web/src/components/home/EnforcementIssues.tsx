import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useFlowCoverage } from "../../api/flows";
import type { Home } from "../../api/types";
import { missing } from "../../lib/coverage";
import { useWords } from "../../lib/use-words";
import { Notice } from "../Feedback";
import { Section } from "../Page";
import classes from "./Home.module.css";

const namedStopped = 3;

const day = { window: "24h", since: undefined, until: undefined } as const;

/**
 * EnforcementIssues shows the security team and auditors how many decisions of the dataplane differ from the policies, how many flows were lost, how
 * long members were not watched, and which rollouts the guard stopped. security reports whether the reader sees the number of disagreements, which is then either there or not known.
 */
export function EnforcementIssues({ home, security }: { home: Home; security: boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  const { data: coverage, error } = useFlowCoverage(day);
  const found = coverage?.available ? missing(coverage) : undefined;
  const duration = words.span(found?.unwatchedSeconds ?? 0);
  const stopped = home.stopped ?? [];
  const names = stopped.slice(0, namedStopped).map((each) => each.title);
  if (stopped.length > namedStopped) names.push(t("home.stoppedMore", { number: words.number(stopped.length - namedStopped) }));
  return (
    <Section title={t("home.watch")} aside={<Link to="/flows">{t("home.explore")}</Link>} testId="watch">
      {((security && home.disagreements === undefined) || error || coverage?.available === false) && <Notice testId="watch-unknown">{t("home.watchUnknown")}</Notice>}
      {found?.known === false && <Notice testId="nothing-watched">{t("home.nothingWatched")}</Notice>}
      <div className={classes.watch}>
        {home.disagreements !== undefined && (
          <Link to="/flows?disagree=true" className={classes.figure} data-tone={home.disagreements > 0 ? "bad" : undefined} data-testid="home-disagreements">
            <strong>{home.disagreementsPartial ? t("home.orMore", { number: words.number(home.disagreements) }) : words.number(home.disagreements)}</strong>
            <span>{t("home.disagreements", { count: home.disagreements })}</span>
          </Link>
        )}
        {found?.known && (
          <Link to="/flows?tab=losses" className={classes.figure} data-tone={found.clusters.length > 0 ? "warn" : undefined} data-testid="home-losses">
            <strong>{words.number(found.lost)}</strong>
            <span>{found.unwatched > 0 ? t("home.lostAndGap", { count: found.lost, duration: found.unwatched > 1 ? t("flows.banner.upTo", { duration }) : duration }) : t("home.lost", { count: found.lost })}</span>
          </Link>
        )}
        {stopped.length > 0 && (
          <Link to="/rollout?stage=enforce&stage=announced&stage=refine&stage=initial" className={classes.figure} data-tone="bad" data-testid="home-stopped">
            <strong>{words.number(stopped.length)}</strong>
            <span>{t("home.stopped", { count: stopped.length, names: words.list(names) })}</span>
          </Link>
        )}
      </div>
    </Section>
  );
}
