import { Checkbox, Group, NumberInput, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useGuard } from "../../api/flow-mutations";
import type { RolloutCard } from "../../api/types";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { ReasonDialog } from "../ReasonDialog";
import { useToast } from "../toast-context";

/** GuardInput is the input of the dialog, as ReasonDialog keeps it. */
export type GuardInput = [reason: string, values: { resource: string; enabled: boolean; reopens: boolean; limit: number; minutes: number; arm: boolean }];

/** isGuardInput reports whether a stored value has the shape of the input. */
export function isGuardInput(value: unknown): value is GuardInput {
  if (!Array.isArray(value) || typeof value[0] !== "string" || typeof value[1] !== "object" || value[1] === null) return false;
  const values = value[1] as Record<string, unknown>;
  return typeof values.resource === "string" && (["enabled", "reopens", "arm"] as const).every((name) => typeof values[name] === "boolean") && (["limit", "minutes"] as const).every((name) => typeof values[name] === "number");
}

interface Props {
  card: RolloutCard;
  /** The input from before a login. */
  draft: GuardInput | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** GuardDialog sets how many new denials stop the rollout of one resource, and resumes a rollout that was stopped. */
export function GuardDialog({ card, draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const save = useGuard(card.resource.id ?? "");
  const { guard } = card;
  const before = draft?.[1];
  const [enabled, setEnabled] = useState(before?.enabled ?? guard.enabled);
  const [reopens, setReopens] = useState(before?.reopens ?? guard.reopens);
  const [limit, setLimit] = useState<number>(before?.limit ?? guard.limit);
  const [minutes, setMinutes] = useState<number>(before?.minutes ?? Math.max(1, Math.round(guard.windowSeconds / 60)));
  const [arm, setArm] = useState(before?.arm ?? guard.stoppedAt !== undefined);
  const number = (set: (value: number) => void) => (value: number | string) => typeof value === "number" && set(value);
  return (
    <ReasonDialog
      title={t("rollout.guard.title", { resource: card.resource.title })}
      values={{ resource: card.resource.id ?? "", enabled, reopens, limit, minutes, arm }}
      draft={draft?.[0]}
      kept={kept}
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
