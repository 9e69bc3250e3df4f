import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { CatalogRef, ItemFacts } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "./DecisionFacts.module.css";
import { RefName } from "./Names";
import type { RefKind } from "./Names";
import tables from "./Tables.module.css";

/** Fact is one row of the facts. */
export function Fact({ name, testId, children }: { name: string; testId: string; children: ReactNode }) {
  return (
    <div className={classes.fact} data-testid={testId}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** FactNames lists names beside their total, and says how many are left out. */
export function FactNames({ total, shown, children }: { total: number; shown: number; children: ReactNode }) {
  const { t } = useTranslation();
  return (
    <ul className={classes.names}>
      {children}
      {total > shown && <li className={tables.muted}>{t("facts.more", { count: total - shown })}</li>}
    </ul>
  );
}

/** Watched says how completely the members were watched, where an absence of connections proves nothing. */
export function Watched({ watched }: { watched: NonNullable<ItemFacts["observed"]>["watched"] }) {
  const { t } = useTranslation();
  const words = useWords();
  if (watched.enough) return null;
  const figures = { percent: words.number(watched.percent), lost: words.number(watched.lostPercent) };
  return <p className={tables.muted}>{watched.member ? t("facts.watchedWorst", { ...figures, member: watched.member }) : t("facts.watched", figures)}</p>;
}

/** RefNames lists the names of entities beside their total. */
export function RefNames({ kind, names }: { kind: RefKind; names: { total: number; items: CatalogRef[] } }) {
  return (
    <FactNames total={names.total} shown={names.items.length}>
      {names.items.map((about) => (
        <li key={about.name}><RefName kind={kind} about={about} /></li>
      ))}
    </FactNames>
  );
}
