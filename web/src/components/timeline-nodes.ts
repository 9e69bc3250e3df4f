/** Icons and titles of the nodes of the timeline. */
import {
  IconAlarm, IconArrowBackUp, IconArrowsMinimize, IconBan, IconBell, IconCalendarOff, IconCheck, IconCircleDashed, IconClock, IconClockOff, IconEyeCheck, IconFlame,
  IconHourglassOff, IconLoader2, IconMessage, IconPencil, IconPlayerTrackNext, IconRefresh, IconShieldCheck, IconTrendingUp, IconX,
} from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { TicketKind } from "../api/types";
import { matterOf } from "../lib/items";
import type { NodeKind, TimelineNode } from "../lib/timeline";
import { useWords } from "../lib/use-words";

const icons: Partial<Record<NodeKind, Icon>> = {
  submitted: IconPencil,
  withdrawn: IconArrowBackUp,
  expired: IconClockOff,
  "revoke-requested": IconBan,
  revoked: IconBan,
  effective: IconShieldCheck,
  comment: IconMessage,
  voided: IconRefresh,
  reopened: IconRefresh,
  escalated: IconTrendingUp,
  reminded: IconBell,
  "last-reminder": IconBell,
  "schedule-missing": IconCalendarOff,
  "timed-out": IconHourglassOff,
  "expires-soon": IconAlarm,
  shortened: IconAlarm,
  "review-confirmed": IconEyeCheck,
  review: IconEyeCheck,
  "break-glass": IconFlame,
  shrunk: IconArrowsMinimize,
};

/** nodeIcon returns the icon of a node of the timeline. */
export function nodeIcon(node: TimelineNode): Icon {
  if (node.status === "waiting") return IconCircleDashed;
  if (node.status === "current" && node.kind !== "review") return node.kind === "step" ? IconClock : IconLoader2;
  if (node.step?.state === "timed-out") return IconHourglassOff;
  if (node.kind === "step") return node.status === "bad" ? IconX : node.status === "ended" ? IconPlayerTrackNext : IconCheck;
  return icons[node.kind] ?? (node.status === "bad" ? IconX : IconCheck);
}

/** useNodeTitle returns a function that returns the title of a node of the timeline, for tickets of this kind. */
export function useNodeTitle(kind: TicketKind) {
  const { t } = useTranslation();
  const words = useWords();
  const matter = matterOf(kind);
  return (node: TimelineNode): string => {
    const step = words.step(node.step?.name ?? "");
    const who = words.stepWho(node.step);
    const later = node.status === "waiting";
    switch (node.kind) {
      case "step":
        if (node.status === "done") return t("timeline.stepApproved", { step });
        if (node.status === "bad") return t(node.step?.state === "timed-out" ? "timeline.stepTimedOut" : "timeline.stepRejected", { step });
        if (node.status === "ended") return (node.votes ?? []).length > 0 ? t("timeline.stepVoid", { step }) : t("timeline.stepSkipped", { step });
        return t(node.status === "current" ? "timeline.currentStep" : "timeline.laterStep", { step: who });
      case "review":
        return t("timeline.review", { step: who });
      case "clusters":
        if (later) return t(matter === "object" ? "timeline.objectLater" : "timeline.clustersLater");
        if (node.phase === "revoke") return t(node.status === "current" ? "timeline.clustersRevokeNow" : "timeline.clustersRevoke");
        return t(node.status === "current" ? "timeline.clustersNow" : "timeline.clusters");
      case "revoked":
        return t(later ? "timeline.revokedLater" : "timeline.revoked");
      default:
        return t(`timeline.${node.kind}`);
    }
  };
}
