import { Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useStartDowngrade } from "../../api/fleet";
import type { Downgrade } from "../../api/types";
import { auditEnd, auditEndError } from "../../lib/temporary-audit";
import type { AuditEndForm, AuditForm } from "../../lib/temporary-audit";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { useZone } from "../../lib/use-zone";
import { instantOf, wallTime } from "../../lib/zone";
import { AuditEndField } from "../AuditEndField";
import { FormDialog } from "../FormDialog";
import { useToast } from "../toast-context";

const reasonLimit = 1_024;

interface Props {
  extent: Downgrade;
  /** The values from before a login. The confirmation has to be typed again. */
  draft: AuditForm | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** DowngradeDialog opens many resources at once. It shows how many, and requires an end, a reason, and a typed confirmation. */
export function DowngradeDialog({ extent, draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const zone = useZone();
  const toast = useToast();
  const start = useStartDowngrade();
  const [end, setEnd] = useState<AuditEndForm>(() => draft ?? { choice: "1h", wall: wallTime(new Date(Date.now() + 2 * 3_600_000), zone) });
  const [reason, setReason] = useState(draft?.reason ?? "");
  const [typed, setTyped] = useState("");
  const [wrong, setWrong] = useState<{ end?: "missing" | "past" | "long" | undefined; reason?: boolean; typed?: boolean }>({});
  const word = extent.class ?? t("downgrade.wordAll");
  const count = extent.enforced - extent.open;

  const submit = () => {
    const now = Date.now();
    const until = auditEnd({ choice: end.choice, at: instantOf(end.wall, zone) }, now);
    const next = { end: auditEndError(until, now), reason: reason.trim() === "", typed: typed.trim() !== word };
    setWrong(next);
    if (next.end || until === undefined || next.reason || next.typed) return false;
    start.mutate(
      { scope: extent.scope, ...(extent.class ? { class: extent.class } : {}), until: until.toISOString(), reason: reason.trim() },
      {
        onSuccess: () => {
          toast(t("downgrade.started"));
          onClose();
        },
      },
    );
    return true;
  };

  return (
    <FormDialog
      title={extent.class ? t("downgrade.beginClassTitle", { class: extent.class }) : t("downgrade.beginTitle")}
      testId="downgrade-dialog"
      submit={{ label: t("downgrade.confirm"), danger: true, testId: "downgrade-confirm", onSubmit: submit }}
      pending={start.isPending}
      error={start.error}
      values={{ ...end, reason, typed }}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm" data-testid="downgrade-extent">
            {t("downgrade.beginText", { count, number: words.number(count), members: extent.members.length > 0 ? words.list(extent.members) : t("downgrade.noMember") })}
          </Text>
          <AuditEndField label={t("audit.end")} value={end} onChange={setEnd} error={wrong.end ? t(`audit.error.${wrong.end}`) : fieldError("until")} testId="downgrade" />
          <Textarea label={t("decide.reason")} description={t("downgrade.reasonHint")} required autosize minRows={2} maxLength={reasonLimit} value={reason} onChange={(event) => setReason(event.currentTarget.value)} error={wrong.reason && reason.trim() === "" ? t("decide.reasonNeeded") : fieldError("reason")} data-autofocus data-testid="downgrade-reason" />
          <TextInput label={t("downgrade.type", { word })} required autoComplete="off" spellCheck={false} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} error={wrong.typed && typed.trim() !== word ? t("downgrade.typeWrong") : undefined} data-testid="downgrade-typed" />
        </>
      )}
    </FormDialog>
  );
}
