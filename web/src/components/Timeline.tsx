import { IconLoader2 } from "@tabler/icons-react";
import { createElement } from "react";
import { useTranslation } from "react-i18next";
import type { CatalogRef, Ticket, TicketItem } from "../api/types";
import { matterOf } from "../lib/items";
import { elapsed } from "../lib/time";
import { timeline } from "../lib/timeline";
import type { ClusterLine, TimelineNode } from "../lib/timeline";
import { useWords } from "../lib/use-words";
import { ClusterStateBadge } from "./Badge";
import { Comment } from "./Comment";
import { NamedText, PersonName } from "./Names";
import { useWorstMembers } from "./MemberSummary";
import { StepVotes } from "./StepVotes";
import { RelativeTime, PreciseTime } from "./Time";
import { nodeIcon, useNodeTitle } from "./timeline-nodes";
import classes from "./Timeline.module.css";

/** precise contains the kinds of nodes whose times are shown with milliseconds: those after the approval. */
const precise = new Set<TimelineNode["kind"]>(["approved", "written", "compiled", "clusters", "effective", "failed", "revoke-requested", "revoke-written", "revoked", "expired", "break-glass"]);

/** Cluster shows one member. A member that was read back without a revision has no policy any more: the access was revoked, or the mode is Observe. */
function Cluster({ line, phase, testId }: { line: ClusterLine; phase: TimelineNode["phase"]; testId: string }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <li className={classes.cluster} data-testid={testId}>
      <span className={classes.clusterName}>{line.cluster}</span>
      <ClusterStateBadge state={line.live?.state ?? (line.realizedAt ? "Realized" : "Pending")} message={line.live?.message} gone={phase === "revoke" || (!line.live && line.realizedAt !== undefined && !line.revision)} />
      <span className={classes.marks}>
        {line.realizedAt && (
          <span>
            {t("timeline.readBack")} <PreciseTime at={line.realizedAt} />
          </span>
        )}
        {line.revision && <span className={classes.mono}>{line.revision.slice(0, 8)}</span>}
      </span>
      {line.live?.message && line.live.state !== "Realized" && <span className={classes.message}>{words.message(line.live.message)}</span>}
    </li>
  );
}

function Dot({ node }: { node: TimelineNode }) {
  const icon = nodeIcon(node);
  return (
    <span className={classes.dot}>
      {createElement(icon, { size: 14, stroke: 2.2, "aria-hidden": true, ...(icon === IconLoader2 ? { className: classes.spin } : {}) })}
    </span>
  );
}

/** refsOf returns the references of a ticket to entities of the catalog. */
const refsOf = ({ items }: Ticket) => items.flatMap(({ application, resource, scope }) => [application, resource, ...(scope?.subjectRefs ?? []), ...(scope?.resourceRefs ?? [])]).filter((each) => each !== undefined);

function Remark({ node, refs }: { node: TimelineNode; refs: CatalogRef[] }) {
  const words = useWords();
  if (node.message) return <p className={classes.note}><NamedText text={words.message(node.message)} refs={refs} /></p>;
  if (node.lines) return <pre className={classes.lines}><NamedText text={node.lines.map((line) => words.message(line)).join("\n")} refs={refs} /></pre>;
  if (!node.comment) return null;
  return <Comment text={node.comment} />;
}

/** mostMembers is the number of members that are shown at first. */
const mostMembers = 20;

function Clusters({ lines, phase }: { lines: NonNullable<TimelineNode["clusters"]>; phase: TimelineNode["phase"] }) {
  // A member without a live state is done.
  const { shown, more } = useWorstMembers(lines, mostMembers, (line) => line.live?.state);
  return (
    <>
      <ul className={classes.clusters}>
        {shown.map((line) => (
          <Cluster key={line.cluster} line={line} phase={phase} testId={`timeline-cluster-${phase}-${line.cluster}`} />
        ))}
      </ul>
      {more}
    </>
  );
}

function Node({ node, ticket, item }: { node: TimelineNode; ticket: Ticket; item: TicketItem }) {
  const { t, i18n } = useTranslation();
  const title = useNodeTitle(ticket.kind);
  const matter = matterOf(ticket.kind);
  const actor = node.actor ?? (node.kind === "submitted" ? ticket.requester : undefined);
  const isStep = node.kind === "step" || node.kind === "review";
  const open = isStep && (node.status === "current" || node.status === "waiting");
  return (
    <li className={`${classes.node} ${classes[node.status]}`} data-testid={`timeline-${node.kind === "step" ? `step-${node.step?.name}` : node.kind}`} data-value={node.status} aria-current={node.status === "current" ? "step" : undefined}>
      <Dot node={node} />
      <div className={classes.body}>
        <div className={classes.head}>
          <span className={classes.title}>{title(node)}</span>
          {node.at && !open && <span className={classes.when}>{precise.has(node.kind) ? <PreciseTime at={node.at} /> : <RelativeTime at={node.at} />}</span>}
          {node.afterMs !== undefined && precise.has(node.kind) && (
            <span className={classes.when}>{t(node.phase === "revoke" ? "timeline.afterRevoke" : "timeline.after", { duration: elapsed(node.afterMs, i18n.language) })}</span>
          )}
        </div>
        {actor && (
          <div className={classes.who}>
            <PersonName person={actor} />
            {node.onBehalfOf && <span className={classes.label}>{t("timeline.onBehalfOf", { name: node.onBehalfOf.displayName })}</span>}
          </div>
        )}
        {isStep && node.step && <StepVotes step={node.step} chain={node.kind === "step" ? item.steps : [node.step]} votes={node.votes ?? []} open={open} decided={node.status === "done" || node.status === "bad"} />}
        {node.kind === "effective" && node.status === "done" && <p className={classes.note}>{t(`timeline.effectiveText.${ticket.kind === "workload" ? "registration" : matter}`)}</p>}
        {node.kind === "revoked" && node.status === "ended" && <p className={classes.note}>{t("timeline.revokedText")}</p>}
        {node.kind === "voided" && <p className={classes.note}>{t("timeline.voidedText")}</p>}
        {node.revision && !node.lines && (
          <p className={classes.note}>
            <span className={classes.mono}>{t("timeline.revision", { revision: node.revision.slice(0, 12) })}</span>
          </p>
        )}
        <Remark node={node} refs={refsOf(ticket)} />
        {node.clusters && <Clusters lines={node.clusters} phase={node.phase} />}
      </div>
    </li>
  );
}

/** Timeline shows what happened to an item of a ticket, from the request to its effect, and what is still to come. */
export function Timeline({ ticket, item }: { ticket: Ticket; item: TicketItem }) {
  const { t } = useTranslation();
  return (
    <ol className={classes.line} aria-label={t("ticket.timeline")} data-testid="timeline">
      {timeline(ticket, item).map((node) => (
        <Node key={node.key} node={node} ticket={ticket} item={item} />
      ))}
    </ol>
  );
}
