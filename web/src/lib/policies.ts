/** Parses the approvers of approval policies, and builds the URL that proposes a change of an object. Pure. */
import type { ObjectChange, PolicyStep } from "../api/types";

type Approver = { kind: "leader" | "resource-owner" | "application-owner" | "group" | "user"; id: string };

const roles: Record<string, "leader" | "resource-owner" | "application-owner"> = { "requester.leader": "leader", "resource.owner": "resource-owner", "application.owner": "application-owner" };

/** approverOf parses an approver of an approval policy: `requester.leader`, `resource.owner`, `group:security`, `person:bob`. */
export function approverOf(text: string): Approver {
  const role = roles[text];
  if (role) return { kind: role, id: "" };
  const [kind, ...rest] = text.split(":");
  return kind === "group" ? { kind: "group", id: rest.join(":") } : { kind: "user", id: kind === "person" ? rest.join(":") : text };
}

/** quorumOf returns how many of a step's approvers must approve. It is undefined for a single role or person, where it needs no mention. */
export function quorumOf({ quorum, approvers }: Pick<PolicyStep, "quorum" | "approvers">): { kind: "any" | "all" | "count"; count: number } | undefined {
  if (quorum === "all") return { kind: "all", count: 0 };
  const count = Number(quorum);
  if (Number.isInteger(count) && count > 1) return { kind: "count", count };
  // Of a role, as of one person, it goes without saying.
  return approvers.length === 1 && approverOf(approvers[0] ?? "").kind !== "group" ? undefined : { kind: "any", count: 1 };
}

/** changePath returns the path of the form that requests the change of an object, or without a name the creation of one. */
export function changePath(kind: ObjectChange["kind"], name?: string): string {
  const search = new URLSearchParams({ kind: kind === "ApprovalPolicy" || kind === "Organization" ? "approval-policy" : "class", object: kind });
  if (name) search.set("name", name);
  else search.set("verb", "create");
  return `/requests/new?${search.toString()}`;
}
