/** Orders of lists that the server sorts, because only some of their rows are in the browser. */
import type { paths } from "../api/schema.gen";
import { useFilters } from "./use-filters";

/** OrderOf is the type of the parameter `sort` of a list. */
type OrderOf<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: { sort?: infer Order } } } } ? NonNullable<Order> : never;

export type TicketOrder = OrderOf<"/tickets">;
export const ticketOrders = ["created", "-created", "updated", "-updated"] as const satisfies readonly TicketOrder[];

/**
 * useServerSort returns the order of the URL if it is one of the server's, for the query of the list. The parameter is the one that the
 * table of the list writes (DataTable's `sortParam`), so that both have the same order.
 */
export function useServerSort<Order extends string>(orders: readonly Order[], param = "sort"): { sort?: Order } {
  const [search] = useFilters();
  const sort = orders.find((each) => each === search.get(param));
  return sort ? { sort } : {};
}
