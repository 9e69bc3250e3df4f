import { Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { isFinal } from "../api/client";
import type { PreviewItem } from "../api/types";
import { byChain } from "../lib/items";
import { useWords } from "../lib/use-words";
import { Deciders } from "./Deciders";
import { Notice, RowsSkeleton } from "./Feedback";
import type { PreviewQuery } from "./request/RequestPreview";
import tables from "./Tables.module.css";

/** readable is the maximum number of approval chains that are shown. */
const readable = 3;

interface Props {
  query: Pick<PreviewQuery, "data" | "error" | "isPlaceholderData" | "refetch">;
  /** Returns whether an item of the preview is shown; without it all are. */
  shows?: (item: PreviewItem) => boolean;
}

/**
 * PlannedDeciders shows who would decide a request before it is sent, and its problems. The preview of another request is not shown in place of one that is
 * still being read.
 */
export function PlannedDeciders({ query, shows = () => true }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  if (query.error) {
    return (
      <Notice live testId="deciders-unknown">
        {t("request.preview.decidersUnknown")}{" "}
        {!isFinal(query.error) && <button type="button" className={tables.linkButton} onClick={() => void query.refetch()}>{t("action.retry")}</button>}
      </Notice>
    );
  }
  if (!query.data || query.isPlaceholderData) return <RowsSkeleton rows={1} />;
  const items = query.data.items.filter(shows);
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
