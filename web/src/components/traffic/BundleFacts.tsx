import { useTranslation } from "react-i18next";
import type { TrafficMap } from "../../api/types";
import { seenKinds } from "../../lib/traffic-map";
import type { Bundle } from "../../lib/traffic-map";
import { useWords } from "../../lib/use-words";
import { ConnectionCount } from "../ConnectionCount";
import { RelativeTime } from "../Time";
import { KindSwatch } from "./KindSwatch";
import classes from "./Traffic.module.css";

/** useGrantText returns a function that describes the grants between the ends of a bundle. */
export function useGrantText() {
  const { t } = useTranslation();
  const words = useWords();
  return ({ links, granted, unused }: Pick<Bundle, "links" | "granted" | "unused">): string => {
    if (granted === 0) return t("traffic.notGranted");
    if (links.length === 1) return t(unused > 0 ? "traffic.grantedUnused" : "traffic.grantedUsed");
    return t("traffic.grantedOf", { count: links.length, number: words.number(links.length), granted: words.number(granted), unused: words.number(unused) });
  };
}

/** useBundleText returns a function that describes a bundle in one sentence, for screen readers. */
export function useBundleText() {
  const { t } = useTranslation();
  const words = useWords();
  const grant = useGrantText();
  return (bundle: Bundle, from: string, to: string): string => {
    const seen = seenKinds.flatMap((kind) => {
      const count = bundle.counts[kind];
      return count === undefined ? [] : [`${t(`traffic.kind.${kind}`)} ${count > 0 ? words.number(count) : t("connections.open")}`];
    });
    return t("traffic.spoken", { from, to, seen: seen.length > 0 ? words.list(seen) : t("traffic.nothingSeen"), grant: grant(bundle) });
  };
}

/** BundleFacts lists the numbers of a bundle: connections by kind, what is granted, and when it was seen last. */
export function BundleFacts({ bundle, map }: { bundle: Bundle; map: TrafficMap }) {
  const { t } = useTranslation();
  const grant = useGrantText();
  const disagrees = bundle.links.some((link) => map.links[link]?.disagrees);
  return (
    <dl className={classes.facts} data-testid="traffic-facts">
      {seenKinds.map((kind) => {
        const count = bundle.counts[kind];
        return count === undefined ? null : (
          <div key={kind}>
            <dt>
              <KindSwatch kind={kind} /> {t(`traffic.kind.${kind}`)}
            </dt>
            <dd>
              <ConnectionCount of={count} />
            </dd>
          </div>
        );
      })}
      <div>
        <dt>{bundle.unused > 0 ? <KindSwatch kind="granted" /> : <span className={classes.noSwatch} />} {t("traffic.access")}</dt>
        <dd>{grant(bundle)}</dd>
      </div>
      {bundle.lastSeen && (
        <div>
          <dt><span className={classes.noSwatch} /> {t("connections.lastSeen")}</dt>
          <dd><RelativeTime at={bundle.lastSeen} /></dd>
        </div>
      )}
      {disagrees && <p className={classes.warning}>{t("flows.disagreesHelp")}</p>}
    </dl>
  );
}
