import { createContext, useContext } from "react";

/** Outcome reports whether the action that a toast is about succeeded. */
export type Outcome = "done" | "failed";

/** ToastContext provides the function that shows a message to the components below it. */
export const ToastContext = createContext<(text: string, outcome?: Outcome) => void>(() => undefined);

/** useToast returns a function that briefly shows that something was done, or that it failed, also to screen readers. */
export function useToast() {
  return useContext(ToastContext);
}
