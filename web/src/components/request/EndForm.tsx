import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { useTicket } from "../../api/queries";
import type { Ticket, TicketItem } from "../../api/types";
import { parseTarget } from "../../lib/request";
import type { Draftable } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan, useReplay } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { EmptyState, Loaded } from "../Feedback";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

interface EndState {
  reason: string;
}

const isState = (value: unknown): value is EndState => typeof value === "object" && value !== null && typeof (value as Record<string, unknown>).reason === "string";

function Form({ person, ticket, item }: { person: string; ticket: Ticket; item: TicketItem }) {
  const { t } = useTranslation();
  const words = useWords();
  const { form, change, restored } = useDraft<EndState>(person, () => ({ reason: "" }), isState);
  const body: Draftable = { kind: "revoke", items: [{ target: { ticket: ticket.id, item: item.position } }] };
  const { query, isRequested } = usePlan(body);
  const impact = useReplay(body);
  const { tried, submit, sending, error } = useRequest();
  return (
    <RequestFrame
      restored={restored}
      reason={form.reason}
      onReason={(reason) => change({ reason })}
      tried={tried}
      reasonHint={t("request.reasonWhy")}
      onSubmit={() => submit(body, form.reason)}
      sending={sending}
      error={error}
      atField={false}
      aside={<RequestPreview isRequested={isRequested} query={query} impact={impact} nameOf={() => ticket.id} empty="" />}
    >
      <p>{t("decide.revokeText", { application: item.application?.title ?? "", resource: item.resource?.title ?? "", actions: words.list(item.actions ?? []) })}</p>
    </RequestFrame>
  );
}

/** EndForm requests the end of somebody else's grant. People who may revoke it themselves use the button on the ticket. */
export function EndForm({ person }: { person: string }) {
  const { t } = useTranslation();
  const [search] = useSearchParams();
  const target = parseTarget(search.get("target"));
  const query = useTicket(target?.ticket ?? "");
  if (!target) return <EmptyState>{t("request.end.none")}</EmptyState>;
  return (
    <Loaded query={query}>
      {(ticket) => {
        const item = ticket.items.find((each) => each.position === target.item);
        return item ? <Form person={person} ticket={ticket} item={item} /> : <EmptyState>{t("request.end.none")}</EmptyState>;
      }}
    </Loaded>
  );
}
