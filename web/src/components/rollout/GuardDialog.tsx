import { Checkbox, Group, NumberInput, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useGuard } from "../../api/flow-mutations";
import type { RolloutCard } from "../../api/types";
import { useWords } from "../../lib/use-words";
import { ReasonDialog } from "../ReasonDialog";
import { useToast } from "../toast-context";

/** GuardDialog sets how many new denials stop the rollout of one resource, and resumes a rollout that was stopped. */
export function GuardDialog({ card, onClose }: { card: RolloutCard; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const save = useGuard(card.resource.id ?? "");
  const { guard } = card;
  const [enabled, setEnabled] = useState(guard.enabled);
  const [reopens, setReopens] = useState(guard.reopens);
  const [limit, setLimit] = useState<number>(guard.limit);
  const [minutes, setMinutes] = useState<number>(Math.max(1, Math.round(guard.windowSeconds / 60)));
  const [arm, setArm] = useState(guard.stoppedAt !== undefined);
  const number = (set: (value: number) => void) => (value: number | string) => typeof value === "number" && set(value);
  return (
    <ReasonDialog
      title={t("rollout.guard.title", { resource: card.resource.title })}
      values={{ enabled, reopens, limit, minutes, arm }}
      text={(fieldError) => (
        <Stack gap="sm">
          <Text size="sm">{t("rollout.guard.text")}</Text>
          {guard.stoppedAt && (
            <>
              <Text size="sm" c="red">{guard.reason ? words.message(guard.reason) : t("rollout.stopped", { count: guard.count ?? 0, cluster: guard.cluster ?? "" })}</Text>
              <Checkbox label={t("rollout.guard.arm")} description={t("rollout.guard.armHelp")} checked={arm} onChange={(event) => setArm(event.currentTarget.checked)} data-testid="guard-arm" />
            </>
          )}
          <Checkbox label={t("rollout.guard.enabled")} checked={enabled} onChange={(event) => setEnabled(event.currentTarget.checked)} data-testid="guard-enabled" />
          {enabled && (
            <Group gap="sm">
              <NumberInput label={t("rollout.guard.limit")} min={0} max={1_000_000} allowNegative={false} allowDecimal={false} value={limit} error={fieldError("limit")} onChange={number(setLimit)} w={180} data-testid="guard-limit" />
              <NumberInput label={t("rollout.guard.window")} min={1} max={1_440} allowNegative={false} allowDecimal={false} value={minutes} error={fieldError("windowSeconds")} onChange={number(setMinutes)} w={180} data-testid="guard-window" />
            </Group>
          )}
          {enabled && <Checkbox label={t("rollout.guard.reopens")} description={t("rollout.guard.reopensHelp")} checked={reopens} onChange={(event) => setReopens(event.currentTarget.checked)} data-testid="guard-reopens" />}
        </Stack>
      )}
      confirm={t("rollout.guard.save")}
      pending={save.isPending}
      error={save.error}
      testId="guard"
      onConfirm={(reason) =>
        save.mutate({ enabled, reopens, limit, windowSeconds: minutes * 60, reason, ...(guard.stoppedAt && arm ? { arm } : {}) }, {
          onSuccess: () => {
            toast(t("rollout.guard.saved", { resource: card.resource.title }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}
