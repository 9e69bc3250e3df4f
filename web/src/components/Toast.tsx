import { IconAlertCircle, IconCircleCheck } from "@tabler/icons-react";
import { useCallback, useEffect, useState } from "react";
import type { ReactNode } from "react";
import classes from "./Toast.module.css";
import { type Outcome, ToastContext } from "./toast-context";

const shownFor = 4_000;

/** ToastProvider shows the messages of the components below it, one at a time and for a limited time. */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [toast, setToast] = useState<{ text: string; outcome: Outcome; id: number }>();
  const show = useCallback((text: string, outcome: Outcome = "done") => setToast((before) => ({ text, outcome, id: (before?.id ?? 0) + 1 })), []);
  useEffect(() => {
    if (!toast) return;
    const timer = setTimeout(() => setToast(undefined), shownFor);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <ToastContext value={show}>
      {children}
      <div className={classes.region} role="status" aria-live="polite">
        {toast && (
          <div className={classes.toast} data-outcome={toast.outcome} key={toast.id} data-testid="toast">
            {toast.outcome === "done" ? <IconCircleCheck size={18} aria-hidden /> : <IconAlertCircle size={18} aria-hidden />}
            {toast.text}
          </div>
        )}
      </div>
    </ToastContext>
  );
}
