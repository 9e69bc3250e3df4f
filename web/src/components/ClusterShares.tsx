import { useTranslation } from "react-i18next";
import type { ClusterShare } from "../lib/folded-connections";
import { useWords } from "../lib/use-words";
import { ConnectionCount } from "./ConnectionCount";
import classes from "./Tables.module.css";
import { RelativeTime } from "./Time";

/** ClusterShares shows the members in which connections arrived: the names, the counts on hover, and all details when it is opened. */
export function ClusterShares({ shares }: { shares: ClusterShare[] }) {
  const { t } = useTranslation();
  const words = useWords();
  const names = words.names(shares.map((share) => share.cluster));
  const counts = shares.map((share) => `${share.cluster}: ${share.count === 0 ? t("connections.open") : words.number(share.count)}`).join("\n");
  return (
    <details className={classes.shares} data-testid="cluster-shares">
      <summary title={counts}>{names}</summary>
      <ul>
        {shares.map((share) => {
          const away = share.from.filter((cluster) => cluster !== share.cluster);
          return (
            <li key={share.cluster}>
              <strong>{share.cluster}</strong> <ConnectionCount of={share.count} /> · <RelativeTime at={share.lastSeen} />
              {away.length > 0 && <span> · {t(away.length === share.from.length ? "connections.from" : "connections.alsoFrom", { cluster: words.list(away) })}</span>}
            </li>
          );
        })}
      </ul>
    </details>
  );
}
