/** The tone and the icon of each state. The texts come from the message catalogue. */
import {
  IconAlertTriangle,
  IconArrowBackUp,
  IconBan,
  IconCheck,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconClock,
  IconClockOff,
  IconEye,
  IconEyeCheck,
  IconFlame,
  IconHourglassOff,
  IconLoader2,
  IconLock,
  IconPlayerTrackNext,
  IconPlugConnectedX,
  IconShieldCheck,
  IconShieldLock,
  IconShieldX,
} from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import type { ClusterState, Decision, Mode, StepState, TicketState } from "../api/types";

/** Tone selects the color of a state. */
export type Tone = "ok" | "bad" | "warn" | "busy" | "idle";

/** StateStyle is the tone and the icon of a state. */
export interface StateStyle {
  tone: Tone;
  icon: Icon;
}

/** ticketStateStyles maps the state of a ticket to its style. */
export const ticketStateStyles: Record<TicketState, StateStyle> = {
  pending: { tone: "busy", icon: IconClock },
  approved: { tone: "busy", icon: IconCheck },
  applying: { tone: "busy", icon: IconLoader2 },
  effective: { tone: "ok", icon: IconShieldCheck },
  rejected: { tone: "bad", icon: IconCircleX },
  withdrawn: { tone: "idle", icon: IconArrowBackUp },
  "timed-out": { tone: "bad", icon: IconHourglassOff },
  failed: { tone: "bad", icon: IconAlertTriangle },
  revoking: { tone: "warn", icon: IconLoader2 },
  revoked: { tone: "idle", icon: IconBan },
  expired: { tone: "idle", icon: IconClockOff },
};

/** stepStateStyles maps the state of an approval step to its style. */
export const stepStateStyles: Record<StepState, StateStyle> = {
  waiting: { tone: "idle", icon: IconCircleDashed },
  current: { tone: "busy", icon: IconClock },
  approved: { tone: "ok", icon: IconCircleCheck },
  rejected: { tone: "bad", icon: IconCircleX },
  "timed-out": { tone: "bad", icon: IconHourglassOff },
  skipped: { tone: "idle", icon: IconPlayerTrackNext },
};

/** clusterStateStyles maps the state of a change in a member to its style. */
export const clusterStateStyles: Record<ClusterState["state"], StateStyle> = {
  Pending: { tone: "busy", icon: IconClock },
  Realized: { tone: "ok", icon: IconCircleCheck },
  Drifted: { tone: "warn", icon: IconAlertTriangle },
  Unreachable: { tone: "bad", icon: IconPlugConnectedX },
  Leaked: { tone: "bad", icon: IconAlertTriangle },
  Overridden: { tone: "warn", icon: IconAlertTriangle },
  Quarantined: { tone: "warn", icon: IconLock },
  Downgraded: { tone: "bad", icon: IconAlertTriangle },
};

/** decisionStyles maps a policy verdict to its style. */
export const decisionStyles: Record<Decision, StateStyle> = {
  allowed: { tone: "ok", icon: IconCircleCheck },
  denied: { tone: "bad", icon: IconBan },
  "default-denied": { tone: "bad", icon: IconShieldX },
  audited: { tone: "warn", icon: IconEyeCheck },
  unmanaged: { tone: "idle", icon: IconCircleDashed },
};

/** modeStyles maps a mode to its style. */
export const modeStyles: Record<Mode, StateStyle> = {
  Observe: { tone: "idle", icon: IconEye },
  Audit: { tone: "warn", icon: IconEyeCheck },
  Enforce: { tone: "ok", icon: IconShieldLock },
};

/** breakGlassStyle is the style of access that was granted by break-glass. */
export const breakGlassStyle: StateStyle = { tone: "warn", icon: IconFlame };
