import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Ticket, TicketItem } from "../api/types";
import { TicketDialogs } from "./TicketDialogs";
import type { TicketDialog } from "./TicketDialogs";

/** ItemActions offers the actions for one item of several, except the decision. */
export function ItemActions({ ticket, item }: { ticket: Ticket; item: TicketItem }) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<TicketDialog>();
  const offered = (["extend", "revoke", "review"] as const).filter((each) => item.can[each]);
  if (offered.length === 0 && dialog === undefined) return null;
  return (
    <Group gap={6}>
      {offered.map((each) => (
        <Button key={each} size="compact-sm" variant="default" onClick={() => setDialog(each)} data-testid={`item-${each}-${item.position}`}>
          {t(`decide.${each}`)}
        </Button>
      ))}
      <TicketDialogs ticket={ticket} item={item} dialog={dialog} onClose={() => setDialog(undefined)} />
    </Group>
  );
}
