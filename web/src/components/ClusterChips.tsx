import { Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ClusterState } from "../api/types";
import { useWords } from "../lib/use-words";
import badge from "./Badge.module.css";
import { useWorstMembers } from "./MemberSummary";
import { clusterStateStyles } from "./state-styles";

/** mostChips is the maximum number of chips in a table cell. */
const mostChips = 6;

/** ClusterChips shows the members of a statement in a table cell as names with icons. The state and its message appear on hover and for screen readers. */
export function ClusterChips({ clusters }: { clusters: ClusterState[] | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const { shown, more } = useWorstMembers(clusters ?? [], mostChips, (cluster) => cluster.state);
  if (shown.length === 0) return null;
  return (
    <Group gap={4}>
      {shown.map((cluster) => {
        const { icon: Icon, tone } = clusterStateStyles[cluster.state];
        const word = t(`clusterState.${cluster.state}`);
        return (
          <span key={cluster.cluster} className={`${badge.badge} ${badge[tone]}`} title={cluster.message ? words.message(cluster.message) : `${word}. ${t(`clusterHelp.${cluster.state}`)}`} data-value={cluster.state}>
            <Icon size={13} aria-hidden />
            {cluster.cluster} {cluster.state !== "Realized" && word.toLocaleLowerCase()}
          </span>
        );
      })}
      {more}
    </Group>
  );
}
