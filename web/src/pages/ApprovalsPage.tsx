import { ActionIcon, Button, Checkbox, Select } from "@mantine/core";
import { IconKeyboard } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router";
import { useTicket, useTickets } from "../api/queries";
import type { Ticket } from "../api/types";
import { BulkDecisionDialog } from "../components/approvals/BulkDecisionDialog";
import classes from "../components/approvals/Approvals.module.css";
import { ShortcutsDialog } from "../components/approvals/ShortcutsDialog";
import { focusFirst, useShortcuts } from "../components/approvals/shortcuts";
import { ApprovalList } from "../components/approvals/ApprovalList";
import { EmptyState, Loaded } from "../components/Feedback";
import { isRestoring, LoadMore } from "../components/LoadMore";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { WaitingReviewsNotice } from "../components/reviews/WaitingReviews";
import { SearchField } from "../components/SearchField";
import { TicketDetail } from "../components/TicketDetail";
import { isBulkDraft } from "../lib/bulk-decision";
import type { BulkVerb } from "../lib/bulk-decision";
import { ticketKinds } from "../lib/items";
import { among, applyChange, useFilters } from "../lib/use-filters";
import { useHeading } from "../lib/use-heading";
import { useKeptDialog } from "../lib/use-kept-dialog";

const detailId = "approval";

function Detail({ id, onDecided }: { id: string; onDecided: () => void }) {
  const query = useTicket(id);
  const heading = useHeading();
  return (
    <Loaded query={query}>
      {(ticket) => (
        <>
          <h2 className={classes.heading}>{heading.ticket(ticket)}</h2>
          <TicketDetail ticket={ticket} narrow onDecided={onDecided} />
        </>
      )}
    </Loaded>
  );
}

function Filters({ search, onChange }: { search: URLSearchParams; onChange: ReturnType<typeof useFilters>[1] }) {
  const { t } = useTranslation();
  return (
    <div className={classes.filters}>
      <SearchField size="xs" label={t("approvals.search")} value={search.get("q") ?? ""} onChange={(q) => onChange({ q, ticket: undefined })} testId="approvals-search" />
      <Select
        size="xs"
        clearable
        placeholder={t("requests.anyKind")}
        aria-label={t("requests.kind")}
        data={ticketKinds.map((kind) => ({ value: kind, label: t(`kind.${kind}`) }))}
        value={among(search.getAll("kind"), ticketKinds)[0] ?? null}
        onChange={(kind) => onChange({ kind: kind ?? undefined, ticket: undefined })}
        data-testid="approvals-kind"
      />
    </div>
  );
}

/** useSelection returns the selected tickets. Until the person selects something, these are the tickets that were selected before a login. */
function useSelection(tickets: Ticket[], before: string[] | undefined) {
  const [chosen, setSelection] = useState<ReadonlySet<string>>();
  const selection = chosen ?? new Set(before);
  // Tickets that left the list were decided by another person.
  const selected = tickets.filter(({ id }) => selection.has(id));
  const toggle = (id: string) =>
    setSelection((current = selection) => {
      const next = new Set(current);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return { selected, keep: () => setSelection(selection), ids: new Set(selected.map(({ id }) => id)), toggle, clear: () => setSelection(new Set()), selectAll: () => setSelection(new Set(tickets.map(({ id }) => id))) };
}

/**
 * useOpened returns the id of the ticket to show: the one in the address, or on a wide screen the first one of the list. That one stays open when the list
 * changes, so that an event does not replace the request that the person is about to decide. Another filter opens the first one of its list, when it is
 * loaded: until then `tickets` are those of the previous filter.
 */
function useOpened(tickets: Ticket[] | undefined, filter: string, loaded: boolean): string | undefined {
  const [search] = useSearchParams();
  const [first, setFirst] = useState<{ filter: string; id: string | undefined }>();
  const chosen = search.get("ticket") || undefined;
  const id = tickets?.[0]?.id;
  if (chosen !== undefined) {
    if (first) setFirst(undefined);
  } else if (loaded && (first?.filter !== filter || (first.id === undefined && id !== undefined))) {
    setFirst({ filter, id });
  }
  return chosen ?? first?.id;
}

interface Props {
  tickets: Ticket[];
  /** The id of the ticket to show. */
  id: string | undefined;
  query: Parameters<typeof LoadMore>[0]["query"];
  filtered: boolean;
}

function Both({ tickets, id, query, filtered }: Props) {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const [chosenVerb, setVerb] = useState<BulkVerb>("approve");
  const { opened, draft, kept, open, close } = useKeptDialog("bulk-decision", isBulkDraft);
  // After a login the dialog copies the selection, so it waits for the pages that the selection is in.
  const deciding = opened && !(draft && isRestoring(search, query));
  const [help, setHelp] = useState(false);
  const { selected, ids, toggle, keep, clear, selectAll } = useSelection(tickets, draft?.tickets);
  const decide = (verb: BulkVerb) => {
    setVerb(verb);
    open();
  };
  const chosen = search.get("ticket");
  const index = tickets.findIndex((ticket) => ticket.id === id);
  const pathOf = (next: string | undefined) => `/approvals?${applyChange(search, { ticket: next }).toString()}`;

  const choose = (next: Ticket | undefined) => {
    if (next) change({ ticket: next.id });
  };
  const choice = (verb: BulkVerb, button: string) => () => (selected.length > 0 ? decide(verb) : focusFirst(detailId, button));
  useShortcuts(
    {
      j: () => choose(tickets[index + 1] ?? tickets[tickets.length - 1]),
      k: () => choose(tickets[Math.max(index - 1, 0)]),
      a: choice("approve", "approve-button"),
      r: choice("reject", "reject-button"),
      c: () => focusFirst(detailId, "decision-comment", "comment-text"),
      x: () => id !== undefined && toggle(id),
      "?": () => setHelp(true),
    },
    !deciding && !help,
  );

  return (
    <div className={chosen ? `${classes.layout} ${classes.chosen}` : classes.layout}>
      <title>{`${t("approvals.title")} · ACP`}</title>
      <section className={classes.list} aria-label={t("approvals.list")}>
        <div className={classes.top}>
          <h1 className={classes.title}>{t("approvals.title")}</h1>
          <SavedViews page="approvals" query={applyChange(search, { ticket: undefined }).toString()} />
          <ActionIcon className={classes.help} variant="subtle" color="gray" onClick={() => setHelp(true)} aria-label={t("approvals.keysTitle")} title={t("approvals.keysTitle")} data-testid="keys-open">
            <IconKeyboard size={17} aria-hidden />
          </ActionIcon>
        </div>
        <WaitingReviewsNotice />
        <Filters search={search} onChange={change} />
        {tickets.length === 0 && <EmptyState>{t(filtered ? "requests.noMatch" : "approvals.empty")}</EmptyState>}
        {tickets.length > 1 && (
          <Checkbox
            className={classes.all}
            size="xs"
            label={t("approvals.selectAll", { count: tickets.length })}
            checked={selected.length === tickets.length}
            indeterminate={selected.length > 0 && selected.length < tickets.length}
            onChange={() => (selected.length === tickets.length ? clear() : selectAll())}
            data-testid="select-all"
          />
        )}
        <ApprovalList tickets={tickets} current={id} pathOf={pathOf} selection={ids} onSelect={toggle} />
        <LoadMore query={query} />
        {selected.length > 0 && (
          <div className={classes.selected} role="region" aria-label={t("approvals.selection")} data-testid="selection">
            <span>{t("approvals.selected", { count: selected.length })}</span>
            <Button size="compact-sm" variant="subtle" color="gray" onClick={clear}>
              {t("approvals.none")}
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => decide("reject")} data-testid="bulk-reject">
              {t("approvals.rejectMany")}
            </Button>
            <Button size="compact-sm" onClick={() => decide("approve")} data-testid="bulk-approve">
              {t("approvals.approveMany")}
            </Button>
          </div>
        )}
      </section>
      <div className={classes.detail} id={detailId}>
        <Link className={classes.back} to={pathOf(undefined)} replace>
          ← {t("approvals.back")}
        </Link>
        {id ? <Detail key={id} id={id} onDecided={() => change({ ticket: id })} /> : <EmptyState>{t("approvals.choose")}</EmptyState>}
      </div>
      {deciding && (
        <BulkDecisionDialog
          verb={draft?.verb ?? chosenVerb}
          tickets={selected}
          draft={draft}
          kept={kept}
          onClose={(done) => {
            close();
            if (done) clear();
            else keep();
          }}
        />
      )}
      {help && <ShortcutsDialog onClose={() => setHelp(false)} />}
    </div>
  );
}

/** ApprovalsPage lists the tickets that wait for the person's decision, beside the selected ticket. */
export function ApprovalsPage() {
  const { t } = useTranslation();
  const [search] = useSearchParams();
  const kind = among(search.getAll("kind"), ticketKinds);
  const q = search.get("q") ?? "";
  const filtered = q !== "" || kind.length > 0;
  const query = useTickets({ view: "approvals", ...(kind.length > 0 ? { kind } : {}), ...(q ? { q } : {}) });
  const tickets = query.data?.pages.flatMap((page) => page.items);
  const id = useOpened(tickets, JSON.stringify([kind, q]), query.isSuccess && !query.isPlaceholderData);
  if (tickets && (tickets.length > 0 || filtered || id !== undefined)) return <Both tickets={tickets} id={id} query={query} filtered={filtered} />;
  return (
    <Page title={t("approvals.title")}>
      <Loaded query={query}>
        {() => (
          <EmptyState testId="approvals-empty" action={<Link to="/requests?view=decided">{t("requests.views.decided")}</Link>}>
            {t("approvals.empty")} {t("approvals.emptyHint")}
          </EmptyState>
        )}
      </Loaded>
    </Page>
  );
}
