/** The rollout board: its columns, the actions for several cards, and their requests. Pure. */
import type { ClusterState, Message, Mode, RolloutCard, RolloutStage } from "../api/types";
import { basketLimit } from "./request";
import type { Draftable } from "./request";

/** stages contains the stages of the rollout in their order. */
export const stages = ["observe", "initial", "refine", "announced", "enforce"] as const satisfies readonly RolloutStage[];

/** targets contains the stages that can be requested; the others follow from what was done. */
export const targets = ["observe", "initial", "enforce"] as const;
/** Target is a stage that can be requested. */
export type Target = (typeof targets)[number];

const modes: Record<Target, Mode> = { observe: "Observe", initial: "Audit", enforce: "Enforce" };
/** modeOf returns the mode of a stage that can be requested. */
export const modeOf = (target: Target): Mode => modes[target];

/** columns groups the cards by stage. Stopped rollouts come first, then the highest evidence scores, then the most clients. */
export function columns(cards: RolloutCard[]): Record<RolloutStage, RolloutCard[]> {
  const rank = (card: RolloutCard) => (card.guard.stoppedAt ? 0 : 1);
  const sorted = [...cards].sort((a, b) => rank(a) - rank(b) || (b.score ?? -1) - (a.score ?? -1) || b.clients - a.clients || a.resource.title.localeCompare(b.resource.title));
  return Object.fromEntries(stages.map((stage) => [stage, sorted.filter((card) => card.stage === stage)])) as Record<RolloutStage, RolloutCard[]>;
}

/** cardKey returns the key of a card, which is unique on the board. */
export const cardKey = ({ resource }: RolloutCard): string => resource.id ?? resource.name;

/** BulkVerb is an action that applies to several cards. */
export type BulkVerb = "advance" | "announce";

/** split separates the cards that allow the action from the others. */
export function split(cards: RolloutCard[], verb: BulkVerb): { able: RolloutCard[]; others: RolloutCard[] } {
  const may = ({ can, resource }: RolloutCard) => resource.id !== undefined && can[verb];
  return { able: cards.filter(may), others: cards.filter((card) => !may(card)) };
}

/** clustersOf returns the names of all members that any of the cards has, sorted. */
export const clustersOf = (cards: RolloutCard[]): string[] => [...new Set(cards.flatMap(({ clusters }) => clusters.map((each) => each.cluster)))].sort();

/** lacking returns the cards that cannot be enforced without an override, including those that could not be assessed. */
export const lacking = (cards: RolloutCard[]): RolloutCard[] => cards.filter(({ enough }) => enough !== true);

/** missingOf returns what is missing, except what the hint already contains. */
export const missingOf = ({ missing, hint }: RolloutCard): Message[] => missing.filter((each) => each.text !== hint?.message.text);

/** usualTarget returns the next stage of most cards. */
export function usualTarget(cards: RolloutCard[]): Target {
  const next = cards.map(({ hint, stage }) => hint?.next ?? (stage === "observe" ? "initial" : "enforce"));
  return next.length > 0 && next.every((each) => each === "initial" || each === "observe") ? "initial" : "enforce";
}

const modeIn = (card: RolloutCard, { mode }: ClusterState): Mode => mode ?? card.mode;

/** ofKind returns the cards that a request of this kind can contain: a resource that is not onboarded yet is onboarded, for the others the mode is changed. */
export const ofKind = (kind: "mode" | "onboard", cards: RolloutCard[]): RolloutCard[] => cards.filter((card) => (card.onboarded === false) === (kind === "onboard") && card.resource.id !== undefined);

/** advanceBody returns the change as a request of one kind, for a replay of as many cards as one request may contain. */
export function advanceBody(kind: "mode" | "onboard", cards: RolloutCard[], target: Target, clusters: string[]): Draftable | undefined {
  const mode = modeOf(target);
  const items = ofKind(kind, cards)
    .slice(0, basketLimit)
    .map((card) => {
      if (clusters.length === 0) return { resource: card.resource.id, mode };
      if (kind === "onboard") return { resource: card.resource.id, mode: card.mode, clusterModes: Object.fromEntries(clusters.map((each) => [each, mode] as const).filter(() => mode !== card.mode)) };
      const wanted = card.clusters.map((each) => [each.cluster, clusters.includes(each.cluster) ? mode : modeIn(card, each)] as const);
      return { resource: card.resource.id, mode: card.mode, clusterModes: Object.fromEntries(wanted.filter(([, each]) => each !== card.mode)) };
    });
  return items.length > 0 ? { kind, items } : undefined;
}

/** anchors maps the code of a hint to the fragment of the resource's page to which the hint links. */
export const anchors: Record<string, string> = { onboard: "", propose: "", review: "#proposal", register: "#proposal", wait: "#evidence" };

const verbs: Record<string, BulkVerb | "guard"> = { onboard: "advance", propose: "advance", announce: "announce", enforce: "advance", widen: "advance", stopped: "guard" };

/** verbOf returns the action of a hint that has a dialog, if the reader may use it. */
export function verbOf({ hint, can }: RolloutCard): BulkVerb | "guard" | undefined {
  const verb = verbs[hint?.code ?? ""];
  return verb !== undefined && can[verb] ? verb : undefined;
}
