import { createContext, useContext } from "react";

/** Outcome is whether what a toast tells was done. */
export type Outcome = "done" | "failed";

/** useToast returns a function that briefly shows that something was done, or that it failed, also to screen readers. */
export const ToastContext = createContext<(text: string, outcome?: Outcome) => void>(() => undefined);

export function useToast() {
  return useContext(ToastContext);
}
