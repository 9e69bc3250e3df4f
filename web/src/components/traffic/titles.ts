import { useTranslation } from "react-i18next";
import { useCallback, useMemo } from "react";
import { shortName } from "../../lib/names";
import type { TrafficHeader, TrafficPicture, TrafficPlace } from "../../lib/traffic-map";

/** usePlaceTitle returns a function that returns the displayed name of a node or a group: groups without an owner have translated texts, and resource names are shortened. */
export function usePlaceTitle() {
  const { t } = useTranslation();
  return useCallback(
    (place: Pick<TrafficPlace | TrafficHeader, "title" | "groupKind"> & { name?: string }): string => {
      if (place.name === "*") return t("accessMap.everyone");
      if (place.title !== "") return place.title === place.name ? shortName(place.title) : place.title;
      const groups = { anyone: t("accessMap.everyone"), cidr: t("accessMap.outside"), wildcard: t("accessMap.wildcards"), unnamed: t("traffic.unnamed"), none: t("accessMap.noTeam"), team: "" };
      return groups[place.groupKind];
    },
    [t],
  );
}

/** useTitles returns the displayed names of all nodes and headers of a picture. */
export function useTitles(picture: TrafficPicture): { nodes: string[]; headers: string[] } {
  const title = usePlaceTitle();
  return useMemo(() => ({ nodes: picture.nodes.map(title), headers: picture.headers.map(title) }), [picture, title]);
}
