import { Button, Checkbox, Select } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useProposal } from "../../api/flows";
import type { Proposal, ProposalLine, Resource } from "../../api/types";
import { isAdoptable, lineKey, newLines, ofClient, reviewed } from "../../lib/proposal";
import { secondsPerDay } from "../../lib/time";
import { among, useFilters } from "../../lib/use-filters";
import { useWords } from "../../lib/use-words";
import { EmptyState, Loaded } from "../Feedback";
import { CopyName } from "../Names";
import { Section } from "../Page";
import { YamlText } from "../policies/YamlDetails";
import policies from "../policies/Policies.module.css";
import { DayAndTime } from "../Time";
import { AdoptDialog } from "./AdoptDialog";
import { ClientNoticeDialog } from "./ClientNoticeDialog";
import classes from "./Evidence.module.css";
import { ProposalTable } from "./ProposalTable";
import { ReviewState } from "./ReviewState";
import { UnproposedTraffic } from "./UnproposedTraffic";

const days = ["1", "7", "14", "31"] as const;

/** Open shows the proposal's lines for selection, and opens one request for all selected lines. */
function Open({ resource, proposal, since }: { resource: Resource; proposal: Proposal; since: string | undefined }) {
  const { t } = useTranslation();
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState(false);
  const [notified, setNotified] = useState<ProposalLine>();
  const [search, change] = useFilters();
  const { open: all, covered } = reviewed(proposal.lines);
  const recent = newLines(all);
  const onlyNew = proposal.review !== undefined && search.get("new") === "true";
  const open = onlyNew ? recent : all;
  const possible = open.filter(isAdoptable);
  const chosen = possible.filter((line) => picked.has(lineKey(line)));
  const may = proposal.canAdopt ?? false;
  const toggle = (key: string) =>
    setPicked((before) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  const everything = chosen.length === possible.length;
  return (
    <>
      {proposal.review && all.length > 0 && (recent.length > 0 || onlyNew) && (
        <Checkbox mb="xs" size="sm" label={t("proposal.review.onlyNew", { count: recent.length })} checked={onlyNew} onChange={(event) => change({ new: event.currentTarget.checked ? "true" : undefined })} data-testid="only-new" />
      )}
      {all.length === 0 ? (
        <EmptyState testId="proposal-empty">{t(covered.length > 0 ? "proposal.allCovered" : "proposal.empty")}</EmptyState>
      ) : open.length === 0 ? (
        <EmptyState testId="proposal-nothing-new">{t("proposal.review.nothingNew")}</EmptyState>
      ) : (
        <>
          {may && possible.length > 0 && (
            <Checkbox mb="xs" size="sm" label={t("proposal.chooseAll", { count: possible.length })} checked={everything} indeterminate={chosen.length > 0 && !everything} onChange={() => setPicked(new Set(everything ? [] : possible.map(lineKey)))} data-testid="choose-all" />
          )}
          <ProposalTable label={t("proposal.title")} lines={open} sortParam="proposal-sort" {...(may ? { chosen: picked, onToggle: toggle, onNotify: setNotified } : {})} />
        </>
      )}
      {chosen.length > 0 && (
        <div className={classes.bulk} role="region" aria-label={t("proposal.chosen", { count: chosen.length })}>
          <span>{t("proposal.chosen", { count: chosen.length })}</span>
          <Button size="xs" onClick={() => setAsking(true)} data-testid="adopt">
            {t("proposal.adopt")}
          </Button>
        </div>
      )}
      {covered.length > 0 && (
        <details className={classes.fold}>
          <summary>{t("proposal.covered", { count: covered.length })}</summary>
          <ProposalTable label={t("proposal.covered", { count: covered.length })} lines={covered} sortParam="covered-sort" />
        </details>
      )}
      {notified && <ClientNoticeDialog resource={resource} line={notified} lines={ofClient(all, notified)} since={since} onClose={() => setNotified(undefined)} />}
      {asking && <AdoptDialog resource={resource} lines={chosen} onClose={() => setAsking(false)} />}
    </>
  );
}

function Yaml({ yaml }: { yaml: string }) {
  const { t } = useTranslation();
  if (yaml === "") return null;
  return (
    <details className={`${classes.fold} ${policies.yaml}`}>
      <summary>{t("proposal.yaml")}</summary>
      <CopyName name={yaml} />
      <YamlText text={yaml} label={t("proposal.yaml")} />
    </details>
  );
}

/** ProposalReview shows the observed clients that would be refused, as a proposal to review. Nothing is granted automatically. */
export function ProposalReview({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const words = useWords();
  const [search, change] = useFilters();
  const chosen = among(search.getAll("seen"), days)[0];
  // Rounded to the minute, so that the query keeps its key.
  const [now] = useState(() => Math.floor(Date.now() / 60_000) * 60_000);
  const since = chosen && new Date(now - Number(chosen) * secondsPerDay * 1_000).toISOString();
  const query = useProposal(resource.id, since ? { since } : {});
  const data = query.data;
  return (
    <Section
      anchor="proposal"
      title={t("proposal.title")}
      aside={
        <Select
          size="xs"
          aria-label={t("flows.window")}
          placeholder={t("proposal.usualWindow")}
          clearable
          data={days.map((each) => ({ value: each as string, label: t("proposal.lastDays", { duration: words.duration(Number(each) * secondsPerDay) }) }))}
          value={chosen ?? null}
          onChange={(next) => change({ seen: next ?? undefined })}
          data-testid="proposal-window"
        />
      }
      testId="proposal"
    >
      <p className={classes.todo}>{t("proposal.intro")}</p>
      {data && (
        <p className={classes.todo} data-testid="proposal-period">
          {t("proposal.period")} <DayAndTime at={data.since} /> – <DayAndTime at={data.until} />
        </p>
      )}
      <Loaded query={query}>
        {(proposal) => (
          <>
            <ReviewState resource={resource} proposal={proposal} />
            <Open resource={resource} proposal={proposal} since={since} />
            <p className={classes.todo}>
              <Link to={`/traffic?${new URLSearchParams({ resource: resource.name, level: "resource", proposal: resource.id }).toString()}`} data-testid="proposal-map">{t("proposal.overMap")}</Link>
            </p>
            <UnproposedTraffic resource={resource} proposal={proposal} />
            <Yaml yaml={proposal.yaml} />
          </>
        )}
      </Loaded>
    </Section>
  );
}
