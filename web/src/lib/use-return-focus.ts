import { useEffect, useState } from "react";

/** useReturnFocus returns the focus to the element that had it before a dialog opened. Mantine does so only for dialogs that stay mounted. */
export function useReturnFocus(): void {
  const [opener] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      setTimeout(() => {
        // The focus is elsewhere if another dialog or a navigation has moved it meanwhile.
        if (document.activeElement === document.body && opener instanceof HTMLElement) opener.focus();
      }, 0);
    },
    [opener],
  );
}
