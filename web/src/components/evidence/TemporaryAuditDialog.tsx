import { Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useTemporaryAudit } from "../../api/flow-mutations";
import type { Resource } from "../../api/types";
import { auditEnd, auditEndError } from "../../lib/temporary-audit";
import type { AuditEndForm, AuditForm } from "../../lib/temporary-audit";
import { dayAndTime } from "../../lib/time";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { useZone } from "../../lib/use-zone";
import { instantOf, wallTime } from "../../lib/zone";
import { AuditEndField } from "../AuditEndField";
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
  const [end, setEnd] = useState<AuditEndForm>(() => draft ?? { choice: "1h", wall: wallTime(new Date(Date.now() + 2 * 3_600_000), zone) });
  const [reason, setReason] = useState(draft?.reason ?? running?.reason ?? "");
  const [wrong, setWrong] = useState<{ end?: "missing" | "past" | "long" | undefined; reason?: boolean }>({});

  const submit = () => {
    const now = Date.now();
    const until = auditEnd({ choice: end.choice, at: instantOf(end.wall, zone) }, now);
    const endError = auditEndError(until, now);
    setWrong({ end: endError, reason: reason.trim() === "" });
    if (endError || until === undefined || reason.trim() === "") return false;
    const version = resource.protection?.resourceVersion;
    audit.mutate(
      { until: until.toISOString(), reason: reason.trim(), ...(version ? { resourceVersion: version } : {}) },
      {
        onSuccess: () => {
          toast(t("audit.done.begin", { resource: resource.title, until: dayAndTime(until, i18n.language, zone) }));
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
      values={{ ...end, reason }}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("audit.text", { clusters: words.list(resource.protection?.clusters.map((each) => each.cluster) ?? []) })}</Text>
          <AuditEndField label={t(running ? "audit.newEnd" : "audit.end")} value={end} onChange={setEnd} error={wrong.end ? t(`audit.error.${wrong.end}`) : fieldError("until")} testId="audit" />
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
