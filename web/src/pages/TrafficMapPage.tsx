import { ActionIcon, Button, MultiSelect, SegmentedControl } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { trafficMapQuery, useFlowCoverage, useTrafficMap } from "../api/flows";
import { useMe } from "../api/queries";
import type { TrafficMap } from "../api/types";
import { CsvLink } from "../components/CsvLink";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { FlowWindow } from "../components/flows/FlowFilters";
import { LossBanner } from "../components/flows/LossBanner";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { MapNav } from "../components/access/MapNav";
import { Page } from "../components/Page";
import { SavedViews } from "../components/SavedViews";
import pageClasses from "../components/Page.module.css";
import { SearchField } from "../components/SearchField";
import { RelativeTime } from "../components/Time";
import { BundlePanel } from "../components/traffic/BundlePanel";
import classes from "../components/traffic/Traffic.module.css";
import { TrafficCanvas } from "../components/traffic/TrafficCanvas";
import { TrafficFind } from "../components/traffic/TrafficFind";
import type { Found } from "../components/traffic/TrafficFind";
import { TrafficLegend } from "../components/traffic/TrafficLegend";
import { ChangePicker, changeIn, marksOf, TrafficOverlay, useChange } from "../components/traffic/TrafficOverlay";
import { TrafficTable } from "../components/traffic/TrafficTable";
import { levels } from "../lib/access-graph";
import { flowFilterOf, isLong, longestWindow, longWindowNames, shortened, usualWindow } from "../lib/flow-filter";
import type { FlowFilter } from "../lib/flow-filter";
import { shortName } from "../lib/names";
import { hiddenIn, overlayOf, toggleKey, totals, trafficKinds, trafficLevelOf, trafficPicture } from "../lib/traffic-map";
import type { Side, TrafficPlace } from "../lib/traffic-map";
import { applyChange, useFilters } from "../lib/use-filters";
import type { FilterChange } from "../lib/use-filters";
import { useWords } from "../lib/use-words";

/** trafficFilterOf reads the filter of the map from the URL: of the filter of flows, those parts that a pair of ends can have. */
function trafficFilterOf(search: URLSearchParams): FlowFilter {
  return { ...flowFilterOf(search, longWindowNames), decision: [], verdict: [], action: [], port: [], policy: undefined, sid: undefined, unattributed: false, disagree: false };
}

const narrowed = ["subject", "resource", "cluster", "q", "team", "hide"] as const;
const cleared = Object.fromEntries(narrowed.map((key) => [key, undefined]));

/** hasLongPeriod reports whether the period is longer than those of the other pages. */
const hasLongPeriod = (filter: FlowFilter): boolean => isLong(filter, Date.now());

/** lastPart returns the filter with the last part of its period that the other pages have. */
const lastPart = (filter: FlowFilter): FlowFilter => shortened(filter, Date.now());

/** spanOf returns the parameters of the period on the page Flows. Of a longer one than this page has, they are those of its last part. */
function spanOf(filter: FlowFilter): URLSearchParams {
  const { window, since, until } = lastPart(filter);
  const parts = { window: since === undefined && window !== usualWindow ? window : undefined, since, until };
  return new URLSearchParams(Object.entries(parts).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
}

/** replayedPeriod returns the period of a map over which a change is replayed. */
function replayedPeriod({ since, until }: TrafficMap): { since: string; until: string } {
  const earliest = Date.parse(until) - longestWindow * 1_000;
  return { since: Date.parse(since) < earliest ? new Date(earliest).toISOString() : since, until };
}

interface Props {
  filter: FlowFilter;
  search: URLSearchParams;
  onChange: (change: FilterChange) => void;
}

function Filters({ filter, search, onChange }: Props) {
  const { t } = useTranslation();
  const coverage = useFlowCoverage(lastPart(filter)).data;
  const clusters = [...new Set([...Object.keys(coverage?.lastFlow ?? {}), ...filter.cluster])].sort();
  return (
    <div className={classes.filters} role="search" aria-label={t("flows.filters")}>
      <FlowWindow filter={filter} names={longWindowNames} onChange={onChange} />
      <SearchField label={t("flows.search")} value={filter.q ?? ""} onChange={(q) => onChange({ q })} testId="traffic-search" />
      <MultiSelect w={170} aria-label={t("connections.cluster")} placeholder={filter.cluster.length > 0 ? undefined : t("flows.anyCluster")} data={clusters} value={filter.cluster} onChange={(cluster) => onChange({ cluster })} clearable searchable data-testid="traffic-cluster" />
      <ChangePicker change={changeIn(search)} onChange={onChange} />
    </div>
  );
}

/** Focus says to which names the map is limited, with a button that removes the limit. */
function Focus({ map, filter, search, onChange }: Props & { map: TrafficMap | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const team = search.get("team");
  const nameOf = (name: string) => {
    const node = map?.nodes.find((each) => each.name === name || each.id === name);
    return node && node.title !== node.name ? node.title : shortName(name);
  };
  const names = [...filter.subject, ...filter.resource].map(nameOf);
  if (team) names.push(map?.teams.find(({ kind, id }) => `${kind}:${id}` === team)?.displayName ?? team);
  if (names.length === 0) return null;
  return (
    <div className={classes.focus} data-testid="traffic-focus">
      <span>{t("accessMap.focused", { name: words.list(names) })}</span>
      <Button size="xs" variant="default" onClick={() => onChange({ subject: undefined, resource: undefined, team: undefined, from: undefined, to: undefined })} data-testid="traffic-unfocus">
        {t("accessMap.unfocus")}
      </Button>
    </div>
  );
}

const downloadOf = (filter: FlowFilter) => {
  const search = new URLSearchParams({ format: "csv" });
  for (const [key, value] of Object.entries(trafficMapQuery(filter, Date.now()))) for (const each of [value].flat()) if (each !== undefined) search.append(key, String(each));
  return `/api/v1/flows/map?${search.toString()}`;
};

function Drawing({ map, filter, search, onChange }: Props & { map: TrafficMap }) {
  const { t } = useTranslation();
  const words = useWords();
  const level = trafficLevelOf(search);
  const change = changeIn(search);
  const answer = useChange(change, replayedPeriod(map));
  const hiddenText = search.getAll("hide").join(" ");
  const toggledText = search.getAll("open").join("\n");
  const team = search.get("team") ?? undefined;
  const hidden = useMemo(() => hiddenIn(new URLSearchParams(hiddenText.split(" ").map((each) => ["hide", each]))), [hiddenText]);
  const picture = useMemo(() => trafficPicture(map, { level, hidden, team, toggled: new Set(toggledText.split("\n")) }), [map, level, hidden, team, toggledText]);
  const counts = useMemo(() => totals(map), [map]);
  const impact = answer?.data;
  const overlay = useMemo(() => (impact?.available ? overlayOf(map, impact) : undefined), [map, impact]);
  const marks = useMemo(() => marksOf(overlay, picture.bundles), [overlay, picture]);
  const toggle = (side: Side, group: string) => {
    const key = toggleKey(side, group);
    const all = search.getAll("open");
    onChange({ open: all.includes(key) ? all.filter((each) => each !== key) : [...all, key], from: undefined, to: undefined });
  };
  const selected = useMemo(() => {
    const [from, to] = [search.get("from"), search.get("to")];
    const index = picture.bundles.findIndex((bundle) => picture.nodes[bundle.from]?.key === from && picture.nodes[bundle.to]?.key === to);
    return from === null || index < 0 ? undefined : index;
  }, [picture, search]);
  const bundle = selected === undefined ? undefined : picture.bundles[selected];
  const [from, to] = [picture.nodes[bundle?.from ?? -1], picture.nodes[bundle?.to ?? -1]];
  const select = (index: number | undefined) => {
    const chosen = index === undefined ? undefined : picture.bundles[index];
    onChange({ from: picture.nodes[chosen?.from ?? -1]?.key, to: picture.nodes[chosen?.to ?? -1]?.key });
  };
  const pick = (place: TrafficPlace) => {
    if (!place.single) toggle(place.side, place.group);
    else if (place.name) onChange({ from: undefined, to: undefined, ...(place.side === "client" ? { subject: place.name } : { resource: place.name }) });
  };
  const find = useCallback((found: Found) => onChange({ from: undefined, to: undefined, ...found }), [onChange]);
  const asTable = search.get("view") === "table";
  const filtered = narrowed.some((key) => search.has(key));
  const openable = bundle && from && to ? [from, to].filter(({ single, names }) => !single && names > 0) : [];

  if (!map.available) return <Notice testId="flows-unavailable">{map.message ? words.message(map.message) : t("connections.unavailable")}</Notice>;
  const tools = (
    <>
      <SegmentedControl size="xs" aria-label={t("accessMap.level")} data={levels.map((each) => ({ value: each as string, label: t(`accessMap.levels.${each}`) }))} value={level} onChange={(next) => onChange({ level: next === "team" ? undefined : next, open: undefined, from: undefined, to: undefined })} data-testid="traffic-level" />
      <SegmentedControl size="xs" aria-label={t("traffic.view")} data={[{ value: "picture", label: t("traffic.views.picture") }, { value: "table", label: t("traffic.views.table") }]} value={asTable ? "table" : "picture"} onChange={(next) => onChange({ view: next === "table" ? "table" : undefined })} data-testid="traffic-view" />
      <TrafficFind map={map} onFind={find} />
    </>
  );
  return (
    <>
      {change && answer && <TrafficOverlay change={change} query={answer} map={map} overlay={overlay} onChange={onChange} />}
      {map.links.length > 0 && (
        <TrafficLegend
          counts={counts}
          hidden={hidden}
          onToggle={(kind) => onChange({ hide: trafficKinds.filter((each) => hidden.has(each) !== (each === kind)), from: undefined, to: undefined })}
        />
      )}
      {map.cut && <Notice testId="traffic-cut">{t("traffic.cut", { shown: words.number(map.links.length), total: words.number(map.total) })}</Notice>}
      {picture.bundles.length === 0 ? (
        <EmptyState
          testId="traffic-empty"
          action={
            filtered && (
              <Button variant="default" onClick={() => onChange(cleared)} data-testid="traffic-clear">
                {t("action.clear")}
              </Button>
            )
          }
        >
          {t(filtered ? "traffic.noMatch" : map.lastFlow ? "traffic.empty" : "connections.noFlow")}
        </EmptyState>
      ) : asTable ? (
        <>
          <div className={classes.filters}>{tools}</div>
          <TrafficTable picture={picture} marks={marks} onOpen={select} />
        </>
      ) : (
        <TrafficCanvas map={map} picture={picture} marks={marks} selected={selected} onBundle={select} onPlace={pick} onFold={toggle}>
          {tools}
        </TrafficCanvas>
      )}
      {bundle && from && to && (
        <BundlePanel
          map={map}
          bundle={bundle}
          from={from}
          to={to}
          span={spanOf(filter)}
          onUnfold={openable.length > 0 ? () => onChange({ open: [...new Set([...search.getAll("open"), ...openable.map(({ side, group }) => toggleKey(side, group))])], from: undefined, to: undefined }) : undefined}
          onClose={() => select(undefined)}
        />
      )}
      {map.links.length > 0 && (
        <div className={classes.buttons}>
          <CsvLink href={downloadOf(filter)} testId="traffic-csv" />
          <Link to={`/flows?${spanOf(filter).toString()}`}>{t("traffic.allFlows")}</Link>
          {map.lastFlow && (
            <p className={pageClasses.aside}>
              {t("connections.lastFlow")}: <RelativeTime at={map.lastFlow} />
            </p>
          )}
        </div>
      )}
    </>
  );
}

/** TrafficMapPage shows who connected to what beside what is granted: as a picture and as a table, for a period that the URL names. */
export function TrafficMapPage() {
  const { t } = useTranslation();
  const [search, change] = useFilters();
  const filter = trafficFilterOf(search);
  const query = useTrafficMap(filter);
  const me = useMe().data;
  const all = me !== undefined && canSeeGovernance(me);
  const lossPath = `/flows?${applyChange(spanOf(filter), { tab: "losses" }).toString()}`;
  return (
    <Page
      wide
      title={t("traffic.title")}
      sub={t(me === undefined || all ? "traffic.intro" : "traffic.introOwn")}
      actions={
        <div style={{ display: "flex", gap: 8 }}>
          <ActionIcon variant="default" size="lg" onClick={() => void query.refetch()} loading={query.isFetching} aria-label={t("flows.refresh")} title={t("flows.refresh")} data-testid="traffic-refresh">
            <IconRefresh size={16} aria-hidden />
          </ActionIcon>
          <SavedViews page="traffic" query={search.toString()} />
        </div>
      }
    >
      {all && <MapNav />}
      <Filters filter={filter} search={search} onChange={change} />
      {hasLongPeriod(filter) && <Notice testId="traffic-long">{t("traffic.long")}</Notice>}
      <LossBanner filter={lastPart(filter)} to={lossPath} />
      <Focus map={query.data} filter={filter} search={search} onChange={change} />
      <Loaded query={query}>{(map) => <Drawing map={map} filter={filter} search={search} onChange={change} />}</Loaded>
    </Page>
  );
}
