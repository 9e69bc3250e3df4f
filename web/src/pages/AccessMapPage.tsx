import { Button, Checkbox, MultiSelect, SegmentedControl, Select } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useAccessGraph } from "../api/fleet";
import { useClasses, useMe } from "../api/queries";
import type { AccessGraph } from "../api/types";
import { AccessCanvas } from "../components/access/AccessCanvas";
import classes from "../components/access/Access.module.css";
import { AccessEdges } from "../components/access/AccessEdges";
import { MapNav } from "../components/access/MapNav";
import { PathFinder } from "../components/access/PathFinder";
import { Loaded, Notice } from "../components/Feedback";
import govern from "../components/govern/Govern.module.css";
import { canSeeGovernance, GovernanceOnly } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import { expiryDays, filterNames, filterOf, focusChange, focusIn, levelOf } from "../lib/access-filter";
import { levelBelow, levels } from "../lib/access-graph";
import type { Focus } from "../lib/access-graph";
import { modes, originKinds } from "../lib/governance-filters";
import { shortName } from "../lib/names";
import { among, useFilters } from "../lib/use-filters";
import type { FilterChange } from "../lib/use-filters";
import { useWords } from "../lib/use-words";

function Filters({ search, onChange }: { search: URLSearchParams; onChange: (change: FilterChange) => void }) {
  const { t } = useTranslation();
  const names = (useClasses().data?.items ?? []).filter(({ kind }) => kind === "ResourceClass").map(({ name }) => name);
  const chosen = search.get("class");
  const [mode, origin] = [among(search.getAll("mode"), modes), among(search.getAll("origin"), originKinds)];
  return (
    <div className={govern.filters} role="search" aria-label={t("govern.filters")}>
      <SearchField label={t("govern.search")} value={search.get("q") ?? ""} onChange={(q) => onChange({ q })} testId="access-search" />
      <Select w={140} clearable searchable aria-label={t("accessMap.class")} placeholder={t("accessMap.class")} data={[...new Set([...names, ...(chosen ? [chosen] : [])])].sort()} value={chosen} onChange={(next) => onChange({ class: next ?? undefined })} data-testid="access-class" />
      <MultiSelect w={170} clearable aria-label={t("accessMap.mode")} placeholder={mode.length > 0 ? undefined : t("accessMap.mode")} data={modes.map((each) => ({ value: each as string, label: t(`mode.${each}`) }))} value={mode} onChange={(next) => onChange({ mode: next })} data-testid="access-mode" />
      <MultiSelect w={170} clearable aria-label={t("accessMap.origin")} placeholder={origin.length > 0 ? undefined : t("accessMap.origin")} data={originKinds.map((each) => ({ value: each as string, label: t(`origin.${each}`) }))} value={origin} onChange={(next) => onChange({ origin: next })} data-testid="access-origin" />
      <Select w={140} clearable aria-label={t("accessMap.expires")} placeholder={t("accessMap.expires")} data={expiryDays.map((days) => ({ value: String(days), label: t("accessMap.days", { count: days }) }))} value={search.get("expires")} onChange={(next) => onChange({ expires: next ?? undefined })} data-testid="access-expires" />
      <Checkbox label={t("accessMap.broad")} checked={search.get("broad") === "true"} onChange={(event) => onChange({ broad: event.currentTarget.checked ? "true" : undefined })} data-testid="access-broad" />
    </div>
  );
}

/** focusName returns the title of the selected node if the answer contains one, otherwise its name. */
function focusName(focus: Focus, graph: AccessGraph | undefined): string {
  if (focus === undefined) return "";
  if ("team" in focus) return graph?.teams.find((team) => `${team.kind}:${team.id}` === focus.team)?.displayName ?? focus.team;
  const name = "subject" in focus ? focus.subject : focus.resource;
  const title = graph?.nodes.find((node) => node.name === name)?.title;
  return title && title !== name ? title : shortName(name);
}

function Map() {
  const { t } = useTranslation();
  const words = useWords();
  const [search, change] = useFilters();
  const filter = filterOf(search);
  const level = levelOf(search);
  const focus = focusIn(search);
  const graph = useAccessGraph(filter);
  const names = filterNames.filter((name) => search.has(name));
  return (
    <>
      <Filters search={search} onChange={change} />
      {focus && (
        <div className={classes.focus} data-testid="access-focus">
          <span>{t("accessMap.focused", { name: focusName(focus, graph.data) })}</span>
          <Button size="xs" variant="default" onClick={() => change({ ...focusChange(undefined), level: undefined })} data-testid="access-unfocus">
            {t("accessMap.unfocus")}
          </Button>
        </div>
      )}
      <div className={classes.both}>
        <Loaded query={graph}>
          {(data) => (
            <div>
              {data.cut && <Notice testId="graph-cut">{t("accessMap.cut", { shown: words.number(data.links.length), total: words.number(data.total) })}</Notice>}
              {data.links.length > 0 && (
                <AccessCanvas graph={data} level={level} onPick={(node) => change({ ...focusChange(node.focus), level: levelBelow(level, node) })}>
                  <SegmentedControl
                    size="xs"
                    aria-label={t("accessMap.level")}
                    data={levels.map((each) => ({ value: each as string, label: t(`accessMap.levels.${each}`) }))}
                    value={level}
                    onChange={(next) => change({ level: next === "team" ? undefined : next })}
                    data-testid="access-level"
                  />
                </AccessCanvas>
              )}
            </div>
          )}
        </Loaded>
        <PathFinder />
        <AccessEdges filter={filter} onClear={names.length > 0 ? () => change(Object.fromEntries(names.map((name) => [name, undefined]))) : undefined} />
      </div>
    </>
  );
}

/** AccessMapPage shows who can reach what as a graph and a table, and the path from a subject to a resource. */
export function AccessMapPage() {
  const { t } = useTranslation();
  const [search] = useFilters();
  return (
    <Page wide title={t("accessMap.title")} sub={t("accessMap.intro")} actions={canSeeGovernance(useMe().data) && <SavedViews page="access" query={search.toString()} />}>
      <GovernanceOnly>
        <MapNav />
        <Map />
      </GovernanceOnly>
    </Page>
  );
}
