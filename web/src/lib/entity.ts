/** Entities of the catalog as the form has them and as they are sent. Pure. */
import type { Entity } from "../api/types";

/** entityKinds contains the kinds of catalog entities in display order. */
export const entityKinds = ["application", "resource", "person", "group"] as const satisfies readonly Entity["kind"][];

const optionalTexts = ["name", "description", "sensitivity", "environment", "email", "leader", "parent", "source"] as const;

/** isEntity reports whether a stored value has the shape of the form. */
export function isEntity(value: unknown): value is Entity {
  if (typeof value !== "object" || value === null) return false;
  const form = value as Record<string, unknown>;
  const texts = (list: unknown) => list === undefined || (Array.isArray(list) && list.every((each) => typeof each === "string"));
  return (
    entityKinds.some((kind) => kind === form.kind) &&
    typeof form.id === "string" &&
    typeof form.title === "string" &&
    optionalTexts.every((name) => form[name] === undefined || typeof form[name] === "string") &&
    texts(form.owners) &&
    texts(form.members) &&
    (form.version === undefined || typeof form.version === "number")
  );
}

/** bodyOf returns the entity as it is sent: only the fields of its kind, and none that is empty. */
export function bodyOf(form: Entity): Entity {
  const text = (value: string | undefined) => value?.trim() || undefined;
  const owned = form.kind === "application" || form.kind === "resource";
  const all: Entity = {
    kind: form.kind,
    id: form.id.trim(),
    title: form.title.trim(),
    description: text(form.description),
    name: owned ? text(form.name) : undefined,
    owners: owned && form.owners?.length ? form.owners : undefined,
    sensitivity: form.kind === "resource" ? (form.sensitivity ?? "medium") : undefined,
    environment: owned ? text(form.environment) : undefined,
    email: form.kind === "person" ? text(form.email) : undefined,
    leader: owned ? undefined : text(form.leader),
    parent: form.kind === "group" ? text(form.parent) : undefined,
    members: form.kind === "group" && form.members?.length ? form.members : undefined,
    version: form.version,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Entity;
}
