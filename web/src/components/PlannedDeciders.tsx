import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { TicketPreview } from "../api/types";
import { byChain } from "../lib/items";
import { useWords } from "../lib/use-words";
import { Deciders } from "./Deciders";
import { Notice } from "./Feedback";

/** readable is the maximum number of approval chains that are shown. */
const readable = 3;

/** PlannedDeciders shows who would decide a request before it is sent, and its problems. */
export function PlannedDeciders({ items }: { items: TicketPreview["items"] }) {
  const { t } = useTranslation();
  const words = useWords();
  const problems = items.flatMap(({ problem }) => (problem ? [words.message(problem.fields?.[0]?.message ?? problem.message)] : []));
  const chains = byChain(items.filter(({ problem }) => !problem));
  return (
    <>
      {[...new Set(problems)].map((problem) => (
        <Notice key={problem}>{problem}</Notice>
      ))}
      {chains.length > 0 && chains.length <= readable && (
        <div data-testid="planned-deciders">
          <Text size="xs" c="dimmed" fw={560} mb={6}>{t("request.preview.deciders")}</Text>
          {chains.map((chain) => (
            <Deciders key={chain.items.map((item) => item.position).join()} steps={chain.steps} />
          ))}
        </div>
      )}
    </>
  );
}
