import { VisuallyHidden } from "@mantine/core";
import { IconCircleDashed } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { TicketItem } from "../api/types";
import { sumClusters, sumSteps } from "../lib/items";
import { useWords } from "../lib/use-words";
import classes from "./TicketProgress.module.css";
import { clusterStateStyles, stepStateStyles } from "./state-styles";

const stopped: TicketItem["state"][] = ["rejected", "withdrawn", "timed-out", "revoked", "expired"];

interface Props {
  items: TicketItem[];
  testId?: string;
}

/**
 * TicketProgress shows the steps of the items, then their members, in one line. With several items it shows the least advanced state of each step, and
 * how many items are beyond it.
 */
export function TicketProgress({ items, testId }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const clusters = sumClusters(items);
  const over = items.every((item) => stopped.includes(item.state));
  return (
    <ol className={classes.line} aria-label={t("ticket.progress")} data-testid={testId}>
      {sumSteps(items).map(({ name, state, done, of }) => {
        const { icon: Icon, tone } = stepStateStyles[state];
        return (
          <li key={name} className={`${classes.item} ${classes[tone]}`} data-value={state} title={t(`stepState.${state}`)}>
            <Icon size={14} aria-hidden />
            {words.step(name)}
            {of > 1 && done < of && ` ${words.number(done)}/${words.number(of)}`}
            <VisuallyHidden>: {t(`stepState.${state}`)}</VisuallyHidden>
          </li>
        );
      })}
      {clusters.map((cluster) => {
        const { icon: Icon, tone } = clusterStateStyles[cluster.state];
        return (
          <li key={cluster.cluster} className={`${classes.item} ${classes[tone]}`} data-value={cluster.state} title={cluster.message ? words.message(cluster.message) : t(`clusterState.${cluster.state}`)}>
            <Icon size={14} aria-hidden />
            {cluster.cluster}
            <VisuallyHidden>: {t(`clusterState.${cluster.state}`)}</VisuallyHidden>
          </li>
        );
      })}
      {clusters.length === 0 && !over && (
        <li className={classes.item}>
          <IconCircleDashed size={14} aria-hidden />
          {t("ticket.effect")}
        </li>
      )}
    </ol>
  );
}
