import { Button, MultiSelect, SegmentedControl, Select } from "@mantine/core";
import { IconAdjustmentsHorizontal } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { TicketFilter, TicketView } from "../../api/queries";
import type { TicketState } from "../../api/types";
import { ticketKinds } from "../../lib/items";
import { secondsPerDay } from "../../lib/time";
import { among } from "../../lib/use-filters";
import type { FilterChange } from "../../lib/use-filters";
import { useWords } from "../../lib/use-words";
import { ApplicationSelect, PersonSelect, ResourceSelect } from "../EntitySelect";
import { SearchField } from "../SearchField";
import { ticketStateStyles } from "../state-styles";
import classes from "./RequestFilters.module.css";

const views = ["mine", "approvals", "decided", "review", "owned", "all"] as const satisfies readonly TicketView[];
const states = Object.keys(ticketStateStyles) as TicketState[];
const expiringDays = ["7", "14", "30"] as const;

/** requestFilterOf reads the filter of the requests from the URL and ignores values that are not allowed. */
export function requestFilterOf(search: URLSearchParams): TicketFilter {
  const text = (key: string) => search.get(key)?.trim() || undefined;
  const state = among(search.getAll("state"), states);
  const kind = among(search.getAll("kind"), ticketKinds);
  const days = expiringDays.find((each) => each === search.get("expiring"));
  const filter: TicketFilter = { view: among(search.getAll("view"), views)[0] ?? "mine" };
  if (state.length > 0) filter.state = state;
  if (kind.length > 0) filter.kind = kind;
  if (days) filter.expiringWithinSeconds = Number(days) * secondsPerDay;
  const [q, application, resource, requester] = [text("q"), text("application"), text("resource"), text("requester")];
  if (q) filter.q = q;
  if (application) filter.application = application;
  if (resource) filter.resource = resource;
  if (requester) filter.requester = requester;
  return filter;
}

/** requestFilterKeys contains the URL parameters that filter the requests; the view is not among them. */
export const requestFilterKeys = ["state", "kind", "q", "application", "resource", "requester", "expiring"] as const;

interface Props {
  search: URLSearchParams;
  onChange: (change: FilterChange) => void;
}

/** More shows less common filters behind a button. They are open if one of them is set. */
function More({ search, onChange }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const value = (key: string) => search.get(key) ?? "";
  return (
    <div className={classes.more}>
      <ApplicationSelect size="sm" clearable placeholder={t("requests.anyApplication")} value={value("application")} onChange={(application) => onChange({ application })} nothingFound={t("applications.noMatch")} testId="filter-application" />
      <ResourceSelect size="sm" clearable placeholder={t("requests.anyResource")} value={value("resource")} onChange={(resource) => onChange({ resource })} nothingFound={t("resources.noMatch")} testId="filter-resource" />
      {value("view") !== "" && value("view") !== "mine" && (
        <PersonSelect size="sm" clearable placeholder={t("requests.anyone")} value={value("requester")} onChange={(requester) => onChange({ requester })} nothingFound={t("person.noMatch")} testId="filter-requester" />
      )}
      <Select
        clearable
        placeholder={t("requests.anyEnd")}
        aria-label={t("requests.expiring")}
        data={expiringDays.map((days) => ({ value: days, label: t("requests.endsWithin", { duration: words.duration(Number(days) * secondsPerDay) }) }))}
        value={expiringDays.find((days) => days === search.get("expiring")) ?? null}
        onChange={(expiring) => onChange({ expiring: expiring ?? undefined })}
        data-testid="filter-expiring"
      />
    </div>
  );
}

/** RequestFilters shows the filters of the requests page and changes them in the URL. */
export function RequestFilters({ search, onChange }: Props) {
  const { t } = useTranslation();
  const filter = requestFilterOf(search);
  const hidden = ["application", "resource", "requester", "expiring"].filter((key) => search.has(key)).length;
  const [more, setMore] = useState(hidden > 0);
  return (
    <div className={classes.filters} role="search" aria-label={t("requests.filters")}>
      <SegmentedControl
        className={classes.views}
        size="sm"
        aria-label={t("requests.view")}
        data={views.map((each) => ({ value: each, label: t(`requests.views.${each}`) }))}
        value={filter.view}
        onChange={(next) => onChange({ view: next === "mine" ? undefined : next })}
        data-testid="requests-view"
      />
      <SearchField className={classes.text} label={t("requests.search")} value={filter.q ?? ""} onChange={(q) => onChange({ q })} testId="requests-search" />
      <MultiSelect
        aria-label={t("requests.state")}
        placeholder={filter.state ? undefined : t("requests.anyState")}
        data={states.map((each) => ({ value: each, label: t(`ticketState.${each}`) }))}
        value={filter.state ?? []}
        onChange={(state) => onChange({ state })}
        clearable
        w={150}
        data-testid="requests-state"
      />
      <MultiSelect
        aria-label={t("requests.kind")}
        placeholder={filter.kind ? undefined : t("requests.anyKind")}
        data={ticketKinds.map((each) => ({ value: each, label: t(`kind.${each}`) }))}
        value={filter.kind ?? []}
        onChange={(kind) => onChange({ kind })}
        clearable
        w={150}
        data-testid="requests-kind"
      />
      <Button variant="subtle" color="gray" leftSection={<IconAdjustmentsHorizontal size={15} aria-hidden />} aria-expanded={more} onClick={() => setMore(!more)} data-testid="filters-more">
        {t("requests.more")}
        {hidden > 0 && ` (${hidden})`}
      </Button>
      {more && <More search={search} onChange={onChange} />}
    </div>
  );
}
