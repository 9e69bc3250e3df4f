import { useTranslation } from "react-i18next";
import type { NodeSummary as Summary } from "../api/types";
import { useWords } from "../lib/use-words";
import { ToneBadge } from "./Badge";
import type { Tone } from "./state-styles";
import classes from "./NodeSummary.module.css";

/** toneOf returns "ok" only if every node of every member is realized. */
function toneOf(nodes: Summary): Tone {
  if (nodes.members === 0) return "idle";
  if (nodes.unknown > 0) return "warn";
  if (nodes.realized < nodes.total) return "busy";
  return nodes.unreported > 0 || nodes.total === 0 ? "idle" : "ok";
}

/**
 * NodeSummary shows on how many nodes a change is enforced, and the members in which nodes lag or are unknown. Without reports it says what is known
 * instead.
 */
export function NodeSummary({ nodes, testId = "nodes" }: { nodes: Summary | undefined; testId?: string }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!nodes) return null;
  const tone = toneOf(nodes);
  return (
    <div className={classes.nodes} data-testid={testId} data-value={tone}>
      <div className={classes.head}>
        <ToneBadge tone={tone} word={nodes.members === 0 ? t("nodes.notReported") : t("nodes.of", { realized: words.number(nodes.realized), total: words.number(nodes.total) })} help={t("nodes.help")} />
      </div>
      {nodes.messages.slice(nodes.members === 0 ? 0 : 1).map((message) => (
        <p key={message.code}>{words.message(message)}</p>
      ))}
      {nodes.clusters.length > 0 && (
        <ul className={classes.members}>
          {nodes.clusters.map((cluster) => (
            <li key={cluster.cluster}>{words.message(cluster.message)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
