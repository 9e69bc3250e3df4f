/** Orders of lists that the server sorts, because only some of their rows are in the browser. */
import type { paths } from "../api/schema.gen";
import { useFilters } from "./use-filters";

/** OrderOf is the type of the parameter `sort` of a list. */
type OrderOf<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: { sort?: infer Order } } } } ? NonNullable<Order> : never;

export type TicketOrder = OrderOf<"/tickets">;
export const ticketOrders = ["created", "-created", "updated", "-updated"] as const satisfies readonly TicketOrder[];

/** EntityOrder is an order of applications and of resources. */
export type EntityOrder = OrderOf<"/applications"> & OrderOf<"/resources">;
export const entityOrders = ["title", "-title", "environment", "-environment"] as const satisfies readonly EntityOrder[];

export type CatalogOrder = OrderOf<"/catalog/entities">;
export const catalogOrders = ["title", "-title", "source", "-source"] as const satisfies readonly CatalogOrder[];

export type LedgerOrder = OrderOf<"/ledger">;
export const ledgerOrders = ["seq", "-seq"] as const satisfies readonly LedgerOrder[];

export type ReviewLineOrder = OrderOf<"/reviews/{id}/lines">;
export const reviewLineOrders = ["recommendation", "-recommendation"] as const satisfies readonly ReviewLineOrder[];

export type ConnectionOrder = OrderOf<"/flows">;
const connectionOrders = ["seen", "-seen", "count", "-count"] as const satisfies readonly ConnectionOrder[];
/** connectionOrdersOf returns the orders of the connections of a filter: none without names, because the server would have to sum up all connections. */
export const connectionOrdersOf = ({ subject, resource }: { subject: string[]; resource: string[] }): readonly ConnectionOrder[] =>
  subject.length + resource.length > 0 ? connectionOrders : [];

export type AccessOrder = OrderOf<"/access">;
const accessOrders = ["subject", "-subject", "resource", "-resource", "policy", "-policy", "until", "-until"] as const satisfies readonly AccessOrder[];
/** accessOrdersOf returns the orders of the rows of the access map: by the last use only with a name, because the server would have to sum up all connections. */
export const accessOrdersOf = ({ subject, resource }: { subject?: string | undefined; resource?: string | undefined }): readonly AccessOrder[] =>
  subject || resource ? [...accessOrders, "used", "-used"] : accessOrders;

export type PolicyOrder = OrderOf<"/policies">;
export const policyOrders = ["name", "-name", "statements", "-statements"] as const satisfies readonly PolicyOrder[];

export type FindingOrder = OrderOf<"/findings">;
export const findingOrders = ["kind", "-kind", "since", "-since"] as const satisfies readonly FindingOrder[];

/**
 * useServerSort returns the order of the URL if it is one of the server's, for the query of the list. The parameter is the one that the
 * table of the list writes (DataTable's `sortParam`), so that both have the same order.
 */
export function useServerSort<Order extends string>(orders: readonly Order[], param = "sort"): { sort?: Order } {
  const [search] = useFilters();
  const sort = orders.find((each) => each === search.get(param));
  return sort ? { sort } : {};
}
