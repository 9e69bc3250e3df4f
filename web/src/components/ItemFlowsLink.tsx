import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useClasses, useMe } from "../api/queries";
import type { Role, TicketItem, TicketKind } from "../api/types";
import { itemFlowsPath } from "../lib/flow-link";
import { useHeading } from "../lib/use-heading";

/** seesConnections contains the roles of people who may see connections, owners only their own. */
const seesConnections: Role[] = ["application-owner", "resource-owner", "security", "auditor"];

/** useItemFlows returns the path of the connections that an item of a ticket is about. It is undefined if the item has no connections, or if the reader may not see them. */
export function useItemFlows(item: TicketItem, kind: TicketKind): string | undefined {
  const sees = useMe().data?.roles.some((role) => seesConnections.includes(role)) ?? false;
  const { object } = item;
  const known = useClasses(sees && kind === "class").data?.items.find((each) => each.kind === object?.kind && each.name === object.name);
  return sees ? itemFlowsPath(item, kind, known?.pattern) : undefined;
}

/** ItemFlowsLink is a link from an item of a ticket to its connections. */
export function ItemFlowsLink({ item, kind }: { item: TicketItem; kind: TicketKind }) {
  const { t } = useTranslation();
  const heading = useHeading();
  const path = useItemFlows(item, kind);
  return path === undefined ? null : (
    <Link to={path} aria-label={t("ticket.flowsOf", { item: heading.item(item, kind) })} data-testid={`item-flows-${item.position}`}>
      {t("access.connections")}
    </Link>
  );
}
