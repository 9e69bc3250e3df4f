/** Sums up the items of a ticket. Pure. */
import type { CatalogRef, ClusterState, NodeSummary, Step, StepState, Ticket, TicketItem, TicketKind } from "../api/types";
import { clusterOrder } from "./members";

/** ticketKinds contains all kinds of tickets in display order. */
export const ticketKinds = ["grant", "extend", "revoke", "mode", "onboard", "offboard", "class", "approval-policy", "workload", "package", "statement"] as const satisfies readonly TicketKind[];

/** Matter is the subject of an item, which selects its texts. */
export type Matter = "access" | "end" | "protection" | "object";

const matters: Record<TicketKind, Matter> = {
  grant: "access",
  extend: "access",
  revoke: "end",
  mode: "protection",
  onboard: "protection",
  offboard: "protection",
  class: "object",
  "approval-policy": "object",
  workload: "object",
  package: "object",
  statement: "access",
};

/** matterOf returns what a ticket of this kind is about. */
export const matterOf = (kind: TicketKind): Matter => matters[kind];

/** StepSum is one approval step of several items with its least advanced state. */
export interface StepSum {
  name: string;
  state: StepState;
  /** Items whose step of this name is approved, and all that have it. */
  done: number;
  of: number;
}

/** stepOrder contains the states of steps from the least advanced one, because people look for what is still pending. */
const stepOrder: StepState[] = ["rejected", "timed-out", "current", "waiting", "skipped", "approved"];

const first = <T>(order: T[], a: T, b: T): T => (order.indexOf(a) <= order.indexOf(b) ? a : b);

/** sumSteps merges the steps of the items by their name. */
export function sumSteps(items: Pick<TicketItem, "steps">[]): StepSum[] {
  const sums = new Map<string, StepSum>();
  for (const { name, state } of items.flatMap((item) => item.steps)) {
    const sum = sums.get(name) ?? { name, state, done: 0, of: 0 };
    sum.state = first(stepOrder, sum.state, state);
    sum.of++;
    if (state === "approved") sum.done++;
    sums.set(name, sum);
  }
  return [...sums.values()];
}

/** sumClusters returns the worst state of each member over all items, sorted by the members' names. */
export function sumClusters(items: Pick<TicketItem, "clusters">[]): ClusterState[] {
  const sums = new Map<string, ClusterState>();
  for (const cluster of items.flatMap((item) => item.clusters)) {
    const before = sums.get(cluster.cluster);
    if (!before || first(clusterOrder, before.state, cluster.state) !== before.state) sums.set(cluster.cluster, cluster);
  }
  return [...sums.values()].sort((a, b) => a.cluster.localeCompare(b.cluster));
}

/** nodesByResource returns the node counts of the items, one for each resource, those with the most nodes that are not realized first. */
export function nodesByResource(items: Pick<TicketItem, "resource" | "nodes">[]): { resource: CatalogRef; nodes: NodeSummary }[] {
  const found = new Map<string, { resource: CatalogRef; nodes: NodeSummary }>();
  for (const { resource, nodes } of items) {
    if (resource && nodes) found.set(resource.name, { resource, nodes });
  }
  const missing = ({ nodes }: { nodes: NodeSummary }) => nodes.total - nodes.realized;
  return [...found.values()].sort((a, b) => missing(b) - missing(a) || a.resource.name.localeCompare(b.resource.name));
}

/** votesOf returns the number of approvals that a step has and the number that it needs. */
export function votesOf(step: Step): { has: number; needs: number } {
  return { has: step.votes.filter((vote) => vote.approve).length, needs: step.quorum };
}

/** currentStep returns the step of an item that waits for a decision. */
export const currentStep = (item: Pick<TicketItem, "steps">): Step | undefined => item.steps.find((step) => step.state === "current");

type May = keyof TicketItem["can"];

/** itemsThatMay returns the items of a ticket for which the person may take the action. */
export function itemsThatMay(ticket: Ticket, may: May): TicketItem[] {
  return ticket.items.filter((item) => item.can[may]);
}

/** byChain groups the items that have the same approval chain. */
export function byChain<T extends { steps: Step[] }>(items: T[]): { steps: Step[]; items: T[] }[] {
  const chains = new Map<string, { steps: Step[]; items: T[] }>();
  for (const item of items) {
    const key = JSON.stringify(item.steps.map((step) => [step.name, step.quorum, step.auto ?? false, step.note ?? "", step.approvers.map((person) => person.id), step.onCall ?? "", step.onTimeout ?? "", step.timeoutSeconds ?? 0, step.remindSeconds ?? 0, (step.escalateTo ?? []).map((person) => person.id)]));
    const chain = chains.get(key) ?? { steps: item.steps, items: [] };
    chain.items.push(item);
    chains.set(key, chain);
  }
  return [...chains.values()];
}

/** expiryOf returns the end of an item that is in force, if it has one. */
export function expiryOf(item: TicketItem): string | undefined {
  return item.state === "effective" || item.state === "applying" || item.state === "approved" ? item.expiresAt : undefined;
}

/** expiryOfTicket returns the earliest end of the ticket's items that are in force. */
export function expiryOfTicket(ticket: Ticket): string | undefined {
  return ticket.items
    .map(expiryOf)
    .filter((at) => at !== undefined)
    .sort()[0];
}
