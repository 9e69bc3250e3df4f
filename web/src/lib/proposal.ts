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

/** adoptBodies returns the requests for the chosen lines: one item per client, with all of its chosen actions, and in each request no more clients than it may have. */
export function adoptBodies(resource: string, lines: ProposalLine[], durationSeconds: number | undefined): Draftable[] {
  const actions = new Map<string, string[]>();
  for (const { subject, action } of lines.filter(isAdoptable)) if (subject.id !== undefined) actions.set(subject.id, [...(actions.get(subject.id) ?? []), action]);
  const items = [...actions].map(([application, of]) => ({ application, resource, actions: [...new Set(of)].sort() }));
  const bodies: Draftable[] = [];
  for (let at = 0; at < items.length; at += basketLimit) {
    bodies.push({ kind: "grant", adopt: true, items: items.slice(at, at + basketLimit), ...(durationSeconds === undefined ? {} : { durationSeconds }) });
  }
  return bodies;
}

/** ofClient returns the lines of the same client as a line that nothing allows yet. */
export const ofClient = (lines: readonly ProposalLine[], { subject }: ProposalLine): ProposalLine[] => lines.filter((each) => each.state !== "covered" && each.subject.id === subject.id);

/** newLines returns the lines that are new since the last review. */
export const newLines = <Line extends { newSinceReview?: boolean }>(lines: readonly Line[]): Line[] => lines.filter(({ newSinceReview }) => newSinceReview === true);
