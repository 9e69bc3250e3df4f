import { useTranslation } from "react-i18next";
import { seenKinds } from "../../lib/traffic-map";
import type { TrafficKind } from "../../lib/traffic-map";
import { useWords } from "../../lib/use-words";
import { KindSwatch } from "./KindSwatch";
import classes from "./Traffic.module.css";

interface Props {
  counts: Record<TrafficKind, number>;
  hidden: ReadonlySet<TrafficKind>;
  onToggle: (kind: TrafficKind) => void;
}

/** TrafficLegend shows how each kind of traffic is drawn and the number of its links. A press hides or shows the kind. */
export function TrafficLegend({ counts, hidden, onToggle }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <div className={classes.legend} role="group" aria-label={t("traffic.legend")}>
      {([...seenKinds, "granted"] as const).map((kind) => (
        <button key={kind} type="button" className={classes.kind} aria-pressed={!hidden.has(kind)} title={t(`traffic.kindHelp.${kind}`)} onClick={() => onToggle(kind)} data-testid={`traffic-kind-${kind}`}>
          <KindSwatch kind={kind} />
          {t(`traffic.kind.${kind}`)} <strong>{words.number(counts[kind])}</strong>
        </button>
      ))}
    </div>
  );
}
