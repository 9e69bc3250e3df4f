import { VisuallyHidden } from "@mantine/core";
import { IconCircleDashed } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { Ticket } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "./LiveLine.module.css";
import { clusterLooks, stepLooks } from "./states";

/** A ticket in one line: its steps, then its clusters. */
export function LiveLine({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const words = useWords();
  const stopped = ticket.state === "rejected" || ticket.state === "withdrawn";
  return (
    <ol className={classes.line} aria-label={t("ticket.progress")} data-testid={`live-line-${ticket.id}`}>
      {ticket.steps.map((step) => {
        const { icon: Icon, tone } = stepLooks[step.state];
        return (
          <li key={step.name} className={`${classes.item} ${classes[tone]}`} data-value={step.state} title={t(`stepState.${step.state}`)}>
            <Icon size={14} aria-hidden />
            {words.step(step.name)}
            <VisuallyHidden>: {t(`stepState.${step.state}`)}</VisuallyHidden>
          </li>
        );
      })}
      {ticket.clusters.map((cluster) => {
        const { icon: Icon, tone } = clusterLooks[cluster.state];
        return (
          <li key={cluster.cluster} className={`${classes.item} ${classes[tone]}`} data-value={cluster.state} title={cluster.message ?? t(`clusterState.${cluster.state}`)}>
            <Icon size={14} aria-hidden />
            {cluster.cluster}
            <VisuallyHidden>: {t(`clusterState.${cluster.state}`)}</VisuallyHidden>
          </li>
        );
      })}
      {ticket.clusters.length === 0 && !stopped && (
        <li className={classes.item}>
          <IconCircleDashed size={14} aria-hidden />
          {t("ticket.effect")}
        </li>
      )}
    </ol>
  );
}
