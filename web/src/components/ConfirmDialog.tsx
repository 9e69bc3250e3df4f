import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ErrorState } from "./Feedback";

interface Props {
  title: string;
  text: ReactNode;
  confirm: string;
  danger?: boolean;
  busy: boolean;
  error: unknown;
  testId: string;
  onConfirm: () => void;
  onClose: () => void;
}

/** For what ends something of one's own: names what it affects. What concerns others asks why, too (ReasonDialog). */
export function ConfirmDialog({ title, text, confirm, danger = false, busy, error, testId, onConfirm, onClose }: Props) {
  const { t } = useTranslation();
  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{title}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <Stack gap="md">
        <div>{text}</div>
        {error ? <ErrorState error={error} title={t("error.actionTitle")} /> : null}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose} data-autofocus>
            {t("action.cancel")}
          </Button>
          <Button color={danger ? "red" : "accent"} loading={busy} onClick={onConfirm} data-testid={`${testId}-confirm`}>
            {confirm}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
