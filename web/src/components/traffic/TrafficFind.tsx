import { Select } from "@mantine/core";
import { memo, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { TrafficMap } from "../../api/types";
import { groupOf } from "../../lib/traffic-map";
import { usePlaceTitle } from "./titles";
import classes from "./Traffic.module.css";

/** offered is the maximum number of suggestions; typing narrows them. */
const offered = 100;

/** Found is the result that a search selects: a subject, a resource or a group. */
export type Found = { subject: string } | { resource: string } | { team: string };

interface Props {
  map: TrafficMap;
  onFind: (found: Found) => void;
}

/** TrafficFind finds a team, an application or a resource of the map by its name. */
export const TrafficFind = memo(function TrafficFind({ map, onFind }: Props) {
  const { t } = useTranslation();
  const title = usePlaceTitle();
  const { data, found } = useMemo(() => {
    const clients = new Set(map.links.map(({ from }) => from));
    const found = new Map<string, Found>();
    const teams: { value: string; label: string }[] = [];
    const names: { value: string; label: string }[] = [];
    for (const team of map.teams) {
      const key = `${team.kind}:${team.id}`;
      found.set(`t ${key}`, { team: key });
      teams.push({ value: `t ${key}`, label: team.displayName });
    }
    map.nodes.forEach((node, index) => {
      if (node.name === "") return;
      const value = `${clients.has(index) ? "c" : "s"} ${node.name}`;
      if (found.has(value)) return;
      found.set(value, clients.has(index) ? { subject: node.name } : { resource: node.name });
      names.push({ value, label: title({ title: node.title, name: node.name, groupKind: groupOf(map, node).kind }) });
    });
    return { data: [{ group: t("accessMap.levels.team"), items: teams }, { group: t("traffic.names"), items: names }].filter(({ items }) => items.length > 0), found };
  }, [map, title, t]);
  return (
    <Select
      className={classes.grow}
      size="xs"
      searchable
      limit={offered}
      aria-label={t("accessMap.find")}
      placeholder={t("accessMap.find")}
      nothingFoundMessage={t("accessMap.findNothing")}
      data={data}
      value={null}
      onChange={(value) => {
        const chosen = value === null ? undefined : found.get(value);
        if (chosen) onFind(chosen);
      }}
      data-testid="traffic-find"
    />
  );
});
