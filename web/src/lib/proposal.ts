/** The observed traffic as lines to review, and the request for the chosen lines. Pure. */
import type { ProposalLine } from "../api/types";
import { basketLimit } from "./request";
import type { Draftable } from "./request";

/** lineKey returns the key of a line, which is unique in its proposal. */
export const lineKey = ({ subject, action }: ProposalLine): string => `${subject.name || subject.title}|${action}`;

/** isAdoptable reports whether a line can become part of a request: nothing allows it yet, and its client is in the catalog. */
export const isAdoptable = ({ state, grantable, subject }: ProposalLine): boolean => state !== "covered" && grantable !== false && subject.id !== undefined;

/** reviewed returns the lines that nothing allows yet separately from those that are already allowed, the busiest first in both. */
export function reviewed(lines: ProposalLine[]): { open: ProposalLine[]; covered: ProposalLine[] } {
  const sorted = [...lines].sort((a, b) => b.evidence.count - a.evidence.count || lineKey(a).localeCompare(lineKey(b)));
  return { open: sorted.filter(({ state }) => state !== "covered"), covered: sorted.filter(({ state }) => state === "covered") };
}

/** adoptBody returns the request for the chosen lines: one item per client, with all of its chosen actions, and no more clients than a request may have. */
export function adoptBody(resource: string, lines: ProposalLine[], durationSeconds: number | undefined): Draftable | undefined {
  const actions = new Map<string, string[]>();
  for (const { subject, action } of lines.filter(isAdoptable)) if (subject.id !== undefined) actions.set(subject.id, [...(actions.get(subject.id) ?? []), action]);
  const items = [...actions].slice(0, basketLimit).map(([application, of]) => ({ application, resource, actions: [...new Set(of)].sort() }));
  if (items.length === 0) return undefined;
  return { kind: "grant", adopt: true, items, ...(durationSeconds === undefined ? {} : { durationSeconds }) };
}

/** leftOut returns the number of clients beyond what one request may have. */
export function leftOut(lines: ProposalLine[]): number {
  return Math.max(0, new Set(lines.filter(isAdoptable).map(({ subject }) => subject.id)).size - basketLimit);
}
