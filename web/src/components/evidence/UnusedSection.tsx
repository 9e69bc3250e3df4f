import { Select } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { secondsPerDay } from "../../lib/time";
import { among, useFilters } from "../../lib/use-filters";
import { useWords } from "../../lib/use-words";
import { EmptyState, Loaded, Notice } from "../Feedback";
import type { RefKind } from "../Names";
import { Section } from "../Page";
import type { components } from "../../api/schema.gen";
import { UnusedTable } from "./UnusedTable";

const quiet = ["7", "14", "30", "90", "180", "365"] as const;
const usualQuiet = 14;

/** useUnusedDays reads from the URL after how many days without traffic a statement counts as unused. */
export function useUnusedDays(): number {
  const [search] = useFilters();
  return Number(among(search.getAll("quiet"), quiet)[0] ?? usualQuiet);
}

/** UnusedDaysSelect selects the length of the quiet period. */
export function UnusedDaysSelect() {
  const { t } = useTranslation();
  const words = useWords();
  const [, change] = useFilters();
  const days = useUnusedDays();
  return (
    <Select
      size="xs"
      aria-label={t("unused.quiet")}
      allowDeselect={false}
      data={quiet.map((each) => ({ value: each as string, label: t("unused.quietFor", { duration: words.duration(Number(each) * secondsPerDay) }) }))}
      value={String(days)}
      onChange={(next) => change({ quiet: next === String(usualQuiet) ? undefined : (next ?? undefined) })}
      data-testid="quiet-days"
    />
  );
}

/** Unobserved explains that statements are left out if their members were not watched completely enough. */
export function Unobserved({ names }: { names: string[] | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  return names && names.length > 0 ? <Notice testId="unobserved">{t("unused.unobserved", { count: names.length, names: words.list(names.slice(0, 5)) })}</Notice> : null;
}

interface Props {
  query: { data: components["schemas"]["UnusedList"] | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  about: RefKind;
}

/** UnusedSection lists the unused grants of an application or resource. */
export function UnusedSection({ query, about }: Props) {
  const { t } = useTranslation();
  return (
    <Section anchor="unused" title={t("unused.title")} count={query.data?.items.length} aside={<UnusedDaysSelect />} testId="unused">
      <Loaded query={query}>
        {({ items, unobserved }) => (
          <>
            <Unobserved names={about === "applications" ? unobserved : unobserved?.slice(0, 1)} />
            {items.length > 0 ? <UnusedTable rows={items} label={t("unused.title")} about={about} /> : (unobserved ?? []).length === 0 && <EmptyState>{t("unused.empty")}</EmptyState>}
          </>
        )}
      </Loaded>
    </Section>
  );
}
