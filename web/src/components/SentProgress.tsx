import { Progress, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { BatchProgress } from "../api/batches";
import { useWords } from "../lib/use-words";

/** SentProgress shows how many of many entries were answered. It shows nothing for those that fit into one call. */
export function SentProgress({ progress, size }: { progress: BatchProgress | undefined; size: number }) {
  const { t } = useTranslation();
  const words = useWords();
  if (!progress || progress.total <= size) return null;
  const text = t("dialog.sent", { done: words.number(progress.done), total: words.number(progress.total) });
  return (
    <div data-testid="sent-progress">
      <Progress.Root size="sm">
        <Progress.Section value={(100 * progress.done) / progress.total} aria-label={text} />
      </Progress.Root>
      <Text size="xs" mt={4} role="status">{text}</Text>
      <Text size="xs" c="dimmed">{t("dialog.sentStop")}</Text>
    </div>
  );
}
