import { Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ClusterState } from "../api/types";
import badge from "./Badge.module.css";
import { clusterLooks } from "./states";

/** The members of a statement in a table cell: name and icon; the state's word and message on hover and for screen readers. */
export function ClusterChips({ clusters }: { clusters: ClusterState[] | undefined }) {
  const { t } = useTranslation();
  if (!clusters || clusters.length === 0) return null;
  return (
    <Group gap={4}>
      {clusters.map((cluster) => {
        const { icon: Icon, tone } = clusterLooks[cluster.state];
        const word = t(`clusterState.${cluster.state}`);
        return (
          <span key={cluster.cluster} className={`${badge.badge} ${badge[tone]}`} title={cluster.message ?? `${word}. ${t(`clusterHelp.${cluster.state}`)}`} data-value={cluster.state}>
            <Icon size={13} aria-hidden />
            {cluster.cluster} {cluster.state !== "Realized" && word.toLocaleLowerCase()}
          </span>
        );
      })}
    </Group>
  );
}
