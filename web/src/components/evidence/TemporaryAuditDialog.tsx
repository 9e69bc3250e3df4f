import { Chip, Group, Input, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useTemporaryAudit } from "../../api/flow-mutations";
import type { Resource } from "../../api/types";
import { auditChoices, auditEnd, auditEndError } from "../../lib/temporary-audit";
import type { AuditChoice, AuditForm } from "../../lib/temporary-audit";
import { dayAndTime } from "../../lib/time";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { useZone } from "../../lib/use-zone";
import { instantOf, wallTime } from "../../lib/zone";
import { FormDialog } from "../FormDialog";
import { useToast } from "../toast-context";

const reasonLimit = 1_024;

interface Props {
  resource: Resource;
  /** The values from before a login. */
  draft: AuditForm | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** TemporaryAuditDialog begins a temporary audit, or changes its end. */
export function TemporaryAuditDialog({ resource, draft, kept, onClose }: Props) {
  const { t, i18n } = useTranslation();
  const words = useWords();
  const zone = useZone();
  const toast = useToast();
  const audit = useTemporaryAudit(resource.id);
  const running = resource.protection?.temporaryAudit?.active ? resource.protection.temporaryAudit : undefined;
  const [choice, setChoice] = useState<AuditChoice>(draft?.choice ?? "1h");
  const [wall, setWall] = useState(() => draft?.wall ?? wallTime(new Date(Date.now() + 2 * 3_600_000), zone));
  const [reason, setReason] = useState(draft?.reason ?? running?.reason ?? "");
  const [wrong, setWrong] = useState<{ end?: "missing" | "past" | "long" | undefined; reason?: boolean }>({});

  const submit = () => {
    const now = Date.now();
    const end = auditEnd({ choice, at: instantOf(wall, zone) }, now);
    const endError = auditEndError(end, now);
    setWrong({ end: endError, reason: reason.trim() === "" });
    if (endError || end === undefined || reason.trim() === "") return false;
    const version = resource.protection?.resourceVersion;
    audit.mutate(
      { until: end.toISOString(), reason: reason.trim(), ...(version ? { resourceVersion: version } : {}) },
      {
        onSuccess: () => {
          toast(t("audit.done.begin", { resource: resource.title, until: dayAndTime(end, i18n.language, zone) }));
          onClose();
        },
      },
    );
    return true;
  };

  return (
    <FormDialog
      title={t(running ? "audit.extendTitle" : "audit.title", { resource: resource.title })}
      testId="audit-dialog"
      submit={{ label: t(running ? "audit.extend" : "audit.begin"), testId: "audit-confirm", onSubmit: submit }}
      pending={audit.isPending}
      error={audit.error}
      values={{ choice, wall, reason }}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("audit.text", { clusters: words.list(resource.protection?.clusters.map((each) => each.cluster) ?? []) })}</Text>
          <Input.Wrapper label={t(running ? "audit.newEnd" : "audit.end")} description={t("audit.zone", { zone })} error={wrong.end ? t(`audit.error.${wrong.end}`) : fieldError("until")} required labelElement="div">
            <Chip.Group value={choice} onChange={(next) => setChoice(auditChoices.find((each) => each === next) ?? "1h")}>
              <Group gap={8} mt={6} role="radiogroup" aria-label={t("audit.end")}>
                {auditChoices.map((each) => (
                  <Chip key={each} value={each} variant="light" radius="sm" size="sm" data-testid={`audit-${each}`}>
                    {t(`audit.choice.${each}`)}
                  </Chip>
                ))}
              </Group>
            </Chip.Group>
            {choice === "custom" && <TextInput mt="sm" type="datetime-local" aria-label={t("audit.until")} value={wall} onChange={(event) => setWall(event.currentTarget.value)} data-testid="audit-until" />}
          </Input.Wrapper>
          <Textarea
            label={t("decide.reason")}
            description={t("audit.reasonHint")}
            required
            autosize
            minRows={2}
            maxLength={reasonLimit}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={wrong.reason && reason.trim() === "" ? t("decide.reasonNeeded") : fieldError("reason")}
            data-autofocus
            data-testid="audit-reason"
          />
        </>
      )}
    </FormDialog>
  );
}
