/** Finds existing grants. Pure. */
import type { Access, CatalogRef } from "../api/types";

interface Wanted {
  subject: CatalogRef;
  resource: CatalogRef;
  action: string | undefined;
}

/**
 * The statement that allows it now; none while another one denies it. Names are compared as they are: what only a
 * wildcard might give is not taken for given.
 */
export function grantOf(items: Access[], { subject, resource, action }: Wanted): Access | undefined {
  if (action === undefined) return undefined;
  const about = items.filter((item) => item.counting && item.subject.name === subject.name && item.resource.name === resource.name && item.actions.includes(action));
  return about.some((item) => item.effect === "Deny") ? undefined : about.find((item) => item.effect === "Allow");
}
