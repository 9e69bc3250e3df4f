import { Button, Checkbox, MultiSelect, Pill, Select, TextInput } from "@mantine/core";
import { IconAdjustmentsHorizontal } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useFlowCoverage } from "../../api/flows";
import { decisions, filterKeys, held, isFiltered, usualWindow, verdicts, windowNames, without } from "../../lib/flow-filter";
import type { FlowFilter, Held, Window } from "../../lib/flow-filter";
import { shortName } from "../../lib/names";
import type { FilterChange } from "../../lib/use-filters";
import { useZone } from "../../lib/use-zone";
import { instantOf, wallTime } from "../../lib/zone";
import { ApplicationSelect, ResourceSelect } from "../EntitySelect";
import { SearchField } from "../SearchField";
import classes from "./Flows.module.css";

interface Props {
  filter: FlowFilter;
  search: URLSearchParams;
  onChange: (change: FilterChange) => void;
}

/** FlowWindow selects the window: one of some names back from now, or between two instants in the person's time zone. */
export function FlowWindow({ filter, names = windowNames, onChange }: Omit<Props, "search"> & { names?: Window[] }) {
  const { t } = useTranslation();
  const zone = useZone();
  const own = filter.since !== undefined || filter.until !== undefined;
  const wall = (at: string | undefined) => (at === undefined ? "" : wallTime(new Date(at), zone));
  const instant = (text: string) => instantOf(text, zone)?.toISOString();
  return (
    <>
      <Select
        className={classes.window}
        aria-label={t("flows.window")}
        allowDeselect={false}
        data={[...names.map((each) => ({ value: each as string, label: t(`flows.windows.${each}`) })), { value: "own", label: t("flows.windows.own") }]}
        value={own ? "own" : filter.window}
        onChange={(next) => {
          if (next === "own") onChange({ window: undefined, since: new Date(Date.now() - 86_400_000).toISOString(), until: undefined });
          else onChange({ window: next === usualWindow ? undefined : (next ?? undefined), since: undefined, until: undefined });
        }}
        data-testid="flow-window"
      />
      {own && (
        <>
          <TextInput type="datetime-local" aria-label={t("ledger.from")} value={wall(filter.since)} onChange={(event) => onChange({ since: instant(event.currentTarget.value) })} data-testid="flow-since" />
          <TextInput type="datetime-local" aria-label={t("ledger.to")} value={wall(filter.until)} onChange={(event) => onChange({ until: instant(event.currentTarget.value) })} data-testid="flow-until" />
        </>
      )}
    </>
  );
}

/** Add is a text field whose text is added to the values on Enter. */
function Add({ label, testId, onAdd }: { label: string; testId: string; onAdd: (text: string) => void }) {
  const [text, setText] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") onAdd(text.trim());
        setText("");
      }}
    >
      <TextInput placeholder={label} aria-label={label} value={text} maxLength={127} onChange={(event) => setText(event.currentTarget.value)} data-testid={testId} />
    </form>
  );
}

/** More shows less common filters behind a button. They are open if one of them is set. */
function More({ filter, search, onChange }: Props) {
  const { t } = useTranslation();
  const add = (key: string) => (value: string) => value !== "" && onChange({ [key]: [...search.getAll(key).filter((each) => each !== value), value] });
  return (
    <div className={classes.more}>
      <ApplicationSelect size="sm" placeholder={t("flows.addSubject")} value="" onChange={add("subject")} nothingFound={t("applications.noMatch")} testId="flow-subject" />
      <ResourceSelect size="sm" placeholder={t("flows.addResource")} value="" onChange={add("resource")} nothingFound={t("resources.noMatch")} testId="flow-resource" />
      <Add label={t("flows.addAction")} onAdd={add("action")} testId="flow-action" />
      <Add label={t("flows.addPort")} onAdd={add("port")} testId="flow-port" />
      <MultiSelect
        aria-label={t("flows.verdict")}
        placeholder={filter.verdict.length > 0 ? undefined : t("flows.anyVerdict")}
        data={verdicts.map((each) => ({ value: each, label: t(`verdict.${each}`) }))}
        value={filter.verdict}
        onChange={(verdict) => onChange({ verdict })}
        clearable
        data-testid="flow-verdict"
      />
      <Checkbox className={classes.check} label={t("flows.unattributed")} checked={filter.unattributed} onChange={(event) => onChange({ unattributed: event.currentTarget.checked ? "true" : undefined })} data-testid="flow-unattributed" />
    </div>
  );
}

/** HeldPills lists filter values that no other control shows, each with a button that removes it. */
function HeldPills({ all, search, onChange }: { all: Held[]; search: URLSearchParams; onChange: Props["onChange"] }) {
  const { t } = useTranslation();
  const named = ({ key, value }: Held) => (key === "subject" || key === "resource" ? shortName(value) : value);
  return all.map((each) => {
    const text = `${t(`flows.key.${each.key}`)}: ${named(each)}`;
    return (
      <Pill key={`${each.key}/${each.value}`} withRemoveButton size="md" title={each.value} removeButtonProps={{ "aria-label": t("flows.remove", { what: text }), "aria-hidden": false, tabIndex: 0 }} onRemove={() => onChange({ [each.key]: without(search, each) })} data-testid={`held-${each.key}`}>
        {text}
      </Pill>
    );
  });
}

/** FlowFilters is the filter bar. All of its values are in the URL. */
export function FlowFilters({ filter, search, onChange }: Props) {
  const { t } = useTranslation();
  const coverage = useFlowCoverage(filter).data;
  const clusters = [...new Set([...Object.keys(coverage?.lastFlow ?? {}), ...(coverage?.items ?? []).map((each) => each.cluster), ...filter.cluster])].sort();
  const all = held(filter);
  const hidden = filter.verdict.length + Number(filter.unattributed);
  const [more, setMore] = useState(hidden > 0);
  return (
    <div role="search" aria-label={t("flows.filters")}>
      <div className={classes.filters}>
        <FlowWindow filter={filter} onChange={onChange} />
        <SearchField className={classes.text} label={t("flows.search")} value={filter.q ?? ""} onChange={(q) => onChange({ q })} testId="flow-search" />
        <MultiSelect
          className={filter.decision.length > 0 ? classes.chosen : classes.pick}
          aria-label={t("connections.decision")}
          placeholder={filter.decision.length > 0 ? undefined : t("flows.anyDecision")}
          data={decisions.map((each) => ({ value: each, label: t(`decision.${each}`) }))}
          value={filter.decision}
          onChange={(decision) => onChange({ decision })}
          clearable
          data-testid="flow-decision"
        />
        <MultiSelect className={filter.cluster.length > 0 ? classes.chosen : classes.pick} aria-label={t("connections.cluster")} placeholder={filter.cluster.length > 0 ? undefined : t("flows.anyCluster")} data={clusters} value={filter.cluster} onChange={(cluster) => onChange({ cluster })} clearable searchable data-testid="flow-cluster" />
        <Button variant="subtle" color="gray" leftSection={<IconAdjustmentsHorizontal size={15} aria-hidden />} aria-expanded={more} onClick={() => setMore(!more)} data-testid="flow-more">
          {t("requests.more")}
          {hidden > 0 && ` (${hidden})`}
        </Button>
        {more && <More filter={filter} search={search} onChange={onChange} />}
      </div>
      {isFiltered(search) && (
        <div className={classes.held}>
          <HeldPills all={all} search={search} onChange={onChange} />
          <Button size="compact-xs" variant="subtle" color="gray" onClick={() => onChange(Object.fromEntries(filterKeys.map((key) => [key, undefined])))} data-testid="flow-clear">
            {t("action.clear")}
          </Button>
        </div>
      )}
    </div>
  );
}
