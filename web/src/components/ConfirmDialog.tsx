import type { ReactNode } from "react";
import { FormDialog } from "./FormDialog";

interface Props {
  title: string;
  text: ReactNode;
  confirm: string;
  danger?: boolean;
  pending: boolean;
  error: unknown;
  testId: string;
  onConfirm: () => void;
  onClose: () => void;
}

/** ConfirmDialog confirms an action that concerns only the reader. ReasonDialog, for actions that concern others, also requires a reason. */
export function ConfirmDialog({ title, text, confirm, danger = false, pending, error, testId, onConfirm, onClose }: Props) {
  const submit = () => {
    onConfirm();
    return true;
  };
  return (
    <FormDialog title={title} submit={{ label: confirm, danger, testId: `${testId}-confirm`, onSubmit: submit }} pending={pending} error={error} focusCancel onClose={onClose}>
      {() => <div>{text}</div>}
    </FormDialog>
  );
}
