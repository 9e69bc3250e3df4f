import { IconArrowBackUp, IconBan, IconCheck, IconCircleDashed, IconClock, IconClockOff, IconLoader2, IconPencil, IconPlayerTrackNext, IconShieldCheck, IconX } from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import { createElement } from "react";
import { useTranslation } from "react-i18next";
import type { Ticket } from "../api/types";
import { elapsed } from "../lib/time";
import { timeline } from "../lib/timeline";
import type { ClusterLine, TimelineNode } from "../lib/timeline";
import { useWords } from "../lib/use-words";
import { ClusterStateBadge } from "./Badge";
import { PersonName } from "./Names";
import { Ago, Precise } from "./Time";
import classes from "./Timeline.module.css";

/** From here on what matters is milliseconds, before that it is days. */
const precise = new Set<TimelineNode["kind"]>(["approved", "written", "compiled", "clusters", "effective", "failed", "revoke-requested", "revoke-written", "revoked", "expired"]);

function iconOf(node: TimelineNode): Icon {
  if (node.status === "bad") return IconX;
  if (node.status === "waiting") return IconCircleDashed;
  if (node.status === "current") return node.kind === "step" ? IconClock : IconLoader2;
  switch (node.kind) {
    case "submitted":
      return IconPencil;
    case "withdrawn":
      return IconArrowBackUp;
    case "expired":
      return IconClockOff;
    case "revoke-requested":
    case "revoked":
      return IconBan;
    case "effective":
      return IconShieldCheck;
    case "step":
      return node.status === "ended" ? IconPlayerTrackNext : IconCheck;
    default:
      return IconCheck;
  }
}

function useTitle() {
  const { t } = useTranslation();
  const words = useWords();
  return (node: TimelineNode): string => {
    const step = words.step(node.step?.name ?? "");
    switch (node.kind) {
      case "submitted":
        return t("timeline.submitted");
      case "step":
        if (node.status === "done") return t("timeline.stepApproved", { step });
        if (node.status === "bad") return t("timeline.stepRejected", { step });
        if (node.status === "ended") return t("timeline.stepSkipped", { step });
        return t(node.status === "current" ? "timeline.currentStep" : "timeline.laterStep", { step: words.stepWho(node.step?.name ?? "") });
      case "clusters":
        if (node.status === "waiting") return t("timeline.clustersLater");
        if (node.status === "current") return node.phase === "revoke" ? t("timeline.clustersRevokeNow") : t("timeline.clustersNow");
        return node.phase === "revoke" ? t("timeline.clustersRevoke") : t("timeline.clusters");
      case "effective":
        return node.status === "waiting" ? t("timeline.effectiveLater") : t("timeline.effective");
      case "revoked":
        return node.status === "waiting" ? t("timeline.revokedLater") : t("timeline.revoked");
      case "revoke-requested":
        return t("timeline.revokeRequested");
      case "revoke-written":
        return t("timeline.revokeWritten");
      default:
        return t(`timeline.${node.kind}`);
    }
  };
}

function Cluster({ line, testId }: { line: ClusterLine; testId: string }) {
  const { t } = useTranslation();
  return (
    <li className={classes.cluster} data-testid={testId}>
      <span className={classes.clusterName}>{line.cluster}</span>
      <ClusterStateBadge state={line.live?.state ?? (line.realizedAt ? "Realized" : "Pending")} message={line.live?.message} />
      <span className={classes.marks}>
        {line.propagatedAt && (
          <span>
            {t("timeline.propagated")} <Precise at={line.propagatedAt} />
          </span>
        )}
        {line.realizedAt && (
          <span>
            {t("timeline.readBack")} <Precise at={line.realizedAt} />
          </span>
        )}
        {line.revision && <span className={classes.mono}>{line.revision.slice(0, 8)}</span>}
      </span>
      {line.live?.message && line.live.state !== "Realized" && <span className={classes.message}>{line.live.message}</span>}
    </li>
  );
}

function Dot({ node }: { node: TimelineNode }) {
  const icon = iconOf(node);
  return (
    <span className={classes.dot}>
      {createElement(icon, { size: 14, stroke: 2.2, "aria-hidden": true, ...(icon === IconLoader2 ? { className: classes.spin } : {}) })}
    </span>
  );
}

function Node({ node, requester }: { node: TimelineNode; requester: Ticket["requester"] }) {
  const { t, i18n } = useTranslation();
  const title = useTitle();
  const actor = node.actor ?? node.step?.decidedBy ?? (node.kind === "submitted" ? requester : undefined);
  const comment = node.comment ?? node.step?.comment;
  const open = node.kind === "step" && (node.status === "current" || node.status === "waiting");
  return (
    <li className={`${classes.node} ${classes[node.status]}`} data-testid={`timeline-${node.kind === "step" ? `step-${node.step?.name}` : node.kind}`} data-value={node.status} aria-current={node.status === "current" ? "step" : undefined}>
      <Dot node={node} />
      <div className={classes.body}>
        <div className={classes.head}>
          <span className={classes.title}>{title(node)}</span>
          {node.at && <span className={classes.when}>{precise.has(node.kind) ? <Precise at={node.at} /> : <Ago at={node.at} />}</span>}
          {node.afterMs !== undefined && (
            <span className={classes.when}>{t(node.phase === "revoke" ? "timeline.afterRevoke" : "timeline.after", { duration: elapsed(node.afterMs, i18n.language) })}</span>
          )}
        </div>
        {actor && (
          <div className={classes.who}>
            <PersonName person={actor} />
          </div>
        )}
        {open && node.step && (
          <div className={classes.who}>
            {node.step.approvers.length > 0 && <span className={classes.label}>{t("timeline.canDecide")}</span>}
            {node.step.approvers.map((person) => (
              <PersonName key={person.id} person={person} />
            ))}
          </div>
        )}
        {node.step?.note && <p className={classes.note}>{node.step.note}</p>}
        {node.kind === "effective" && node.status === "done" && <p className={classes.note}>{t("timeline.effectiveText")}</p>}
        {node.kind === "revoked" && node.status === "ended" && <p className={classes.note}>{t("timeline.revokedText")}</p>}
        {node.revision && (
          <p className={classes.note}>
            <span className={classes.mono}>{t("timeline.revision", { revision: node.revision.slice(0, 12) })}</span>
          </p>
        )}
        {comment && <p className={classes.comment}>{comment}</p>}
        {node.clusters && (
          <ul className={classes.clusters}>
            {node.clusters.map((line) => (
              <Cluster key={line.cluster} line={line} testId={`timeline-cluster-${node.phase}-${line.cluster}`} />
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}

export function Timeline({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  return (
    <ol className={classes.line} aria-label={t("ticket.timeline")} data-testid="timeline">
      {timeline(ticket).map((node) => (
        <Node key={node.key} node={node} requester={ticket.requester} />
      ))}
    </ol>
  );
}
