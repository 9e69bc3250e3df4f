import { Group, Modal, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useReturnFocus } from "../lib/use-return-focus";

interface Props {
  title: string;
  size?: "sm" | "lg" | "xl";
  /** Buttons at the end of the dialog. */
  actions?: ReactNode;
  /** Only `actions` close the dialog, because its content cannot be shown again. */
  mustConfirm?: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** InfoDialog is a dialog that shows something and sends nothing. */
export function InfoDialog({ title, size, actions, mustConfirm = false, onClose, children }: Props) {
  const { t } = useTranslation();
  useReturnFocus();
  return (
    <Modal
      opened
      onClose={onClose}
      {...(size ? { size } : {})}
      withCloseButton={!mustConfirm}
      closeOnClickOutside={!mustConfirm}
      closeOnEscape={!mustConfirm}
      title={<Text fw={620}>{title}</Text>}
      closeButtonProps={{ "aria-label": t("action.close") }}
    >
      {children}
      {actions && (
        <Group justify="flex-end" gap="sm" mt="md">
          {actions}
        </Group>
      )}
    </Modal>
  );
}
