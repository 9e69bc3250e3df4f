import { createContext, useContext } from "react";

/** useToast returns a function that briefly shows that something was done, also to screen readers. */
export const ToastContext = createContext<(text: string) => void>(() => undefined);

export function useToast() {
  return useContext(ToastContext);
}
