/** Finds existing grants. Pure. */
import type { Access, CatalogRef } from "../api/types";

interface Wanted {
  subject: CatalogRef;
  resource: CatalogRef;
  action: string | undefined;
}

/**
 * grantOf returns the statement that allows the connection now, and undefined while another one denies it. Names are compared exactly: a statement with
 * a wildcard is not returned.
 */
export function grantOf(items: Access[], { subject, resource, action }: Wanted): Access | undefined {
  if (action === undefined) return undefined;
  const about = items.filter((item) => item.counting && item.subject.name === subject.name && item.resource.name === resource.name && item.actions.includes(action));
  return about.some((item) => item.effect === "Deny") ? undefined : about.find((item) => item.effect === "Allow");
}
