import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import { ErrorState } from "./Feedback";

interface Props {
  title: string;
  text: ReactNode;
  confirm: string;
  danger?: boolean;
  busy: boolean;
  error: unknown;
  testId: string;
  onConfirm: (reason: string) => void;
  onClose: () => void;
}

/** For what ends something: names what it affects, and asks why. */
export function ReasonDialog({ title, text, confirm, danger = false, busy, error, testId, onConfirm, onClose }: Props) {
  const { t } = useTranslation();
  const [reason, setReason] = useState("");
  const [missing, setMissing] = useState(false);
  const fieldError = missing ? t("decide.reasonNeeded") : error ? asApiError(error).fieldMessage("reason") : undefined;

  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{title}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          const text = reason.trim();
          setMissing(text === "");
          if (text !== "") onConfirm(text);
        }}
      >
        <Stack gap="md">
          <div>{text}</div>
          <Textarea
            label={t("decide.reason")}
            description={t("decide.reasonHint")}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
            error={fieldError}
            maxLength={2000}
            autosize
            minRows={2}
            required
            data-autofocus
            data-testid={`${testId}-reason`}
          />
          {error && !fieldError ? <ErrorState error={error} title={t("error.actionTitle")} /> : null}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" color={danger ? "red" : "accent"} loading={busy} data-testid={`${testId}-confirm`}>
              {confirm}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
