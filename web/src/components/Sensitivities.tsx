import { useTranslation } from "react-i18next";
import type { SensitivityCounts } from "../api/types";
import { useWords } from "../lib/use-words";

const order = ["high", "medium", "low", "unknown"] as const;

/** Sensitivities says how many resources there are, and how many of them have each sensitivity. */
export function Sensitivities({ total, counts }: { total: number; counts: SensitivityCounts }) {
  const { t } = useTranslation();
  const words = useWords();
  const parts = order.filter((key) => counts[key] > 0).map((key) => t(`facts.sensitivities.${key}`, { count: counts[key] }));
  return <span>{t("facts.resourcesBySensitivity", { resources: t("facts.affectedResources", { count: total }), parts: words.list(parts) })}</span>;
}
