import { Textarea } from "@mantine/core";
import { useState } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { textLimit } from "../lib/request";
import type { KeptInput } from "../lib/use-kept-dialog";
import { FormDialog } from "./FormDialog";
import type { FieldError } from "./FormDialog";

interface Props {
  title: string;
  text: ReactNode | ((fieldError: FieldError) => ReactNode);
  confirm: string;
  danger?: boolean;
  pending: boolean;
  error: unknown;
  /** The values of fields in `text`, if it has any. What is kept is the reason and these values. */
  values?: unknown;
  /** The reason from before a login. */
  draft?: string | undefined;
  /** The stored input, if the action needs a recent login. */
  kept?: KeptInput | undefined;
  testId: string;
  onConfirm: (reason: string) => void;
  onClose: () => void;
}

/** ReasonDialog requires a reason for an action that concerns others, and names what the action affects. */
export function ReasonDialog({ title, text, confirm, danger = false, pending, error, values, draft = "", kept, testId, onConfirm, onClose }: Props) {
  const { t } = useTranslation();
  const [reason, setReason] = useState(draft);
  const [tried, setTried] = useState(false);

  const submit = () => {
    setTried(true);
    const trimmed = reason.trim();
    if (trimmed !== "") onConfirm(trimmed);
    return trimmed !== "";
  };

  return (
    <FormDialog
      title={title}
      submit={{ label: confirm, danger, testId: `${testId}-confirm`, onSubmit: submit }}
      pending={pending}
      error={error}
      values={[reason, values]}
      {...(kept && { kept })}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <div>{typeof text === "function" ? text(fieldError) : text}</div>
          <Textarea
            label={t("decide.reason")}
            description={t("decide.reasonHint")}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={tried && reason.trim() === "" ? t("decide.reasonNeeded") : fieldError("reason")}
            maxLength={textLimit}
            autosize
            minRows={2}
            required
            data-autofocus
            data-testid={`${testId}-reason`}
          />
        </>
      )}
    </FormDialog>
  );
}
