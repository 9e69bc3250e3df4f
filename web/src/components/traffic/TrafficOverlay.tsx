import { Button, Popover, SegmentedControl, TextInput } from "@mantine/core";
import { IconStack } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { asApiError } from "../../api/client";
import { useDraftImpact, useImpactPreview, useProposal, useTicketImpact } from "../../api/flows";
import type { Period } from "../../api/flows";
import type { Impact, TrafficMap } from "../../api/types";
import { isLong, usualWindow } from "../../lib/flow-filter";
import { keepDraft, keptDraft, mostDraft } from "../../lib/traffic-draft";
import type { Overlay } from "../../lib/traffic-map";
import { forPreview, modeBody } from "../../lib/request";
import type { FilterChange } from "../../lib/use-filters";
import { useWords } from "../../lib/use-words";
import { ResourceSelect } from "../EntitySelect";
import { ErrorState } from "../Feedback";
import { FileTextField } from "../FileTextField";
import classes from "./Traffic.module.css";

/**
 * Change is a change that is laid over the map: a ticket or its revocation, the enforcement of a resource, a drafted policy, or the proposal for a
 * resource together with its enforcement.
 */
export type Change = { ticket: string; revoke: boolean } | { enforce: string } | { draft: true } | { proposal: string } | undefined;

/** none removes every change from the address. */
const none: FilterChange = { ticket: undefined, change: undefined, enforce: undefined, draft: undefined, proposal: undefined };

/** changeIn reads the change from the URL. */
export function changeIn(search: URLSearchParams): Change {
  const ticket = search.get("ticket")?.trim().toUpperCase() ?? "";
  if (/^T-[0-9]{1,12}$/.test(ticket)) return { ticket, revoke: search.get("change") === "revoke" };
  const enforce = search.get("enforce")?.trim();
  if (enforce) return { enforce };
  const proposal = search.get("proposal")?.trim();
  if (proposal) return { proposal };
  return search.has("draft") ? { draft: true } : undefined;
}

/** proposesPolicy returns whether a proposal has a policy, and not only comments because there is nothing to add. */
const proposesPolicy = (yaml: string): boolean => yaml.split("\n").some((line) => line.trim() !== "" && !line.startsWith("#"));

/** useChange reads what a change would do to the connections of a period. It returns undefined while there is no change or no answer. */
export function useChange(change: Change, span: Period) {
  const ticket = change && "ticket" in change ? change : undefined;
  const enforce = change && "enforce" in change ? change.enforce : "";
  const resource = change && "proposal" in change ? change.proposal : "";
  const ofTicket = useTicketImpact(ticket?.ticket ?? "", ticket?.revoke ? "revoke" : "ticket", ticket !== undefined, span);
  const body = modeBody({ kind: "mode", resource: enforce, mode: "Enforce", clusterModes: {} });
  const ofMode = useImpactPreview(body && forPreview(body), span);
  const proposal = useProposal(resource, span, resource !== "");
  const drafted = change && "draft" in change ? keptDraft() : "";
  const proposed = proposal.data && { ...(proposesPolicy(proposal.data.yaml) ? { policy: proposal.data.yaml } : {}), enforce: [resource], ...span };
  const ofDraft = useDraftImpact(resource !== "" ? proposed : drafted !== "" ? { policy: drafted, ...span } : undefined);
  if (change === undefined) return undefined;
  if (ticket) return ofTicket;
  if ("enforce" in change) return ofMode;
  return proposal.error ? { ...proposal, data: undefined } : ofDraft;
}

/** ChangePicker selects the change that is laid over the map. */
export function ChangePicker({ change, onChange }: { change: Change; onChange: (change: FilterChange) => void }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [ticket, setTicket] = useState("");
  const [draft, setDraft] = useState(keptDraft);
  const tooLong = draft.length > mostDraft;
  const wrong = ticket.trim() !== "" && !/^t-[0-9]{1,12}$/i.test(ticket.trim());
  const choose = (next: FilterChange) => {
    onChange({ ...none, ...next });
    setOpen(false);
    setTicket("");
  };
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" shadow="md" trapFocus returnFocus withRoles={false} width={380}>
      <Popover.Target>
        <Button variant={change ? "light" : "default"} leftSection={<IconStack size={15} aria-hidden />} onClick={() => setOpen(!open)} aria-expanded={open} aria-haspopup="dialog" data-testid="overlay-open">
          {t("traffic.overlay.choose")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={t("traffic.overlay.choose")} tabIndex={-1}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (!wrong && ticket.trim() !== "") choose({ ticket: ticket.trim().toUpperCase() });
          }}
        >
          <TextInput label={t("traffic.overlay.ticket")} description={t("traffic.overlay.ticketHelp")} placeholder="T-12" value={ticket} error={wrong && t("traffic.overlay.ticketWrong")} onChange={(event) => setTicket(event.currentTarget.value)} data-testid="overlay-ticket" />
          <Button type="submit" size="xs" variant="default" mt={8} mb="md" disabled={wrong || ticket.trim() === ""}>
            {t("traffic.overlay.show")}
          </Button>
        </form>
        <ResourceSelect label={t("traffic.overlay.enforce")} value="" onChange={(enforce) => enforce && choose({ enforce })} nothingFound={t("resources.noMatch")} testId="overlay-enforce" />
        <form
          className={classes.draft}
          onSubmit={(event) => {
            event.preventDefault();
            // A number that differs each time makes the page read the draft again.
            if (!tooLong && draft.trim() !== "" && keepDraft(draft)) choose({ draft: String(Date.now() % 1_000_000) });
          }}
        >
          <FileTextField label={t("traffic.overlay.draft")} description={t("traffic.overlay.draftHelp")} accept=".yaml,.yml,.json" choose={t("traffic.overlay.draftFile")} value={draft} onChange={setDraft} error={tooLong ? t("traffic.overlay.draftTooLong") : undefined} testId="overlay-draft" required={false} />
          <Button type="submit" size="xs" variant="default" mt={8} disabled={tooLong || draft.trim() === ""} data-testid="overlay-draft-show">
            {t("traffic.overlay.show")}
          </Button>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

interface Props {
  change: NonNullable<Change>;
  query: { data: Impact | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  overlay: Overlay | undefined;
  map: TrafficMap;
  onChange: (change: FilterChange) => void;
}

/** TrafficOverlay describes in one sentence the effect of the change on the links of the map. */
export function TrafficOverlay({ change, query, overlay, map, onChange }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const impact = query.data;
  const titleOf = (resource: string) => map.nodes.find(({ id, name: full }) => id === resource || full === resource)?.title ?? resource;
  const nameOf = () => {
    if ("ticket" in change) return change.revoke ? t("traffic.overlay.revocation", { ticket: change.ticket }) : change.ticket;
    if ("enforce" in change) return t("traffic.overlay.enforcing", { resource: titleOf(change.enforce) });
    return "proposal" in change ? t("traffic.overlay.proposed", { resource: titleOf(change.proposal) }) : t("traffic.overlay.drafted");
  };
  const name = nameOf();
  const wrong = query.error ? asApiError(query.error).fieldMessage("policy") : undefined;
  const lost = "draft" in change && keptDraft() === "";
  const cut = overlay?.cut.size ?? 0;
  const allowed = overlay?.let.size ?? 0;
  const cuts = cut > 0 ? t("traffic.overlay.wouldCut", { count: cut, number: words.number(cut) }) : t("traffic.overlay.cutsNothing");
  const sentence = allowed > 0 ? t("traffic.overlay.both", { cuts, lets: t("traffic.overlay.wouldLet", { count: allowed, number: words.number(allowed) }) }) : cuts;
  return (
    <div className={classes.overlay} data-testid="traffic-overlay">
      {wrong ? (
        <p role="alert" data-testid="overlay-wrong">
          <strong>{name}</strong> {words.message(wrong)}
        </p>
      ) : query.error ? (
        <>
          <strong>{name}</strong>
          <ErrorState error={query.error} onRetry={() => void query.refetch()} />
        </>
      ) : (
        <p role="status" data-testid="overlay-sentence">
          {"ticket" in change ? <Link to={`/tickets/${change.ticket}`}>{name}</Link> : <strong>{name}</strong>}
          {t("traffic.overlay.colon")}
          {lost ? t("traffic.overlay.draftLost") : impact === undefined ? t("traffic.overlay.reading") : !impact.available ? (impact.message ? words.message(impact.message) : t("connections.unavailable")) : sentence}
          {impact?.available && (
            <small>
              {t(isLong({ window: usualWindow, since: map.since, until: map.until }, Date.parse(map.until)) ? "traffic.overlay.basisLong" : "traffic.overlay.basis")}
              {overlay !== undefined && overlay.elsewhere > 0 && ` ${t("traffic.overlay.elsewhere", { count: overlay.elsewhere, number: words.number(overlay.elsewhere) })}`}
              {impact.truncated && ` ${t("impact.truncated")}`}
            </small>
          )}
        </p>
      )}
      {"ticket" in change && <SegmentedControl size="xs" aria-label={t("traffic.overlay.which")} data={[{ value: "ticket", label: t("traffic.overlay.asked") }, { value: "revoke", label: t("traffic.overlay.revoke") }]} value={change.revoke ? "revoke" : "ticket"} onChange={(next) => onChange({ change: next === "revoke" ? "revoke" : undefined })} data-testid="overlay-which" />}
      <Button size="xs" variant="default" onClick={() => onChange(none)} data-testid="overlay-remove">
        {t("traffic.overlay.remove")}
      </Button>
    </div>
  );
}

/** marksOf returns the bundles that the overlay affects. A bundle with links of both kinds is marked as cut. */
export function marksOf(overlay: Overlay | undefined, bundles: readonly { links: number[] }[]): ReadonlyMap<number, "cut" | "let"> {
  const out = new Map<number, "cut" | "let">();
  if (!overlay) return out;
  bundles.forEach(({ links }, index) => {
    if (links.some((link) => overlay.cut.has(link))) out.set(index, "cut");
    else if (links.some((link) => overlay.let.has(link))) out.set(index, "let");
  });
  return out;
}

