import { IconCircleCheck } from "@tabler/icons-react";
import { useCallback, useEffect, useState } from "react";
import type { ReactNode } from "react";
import classes from "./Toast.module.css";
import { ToastContext } from "./toast-context";

const shownFor = 4_000;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toast, setToast] = useState<{ text: string; id: number }>();
  const show = useCallback((text: string) => setToast((before) => ({ text, id: (before?.id ?? 0) + 1 })), []);
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
          <div className={classes.toast} key={toast.id} data-testid="toast">
            <IconCircleCheck size={18} aria-hidden />
            {toast.text}
          </div>
        )}
      </div>
    </ToastContext>
  );
}
